#include "dataplane/operator/registry.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* PLUGIN_DIR holds registry_plugin.c built once for each mistake. */
static const struct weir_operator *loaded;
static char error[WEIR_ERROR_BYTES];

static int load(const char *file, const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", PLUGIN_DIR, file);
	error[0] = '\0';
	return registry_load(path, name, &loaded, error);
}

static void expect_error_has(const char *part)
{
	cr_expect_not_null(strstr(error, part), "\"%s\" lacks \"%s\"", error, part);
}

Test(registry, the_builtin_table_is_in_name_order_and_finds_each_of_its_rows)
{
	const struct weir_operator *before = NULL, *op;

	for (uint32_t i = 0; (op = registry_at(i)) != NULL; i++) {
		cr_expect_eq(registry_find(op->name), op);
		cr_expect_eq(op->abi_version, WEIR_ABI_VERSION);
		cr_expect_eq(op->size, sizeof(*op));
		cr_expect_not_null(op->help);
		if (before != NULL)
			cr_expect_lt(strcmp(before->name, op->name), 0, "%s, %s", before->name,
					op->name);
		before = op;
	}
	cr_expect_null(registry_find("no-such-operator"));
	cr_expect_null(registry_at(UINT32_MAX));
}

Test(registry, a_plugin_without_a_name_gives_its_first_operator)
{
	cr_assert_eq(load("plugin_good.so", NULL), 0, "%s", error);
	cr_expect_str_eq(loaded->name, "double");
}

Test(registry, a_plugin_gives_the_operator_that_is_named)
{
	cr_assert_eq(load("plugin_good.so", "halve"), 0, "%s", error);
	cr_expect_str_eq(loaded->name, "halve");
}

Test(registry, a_name_the_plugin_lacks_is_refused_with_the_names_it_has)
{
	cr_expect_eq(load("plugin_good.so", "triple"), -ENOENT);
	expect_error_has("no operator \"triple\"; expected double, halve");
}

Test(registry, a_missing_file_is_refused)
{
	cr_expect_eq(load("no_such.so", NULL), -ENOENT);
	expect_error_has("no_such.so: No such file");
}

Test(registry, a_folder_and_a_text_file_are_no_plugins)
{
	cr_expect_eq(load(".", NULL), -ENOEXEC);
	expect_error_has("not a regular file");
	cr_expect_eq(registry_load("/etc/passwd", NULL, &loaded, error), -ENOEXEC);
}

Test(registry, an_object_without_the_symbol_is_refused)
{
	cr_expect_eq(load("plugin_no_symbol.so", NULL), -ENOEXEC);
	expect_error_has("no symbol weir_plugin");
}

Test(registry, another_abi_version_is_refused)
{
	cr_expect_eq(load("plugin_other_abi.so", NULL), -EPROTO);
	expect_error_has("abi_version 2; expected 1");
}

Test(registry, a_smaller_table_is_refused)
{
	cr_expect_eq(load("plugin_small_table.so", NULL), -EPROTO);
	expect_error_has("bytes; expected");
}

Test(registry, a_table_with_holes_is_refused)
{
	cr_expect_eq(load("plugin_no_operator.so", NULL), -ENOENT);
	expect_error_has("it has no operator");
	cr_expect_eq(load("plugin_no_process.so", NULL), -EPROTO);
	expect_error_has("process is missing");
	cr_expect_eq(load("plugin_taken_param.so", NULL), -EPROTO);
	expect_error_has("named uid, type or plugin");
}
