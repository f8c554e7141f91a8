#!/usr/bin/env python3
"""scripts/mutants.py finds the changes a test ought to notice, and leaves alone what it says."""

import os
import sys
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "scripts"))

from mutants import mutants_of  # noqa: E402


def changes(body, name="f"):
    """What is changed in the body of a function."""
    return {m.change for m in mutants_of("x.c", f"int {name}(int a)\n{{\n\t{body}\n}}\n")}


class Changes(unittest.TestCase):
    def test_comparisons_are_turned_and_moved_by_one(self):
        self.assertEqual(changes("return a < b;"), {"< -> <=", "< -> >="})
        self.assertEqual(changes("return a == b;"), {"== -> !="})

    def test_boolean_operators_and_words(self):
        self.assertEqual(changes("return a && !b;"), {"&& -> ||", "! -> nothing"})
        self.assertEqual(changes("return true;"), {"true -> false"})

    def test_numbers_are_one_off(self):
        self.assertEqual(changes("return a + 1;"), {"+ -> -", "1 -> 2", "1 -> 0"})
        self.assertEqual(changes("return -1;"), {"1 -> 2", "1 -> 0"})

    def test_statements_are_dropped(self):
        self.assertEqual(changes("call(a);"), {"call(a) -> nothing"})
        self.assertIn("p->x = a -> nothing", changes("p->x = a;"))
        self.assertIn("continue -> nothing", changes("while (a) continue;"))

    def test_conditions_are_negated(self):
        self.assertIn("not (is_it(a))", changes("if (is_it(a)) call(a);"))

    def test_equal_changes_in_one_line_have_names_of_their_own(self):
        self.assertIn("== -> != #2", changes("return a == b || c == d;"))

    def test_the_new_text_is_the_old_one_with_one_change(self):
        text = "int f(int a)\n{\n\treturn a < 7;\n}\n"
        made = {text[:m.at] + m.new + text[m.behind:] for m in mutants_of("x.c", text)}
        self.assertIn("int f(int a)\n{\n\treturn a <= 7;\n}\n", made)
        self.assertIn("int f(int a)\n{\n\treturn a < 8;\n}\n", made)

    def test_a_key_does_not_know_lines(self):
        first = mutants_of("x.c", "int f(int a)\n{\n\treturn a < b;\n}\n")
        second = mutants_of("x.c", "\n\nint f(int a)\n{\n\treturn a < b;\n}\n")
        self.assertEqual([m.key() for m in first], [m.key() for m in second])
        self.assertNotEqual(first[0].line, second[0].line)

    def test_a_digest_is_of_the_function_alone(self):
        first = mutants_of("x.c", "int f(int a)\n{\n\treturn a < b;\n}\n\nint g(void)\n{\n}\n")
        second = mutants_of("x.c", "int e(void)\n{\n}\n\nint f(int a)\n{\n\treturn a < b;\n}\n\n"
                                   "int g(void)\n{\n\tcall();\n}\n")
        digest = {m.function: m.digest for m in first}
        self.assertEqual(digest["f"], next(m.digest for m in second if m.function == "f"))
        changed = mutants_of("x.c", "int f(int a)\n{\n\treturn a < c;\n}\n")
        self.assertNotEqual(digest["f"], changed[0].digest)


class LeftAlone(unittest.TestCase):
    def test_declarations_comments_and_texts(self):
        self.assertEqual(changes('struct x *p; /* a < b */ say("a < b");'),
                         {'say("a < b") -> nothing'})

    def test_checks_of_our_own(self):
        self.assertEqual(changes("CHECK(a < 7);"), set())
        self.assertEqual(changes("CHECK(false);\n\treturn 7;"), set())

    def test_room_for_more_than_is_needed(self):
        self.assertEqual(changes("return heap_zeroed(1, 8);"), set())
        self.assertEqual(changes("return heap_resize(p, a + 1, 8);"), {"+ -> -", "1 -> 0"})

    def test_what_only_gives_back(self):
        self.assertEqual(changes("free(a);", "x_destroy"), set())
        self.assertEqual(changes("free(a);"), set())

    def test_sizes_and_hints(self):
        self.assertEqual(changes("call(sizeof(a[0]));"), {"call(sizeof(a[0])) -> nothing"})
        self.assertEqual(changes("return __builtin_expect(a < b, 0);"), {"< -> <=", "< -> >="})

    def test_enumerations(self):
        self.assertEqual(mutants_of("x.c", "enum { A = 1, B = 2 };\n"), [])


if __name__ == "__main__":
    unittest.main()
