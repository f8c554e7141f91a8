#!/usr/bin/env python3
"""scripts/check_tidy.py reports each planted breach, with file and line, and nothing legal."""

import unittest

from planted import PlantedTree

# Words that the checker itself looks for, in two halves.
LEFTOVER = "TO" + "DO"
SOMEBODY = "/ho" + "me/somebody"


class CheckTidy(PlantedTree):
    checker = "check_tidy.py"

    def assert_refused(self, path, text, line, what):
        self.plant(path, text)
        self.assert_reported(f"{path}:{line}", what)

    def test_a_source_has_600_lines_at_most(self):
        self.assert_refused("nic/x.c", "int f(void);\n" * 601, 601, "601 lines")

    def test_a_header_has_200_lines_at_most(self):
        self.assert_refused("nic/x.h", "int f(void);\n" * 201, 201, "201 lines")

    def test_a_function_has_70_lines_at_most(self):
        body = "\tg();\n" * 68
        self.assert_refused("nic/x.c", f"int f(void)\n{{\n{body}}}\n", 1, "f has 71 lines")

    def test_a_function_has_6_parameters_at_most(self):
        self.assert_refused(
            "nic/x.c", "void f(int a, int b, int c, int d,\n\t\tint e, int f, int g)\n{\n}\n", 1,
            "more than 6 parameters")

    def test_a_function_does_not_call_itself(self):
        self.assert_refused("nic/x.c", "int f(int n)\n{\n\treturn f(n - 1);\n}\n", 3,
                            "calls itself")

    def test_a_line_has_100_columns_at_most_and_a_tab_counts_8(self):
        self.assert_refused("nic/x.c", "\t" * 12 + "12345\n", 1, "101 columns")

    def test_blanks_at_the_end_of_a_line_are_reported(self):
        self.assert_refused("scripts/x.py", "a = 1 \n", 1, "blanks")

    def test_leftovers_are_reported(self):
        self.assert_refused("nic/x.c", f"int f(void);\n/* {LEFTOVER}: more */\n", 2, LEFTOVER)

    def test_paths_of_a_machine_are_reported(self):
        self.assert_refused("README.md", f"cd {SOMEBODY}/weir\n", 1, "somebody")

    def test_unbounded_copies_are_banned(self):
        self.assert_refused("nic/x.c", "void f(void)\n{\n\tstrcpy(a, b);\n}\n", 3, "strcpy")

    def test_a_shell_is_banned_in_the_product(self):
        self.assert_refused("control/cli/x.c", 'void f(void)\n{\n\tsystem("ls");\n}\n', 3,
                            "system")

    def test_mutable_state_at_file_scope_is_reported(self):
        self.assert_refused("nic/x.c", "int f(void);\n\nstatic int count;\n", 3, "state")

    def test_a_mutable_table_is_reported(self):
        self.assert_refused("nic/x.c", "static struct row rows[] = {\n\t{1},\n};\n", 1, "state")

    def test_a_global_is_reported(self):
        self.assert_refused("nic/x.c", "struct row *first;\n", 1, "state")

    def test_a_path_named_in_the_readme_must_exist(self):
        self.assert_refused("README.md", "See `dataplane/gone.c`.\n", 1, "does not exist")

    def test_a_file_ends_with_a_newline(self):
        self.assert_refused("nic/x.c", "int f(void);", 1, "newline")

    def test_what_is_legal_is_left_alone(self):
        self.plant("nic/x.c", '''
static const char *const names[] = {"a", "b"};
static const struct row {
	int a;
} rows[] = {
	{1},
};
enum { COUNT = 2 };
struct thing;

/* Never strcpy() here. */
static int f(const char *text, int (*call)(int, int, int, int, int, int, int))
{
	static const int table[] = {1};

	return call("strcpy(" + text, table);
}

struct thing {
	int member;
};
''')
        self.plant("nic/x_main.c", "static int stopped;\n")
        self.plant("tests/x_test.c", "static int count;\n")
        self.plant("README.md", "See `nic/x.c` and `build/x`.\n")
        self.assert_clean()


if __name__ == "__main__":
    unittest.main()
