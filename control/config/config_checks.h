#pragma once

/*
 * config_checks: forms of values that a type alone does not say.
 *
 * Place    control/config; named by rows of config_keys.c.
 * Thread   any.
 * Errors   NULL: the text has the form; else what was expected.
 */

/* "auto:4", "2,3-5", "L#0-3". */
const char *config_check_cores(const char *text);
/* "auto", "0,2-3". */
const char *config_check_control_cores(const char *text);
/* "8081" or "8081-8099"; 0 takes any port. */
const char *config_check_ports(const char *text);
/* A local directory; file:// may stand in front. */
const char *config_check_directory(const char *text);
const char *config_check_power_of_two(const char *text);
/* Words for EAL, without those that weir writes itself. */
const char *config_check_eal_args(const char *text);
/* PCI addresses or virtual devices ("net_tap0"), between semicolons. */
const char *config_check_nic_ports(const char *text);
/* An IP address, or "auto". */
const char *config_check_link_address(const char *text);
/* "02:00:00:00:00:01", or nothing. */
const char *config_check_link_gateway(const char *text);
/* 0 (off), or at least one millisecond. */
const char *config_check_interval(const char *text);
/* A number from 0 to 1. */
const char *config_check_share(const char *text);
/* A number greater than 1. */
const char *config_check_growth(const char *text);
