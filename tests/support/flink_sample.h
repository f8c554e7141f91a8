#pragma once

/*
 * flink_sample: compares an answer with a recorded one of Flink: every field is there, with its
 * type.
 *
 * Place    tests; tests/data/flink-rest has the samples.
 * Thread   one; a difference is a failure of the test that asks.
 * Memory   a loaded sample is the caller's (json_decref).
 */

#include <jansson.h>

/* {"request", "body", "status", "response"} */
json_t *flink_sample_load(const char *directory, const char *name);

/* Fields that only we have are fine, and so is a value where the sample has null. */
void flink_sample_compare(const json_t *wanted, const json_t *got, const char *what);
