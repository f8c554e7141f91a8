#pragma once

/*
 * builtins: the operators that come with weir, each defined in builtin_<name>.c.
 *
 * A new one is a line here, a line in registry.c and its source in dataplane/meson.build.
 */

#include "dataplane/operator/operator.h"

extern const struct weir_operator builtin_digest_sink;
extern const struct weir_operator builtin_file_sink;
extern const struct weir_operator builtin_flow_parse;
extern const struct weir_operator builtin_flow_window;
extern const struct weir_operator builtin_generator;
extern const struct weir_operator builtin_keyed_count;
extern const struct weir_operator builtin_nic_sink;
extern const struct weir_operator builtin_nic_source;
extern const struct weir_operator builtin_pcap_source;
