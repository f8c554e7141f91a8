#include "control/config/yaml_tree.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct config_error error;

static struct yaml_tree *parse(const char *text)
{
	struct yaml_tree *tree = NULL;

	cr_assert_eq(yaml_tree_parse(&tree, "a.yaml", text, strlen(text), &error), 0, "%s",
			error.text);
	return tree;
}

static void expect_refused(const char *text, const char *message)
{
	struct yaml_tree *tree = NULL;

	cr_expect_eq(yaml_tree_parse(&tree, "a.yaml", text, strlen(text), &error), -EINVAL);
	cr_expect_str_eq(error.text, message);
	cr_expect_null(tree);
}

Test(yaml_tree, nodes_know_their_line_and_column)
{
	struct yaml_tree *tree = parse("name: x\nlist:\n  - uid: a\n    size: \"10 s\"\n");
	const struct yaml_node *list = yaml_find(yaml_tree_root(tree), "list");
	const struct yaml_node *size = yaml_find(list->first, "size");

	cr_expect_eq(list->kind, YAML_SEQUENCE);
	cr_expect_eq(list->count, 1);
	cr_expect_str_eq(size->text, "10 s");
	cr_expect_eq(size->key_place.line, 4);
	cr_expect_eq(size->key_place.column, 5);
	cr_expect_eq(size->place.line, 4);
	cr_expect_eq(size->place.column, 11);
	cr_expect_str_eq(size->place.source, "a.yaml");
	yaml_tree_destroy(tree);
}

Test(yaml_tree, duplicate_keys_are_kept_in_order)
{
	struct yaml_tree *tree = parse("a: 1\nb: 2\na: 3\n");
	const struct yaml_node *n = yaml_tree_root(tree)->first;

	cr_expect_str_eq(n->text, "1");
	cr_expect_str_eq(n->next->next->key, "a");
	cr_expect_str_eq(n->next->next->text, "3");
	yaml_tree_destroy(tree);
}

Test(yaml_tree, an_empty_file_is_an_empty_mapping)
{
	struct yaml_tree *tree = parse("# nothing\n");

	cr_expect_eq(yaml_tree_root(tree)->kind, YAML_MAPPING);
	cr_expect_null(yaml_tree_root(tree)->first);
	yaml_tree_destroy(tree);
}

Test(yaml_tree, a_value_left_out_is_an_empty_text)
{
	struct yaml_tree *tree = parse("a:\nb: 2\n");

	cr_expect_str_eq(yaml_tree_root(tree)->first->text, "");
	yaml_tree_destroy(tree);
}

Test(yaml_tree, a_value_left_out_is_where_its_key_is)
{
	struct yaml_tree *tree = parse("a: 1\nb:\n  - x\n  - c:\n    d: 2\n  -\ne:\n");
	const struct yaml_node *b = yaml_find(yaml_tree_root(tree), "b");
	const struct yaml_node *c = yaml_find(b->first->next, "c");
	const struct yaml_node *e = yaml_find(yaml_tree_root(tree), "e");

	cr_expect_eq(c->place.line, 4);
	cr_expect_eq(c->place.column, 5);
	cr_expect_eq(b->first->next->next->place.line, 3, "in a list: where that begins");
	cr_expect_eq(e->place.line, 7);
	yaml_tree_destroy(tree);
}

Test(yaml_tree, what_is_no_yaml_is_refused_with_its_place)
{
	expect_refused("a: 1\nb: [1, 2\nc: 3\n",
			"a.yaml:4:1: this is not YAML: flow sequence without a closing bracket");
}

/* On the first of these libfyaml 0.7.12 would never come back. */
Test(yaml_tree, bytes_that_are_no_text_are_refused_with_their_place, .timeout = 60)
{
	expect_refused("%  # restv\xb4rt: x", "a.yaml:1:1: a directive (%); expected KEY: VALUE");
	expect_refused("a: 1\nb: x\xb4y\n", "a.yaml:2:5: the byte 0xb4 is no text; expected UTF-8");
	expect_refused("a: \xc0\xaf\n", "a.yaml:1:4: the byte 0xc0 is no text; expected UTF-8");
	expect_refused("a: \xed\xa0\x80\n", "a.yaml:1:4: the byte 0xed is no text; expected UTF-8");
	expect_refused("a: \xe2\x82", "a.yaml:1:4: the byte 0xe2 is no text; expected UTF-8");
	expect_refused("a: \x1b[31m\n", "a.yaml:1:4: the byte 0x1b is no text; expected UTF-8");
	struct yaml_tree *tree = parse("a: \xe2\x82\xac\n");
	cr_expect_str_eq(yaml_tree_root(tree)->first->text, "\xe2\x82\xac");
	yaml_tree_destroy(tree);
}

Test(yaml_tree, what_a_config_never_needs_is_refused)
{
	expect_refused("a: &x 1\nb: *x\n",
			"a.yaml:2:4: an alias (*name); expected the value itself");
	expect_refused("a: 1\n---\nb: 1\n",
			"a.yaml:2:1: a second document; expected one in a file");
	expect_refused("? [a]\n: 1\n",
			"a.yaml:1:3: a key is a mapping or a list; expected one word");
	expect_refused("a: \"x\\0y\"\n", "a.yaml:1:4: a zero byte; expected text");
	expect_refused("[[[[[[[[[[[[[[[[[[[[[",
			"a.yaml:1:17: nested too deep; expected at most 16 levels");
}

/* `before`, `count` times `line`, `after`; to be freed. */
static char *repeat(const char *before, const char *line, size_t count, const char *after)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	fputs(before, file);
	for (size_t i = 0; i < count; i++)
		fputs(line, file);
	fputs(after, file);
	fclose(file);
	return text;
}

Test(yaml_tree, values_of_hundreds_of_thousands_of_empty_lines_are_refused_at_once, .timeout = 60)
{
	static const char *const befores[] = {"a: |\n", "a: >\n", "a: x\n", "a: \"x\n", "a: 'x\n"};
	static const char *const lines[] = {"\n", " \n", "\t\n", "\r", " \r\n"};

	for (size_t i = 0; i < sizeof(befores) / sizeof(*befores); i++) {
		for (size_t k = 0; k < sizeof(lines) / sizeof(*lines); k++) {
			char *text = repeat(befores[i], lines[k], 300000, " y\n");

			struct yaml_tree *tree = NULL;

			cr_expect_eq(yaml_tree_parse(&tree, "a.yaml", text, strlen(text), &error),
					-EINVAL);
			cr_expect(strstr(error.text, "at most 100 in a row") != NULL, "%s",
					error.text);
			free(text);
		}
	}
}

Test(yaml_tree, a_hundred_empty_lines_in_a_row_are_read_and_one_more_is_refused)
{
	char *good = repeat("a: x\n", "\r\n", 100, "b: y\n");
	char *bad = repeat("a: x\n", " \n", 101, "b: y\n");

	yaml_tree_destroy(parse(good));
	expect_refused(bad, "a.yaml:102:2: an empty line; expected at most 100 in a row");
	free(good);
	free(bad);
}

Test(yaml_tree, any_cut_of_a_file_is_read_or_refused)
{
	static const char text[] =
			"name: \"x\\x41\"\nlist:\n  - {a: [1, 'b'], c: |\n    long\n  }\n"
			"  - *q\n? k\n: !!str v # c\n";

	for (size_t size = 0; size < sizeof(text); size++) {
		struct yaml_tree *tree = NULL;
		char *cut = malloc(size);

		memcpy(cut, text, size);
		if (yaml_tree_parse(&tree, "a.yaml", cut, size, &error) == 0)
			yaml_tree_destroy(tree);
		free(cut);
	}
}

Test(yaml_tree, a_missing_file_and_a_folder_are_refused)
{
	char *text;
	size_t size;

	cr_expect_eq(yaml_read_file("/no/such.yaml", &text, &size, &error), -ENOENT);
	cr_expect_str_eq(error.text, "/no/such.yaml: No such file or directory");
	cr_expect_eq(yaml_read_file("/tmp", &text, &size, &error), -EISDIR);
}
