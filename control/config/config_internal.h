#pragma once

/* config_internal: what the files of config.h share. */

#include "control/config/config.h"

struct config_entry {
	char *text; /* NULL: the preset holds */
	char *source;
	struct weir_value value;
	struct config_place place;
	enum config_origin origin;
};

struct config {
	uint32_t count;
	struct config_entry entries[]; /* in the order of the table */
};

struct config_place config_place_of(const struct config *c, uint32_t index);
