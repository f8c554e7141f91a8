"""Finds in a C file each small change that a test ought to notice.

A mutant is one change of one place: a comparison turned or moved by one, an `and` for an `or`, a
condition negated, a number one off, true for false, a statement dropped.  What asserts our own
mistakes, declares something, logs, or takes more memory than it needs is left alone.
"""

import hashlib
import re

TOKEN = re.compile(r"""
    (?P<comment>/\*.*?\*/|//[^\n]*)
  | (?P<directive>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
  | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<number>\b\d[\w.]*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.\.|[^\s\w])
  """, re.VERBOSE | re.DOTALL | re.MULTILINE)

COMPARISONS = {"<": ["<=", ">="], "<=": ["<"], ">": [">=", "<="], ">=": [">"], "==": ["!="],
               "!=": ["=="], "&&": ["||"], "||": ["&&"], "++": ["--"], "--": ["++"],
               "+=": ["-="], "-=": ["+="]}
WORDS = {"true": "false", "false": "true"}
# Nothing is wrong without these; but a mistake of our own would go unnoticed.
SILENT = re.compile(r"D?CHECK|check_fact|static_assert|log_\w+|scenario_trace|sizeof")
# Only memory is lost without them; the sanitizers look after that.
UNMAKING = re.compile(r".*_(destroy|free)|destroy")
FREEING = re.compile(r"free")
# More than they are asked for does no harm.
ALLOCATORS = re.compile(r"heap_\w+|malloc|calloc|realloc|reallocarray")
HINTS = re.compile(r"__builtin_expect")
KEYWORDS = {"if", "for", "while", "switch", "else", "do", "case", "default", "goto", "sizeof",
            "return", "break", "continue"}
TYPES = {"struct", "enum", "const", "static", "bool", "char", "int", "long", "unsigned", "void",
         "size_t", "union", "typedef", "extern"}
FUNCTION = re.compile(r"^[a-z][\w \t*]*?\b(\w+)\(", re.MULTILINE)


class Token:
    __slots__ = ("kind", "text", "at")

    def __init__(self, kind, text, at):
        self.kind, self.text, self.at = kind, text, at


class Mutant:
    """One change: text[at:behind] becomes `new`."""

    __slots__ = ("file", "at", "behind", "new", "line", "function", "digest", "source", "change")

    def __init__(self, file, at, behind, new, change):
        self.file, self.at, self.behind, self.new, self.change = file, at, behind, new, change

    def key(self):
        """Survives edits elsewhere in the file."""
        return "\t".join((self.file, self.function, self.source, self.change))


def tokens_of(text):
    """Those inside braces; comments, directives and enumerations are left out."""
    found, depth, enum_depth, last_words = [], 0, None, []
    for m in TOKEN.finditer(text):
        kind = m.lastgroup
        if kind in ("comment", "directive"):
            continue
        if m[0] == "}":
            depth -= 1
            if depth == enum_depth:
                enum_depth = None
        if depth > 0 and enum_depth is None:
            found.append(Token(kind, m[0], m.start()))
        if m[0] == "{":
            if "enum" in last_words[-2:] and enum_depth is None:
                enum_depth = depth
            depth += 1
        last_words = (last_words + [m[0]])[-2:]
    return found


def closing(tokens, index):
    """The index of the bracket that closes the one at `index`."""
    depth = 0
    for i in range(index, len(tokens)):
        if tokens[i].text in "([{":
            depth += 1
        elif tokens[i].text in ")]}":
            depth -= 1
            if depth == 0:
                return i
    return len(tokens) - 1


def calls_of(tokens, names):
    """The ranges of calls, arguments included."""
    for i, token in enumerate(tokens[:-1]):
        if token.kind == "word" and names.fullmatch(token.text) and tokens[i + 1].text == "(":
            yield i, closing(tokens, i + 1)


def marked(tokens, names):
    marks = [False] * len(tokens)
    for first, last in calls_of(tokens, names):
        marks[first:last + 1] = [True] * (last + 1 - first)
    return marks


def is_unary_place(token):
    return token.kind == "sign" and token.text not in ")]" or token.text in KEYWORDS


def small_changes(tokens):
    """Signs, numbers and words."""
    for i, token in enumerate(tokens):
        text = token.text
        before = tokens[i - 1] if i > 0 else token
        if token.kind == "sign" and text in COMPARISONS:
            for new in COMPARISONS[text]:
                yield i, i, new
        elif text == "!" and tokens[i + 1].text != "=":
            yield i, i, ""
        elif text in "+-" and token.kind == "sign" and not is_unary_place(before):
            yield i, i, "-" if text == "+" else "+"
        elif token.kind == "number" and re.fullmatch(r"\d+", text):
            yield i, i, str(int(text) + 1)
            if int(text) == 1:
                yield i, i, "0"
        elif text in WORDS:
            yield i, i, WORDS[text]


def is_statement_start(tokens, i):
    if i == 0:
        return True
    before = tokens[i - 1].text
    return before in (";", "{", "}", ":", "else", ")")


def is_expression(tokens, i):
    """Whether the statement at `i` does something, and is no declaration."""
    first, second = tokens[i].text, tokens[i + 1].text
    if first in ("break", "continue"):
        return True
    if first == "return":
        return second == ";"
    if first == "*" or first in ("++", "--"):
        return tokens[i + 1].kind == "word"
    if tokens[i].kind != "word" or first in KEYWORDS or first in TYPES or \
            SILENT.fullmatch(first) or FREEING.fullmatch(first):
        return False
    return second in ("(", "=", "->", ".", "[", "++", "--", "+=", "-=", "|=", "&=", "*=", "^=",
                      "%=", "/=", ">>=", "<<=")


def statements(tokens):
    """Dropped: the statement's tokens, without the semicolon."""
    depth = 0
    for i, token in enumerate(tokens[:-1]):
        if is_statement_start(tokens, i) and depth == 0 and is_expression(tokens, i):
            end = i
            while end < len(tokens) and tokens[end].text != ";":
                end = closing(tokens, end) + 1 if tokens[end].text in "([{" else end + 1
            if end < len(tokens) and "{" not in {t.text for t in tokens[i:i + 2]}:
                yield i, end - 1, ""
        if token.text in "([":
            depth += 1
        elif token.text in ")]":
            depth -= 1


def conditions(tokens):
    """Negated: what is in the brackets of an if or a while, unless a small change does it."""
    for i, token in enumerate(tokens[:-1]):
        if token.text in ("if", "while") and tokens[i + 1].text == "(":
            end = closing(tokens, i + 1)
            inner = {t.text for t in tokens[i + 2:end]}
            if not inner & {"==", "!=", "!"}:
                yield i + 2, end - 1, None


def mark_behind_the_end(tokens, marks):
    """The statement behind CHECK(false) is never reached."""
    for i in range(len(tokens) - 5):
        if [t.text for t in tokens[i:i + 5]] == ["CHECK", "(", "false", ")", ";"]:
            end = i + 5
            while end < len(tokens) and tokens[end].text not in (";", "}"):
                marks[end] = True
                end += 1


def all_changes(tokens):
    quiet, generous = marked(tokens, SILENT), marked(tokens, ALLOCATORS)
    mark_behind_the_end(tokens, quiet)
    for _, last in calls_of(tokens, HINTS):
        quiet[last - 1] = True
    for source in (small_changes(tokens), conditions(tokens), statements(tokens)):
        for first, last, new in source:
            is_count = tokens[first].kind == "number" and (
                int(new) > int(tokens[first].text) or tokens[first - 1].text == "(")
            if not quiet[first] and not (generous[first] and is_count):
                yield first, last, new


def describe(old, new):
    short = " ".join(old.split())
    short = short if len(short) <= 60 else short[:57] + "..."
    if new is None:
        return f"not ({short})"
    return f"{short} -> {new or 'nothing'}"


def functions_of(text):
    """Where each begins, its name, and a digest of what it says."""
    starts = [(0, "?")] + [(m.start(), m[1]) for m in FUNCTION.finditer(text)]
    ends = [start for start, _ in starts[1:]] + [len(text)]
    return [(start, name, hashlib.sha256(text[start:end].encode()).hexdigest()[:16])
            for (start, name), end in zip(starts, ends)]


def mutants_of(file, text):
    """All mutants of a file, in the order of their places."""
    tokens = tokens_of(text)
    functions = functions_of(text)
    lines = text.split("\n")
    found = []
    for first, last, new in all_changes(tokens):
        at, behind = tokens[first].at, tokens[last].at + len(tokens[last].text)
        old = text[at:behind]
        m = Mutant(file, at, behind, f"!({old})" if new is None else new, describe(old, new))
        m.line = text.count("\n", 0, at) + 1
        m.function, m.digest = next(f[1:] for f in reversed(functions) if f[0] <= at)
        m.source = " ".join(lines[m.line - 1].split())
        if not UNMAKING.fullmatch(m.function):
            found.append(m)
    found.sort(key=lambda m: (m.at, m.behind, m.change))
    return distinguish(found)


def distinguish(mutants):
    """Numbers those that would have one key."""
    seen = {}
    for m in mutants:
        key = m.key()
        seen[key] = seen.get(key, 0) + 1
        if seen[key] > 1:
            m.change += f" #{seen[key]}"
    return mutants
