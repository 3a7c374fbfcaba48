"""Check that a shell line was surely parsed as the shell reads it.

The parser (tree-sitter-bash) is more lenient than a shell: it takes for one thing what the shell takes for two, or
skips what it cannot use. Each check here is a place where the two were seen to differ, or where shells differ from
each other. The name of a check says what the node surely is where it returns True.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from desktop_agent.permissions.shell.syntax import (
    RESERVED,
    WORDS,
    is_inert_variable,
    is_variable_name,
    node_text,
    word_set,
)

if TYPE_CHECKING:
    from tree_sitter import Node

# What touches is one word to the shell; the parser now and then makes two of it.
_WORD_PARTS = WORDS | {"command_name"}
_BEFORE_WORD_PART = _WORD_PARTS | {"file_redirect", "herestring_redirect"}
_JOINING = frozenset({"concatenation", "string", "heredoc_body", "regex"})
# To the shell each of these is one word or a part of one; a blank that is not quoted ends it.
_WITHIN_ONE_WORD = _WORD_PARTS - {"string_content"} | word_set(
    "variable_assignment regex extglob_pattern brace_expression"
)
_QUOTED = word_set("string heredoc_body")
_QUOTING = word_set(
    "string raw_string ansi_c_string command_substitution process_substitution expansion arithmetic_expansion"
)
_ON_ONE_LINE = word_set("command declaration_command unset_command file_redirect herestring_redirect")
_BEFORE = b" \t\n;&|()"
_AFTER = b" \t\n;&|()<>"
_REDIRECTIONS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
_SEPARATORS_BEFORE = frozenset({b"", *(bytes([char]) for char in _BEFORE)})
_SEPARATORS_AFTER = frozenset({b"", *(bytes([char]) for char in _AFTER)})
_STRAY_IN_WORD = re.compile(r"(?<!\\)(?:\\\\)*[\s;&|()<>]|\\\n")
_SET = re.compile(r"\w+\+?=")
_PLAIN_DELIMITER = re.compile(r"('?)([A-Za-z0-9_]+)\1")
# Only plain reads: what may run code or set something on the way is another matter.
_PLAIN_EXPANSION = re.compile(
    r"""\$\{(?:
        \#? (?: [A-Za-z_]\w* (?:\[(?:[0-9]+|[@*])\])? | [0-9]+ | [@*\#?$!-] )
        | (?: [A-Za-z_]\w* | [0-9]+ ) (?: :?[-+] | %%? | \#\#? ) [\w./,:@%+*?-]*
    )\}""",
    re.ASCII | re.VERBOSE,
)
# A name in a sum may hold a subscript, and that may run a command.
_PLAIN_SUM = re.compile(r"\$\(\([0-9 +*/%-]+\)\)", re.ASCII)
# The shell takes a line end behind `\\` away before it reads anything else, and so may join what the parser parts.
_CONTINUATION = re.compile(rb"\\\n")
_BLANKS = frozenset({b" ", b"\t"})
# Behind a dash, which closes the stream, bash begins another word.
_STREAM_OR_FILE = re.compile(r"[\w./+][\w./+-]*|-")
# What the shell expands in a quoted text.
_STARTS_EXPANSION = re.compile(r"\$[\w({@*#?!$-]|`")
_ESCAPE = re.compile(r"\\.", re.DOTALL)
_DECLARING = word_set("declare typeset export readonly local unset unsetenv")
# Between brackets only words are plain: `[ x && rm y ]` runs rm, although the parser takes it for one test.
_NO_PLAIN_TEST = re.compile(r"[&|;<>()`\n]")


def is_unambiguous(root: "Node", source: bytes) -> bool:
    """Return whether nothing in the tree is doubtful: no error, nothing skipped, and each node as a shell reads it."""
    if root.has_error:
        return False
    nodes = list(_nodes(root))
    # The leaves of a quoted text are not checked, but those of a substitution in it are.
    quoted = (child for node in nodes if node.type in _QUOTED for child in node.named_children)
    if not all(_is_fully_covered(node, source, node.start_byte, node.end_byte) for node in quoted):
        return False
    if not _is_fully_covered(root, source, 0, len(source)) or _joins_lines(nodes, source):
        return False
    heredocs = sum(node.type == "heredoc_redirect" for node in nodes)
    if heredocs > 1 or (heredocs and b"\\\n" in source):
        return False
    # Behind `}` a redirection names a variable to set, and a subscript of that may run a command.
    touches = (source[max(node.start_byte - 1, 0) : node.start_byte] for node in nodes if node.type in _REDIRECTIONS)
    return _SEPARATORS_BEFORE.issuperset(touches) and all(_is_unambiguous_node(node, source) for node in nodes)


def _joins_lines(nodes: list["Node"], source: bytes) -> bool:
    """Return whether a line continuation joins more than blanks; within single quotes it is none."""
    literal = [(node.start_byte, node.end_byte) for node in nodes if node.type == "raw_string"]
    for continuation in _CONTINUATION.finditer(source):
        start, end = continuation.span()
        is_between_words = source[start - 1 : start] in _BLANKS or source[end : end + 1] in _BLANKS
        if not is_between_words and not any(first < start < last for first, last in literal):
            return True
    return False


def _is_fully_covered(node: "Node", source: bytes, start: int, end: int) -> bool:
    """Return whether the parser skipped nothing between these offsets, and each leaf is what it looks like."""
    for leaf in _leaves(node):
        if not _is_whitespace(source[start : leaf.start_byte]) or not _is_plain_leaf(leaf, source):
            return False
        start = max(start, leaf.end_byte)
    return _is_whitespace(source[start:end])


def _is_plain_leaf(leaf: "Node", source: bytes) -> bool:
    text = node_text(leaf, source)
    if leaf.is_named:
        return True
    if _is_blank_before(leaf):
        text = text.lstrip()
    if text != leaf.type and text.strip():
        return False
    if text == "``":
        # The end of one substitution and the beginning of the next; the parser takes it for an empty one inside.
        return False
    if text == "$" and (leaf.parent is None or leaf.parent.type != "simple_expansion"):
        # `$"x"` is x to bash and $x to the plain shell.
        return False
    in_expansion = leaf.parent is not None and leaf.parent.type in {"expansion", "subscript", "brace_expression"}
    if (leaf.type not in RESERVED and leaf.type not in _DECLARING) or in_expansion:
        return True
    before = source[max(leaf.start_byte - 1, 0) : leaf.start_byte]
    after = source[leaf.end_byte : leaf.end_byte + 1]
    return (not before or before in _BEFORE) and (not after or after in _AFTER)


def _is_blank_before(leaf: "Node") -> bool:
    """Return whether blanks before the leaf are of its string: the parser counts those between two `$x` to one."""
    parent = leaf.parent
    return leaf.type in {"$", "${", "$("} and parent is not None and _is_in_string(parent)


def _is_in_string(node: "Node") -> bool:
    return node.parent is not None and node.parent.type == "string"


def _is_unambiguous_node(node: "Node", source: bytes) -> bool:
    return (
        _has_gaps_between_words(node)
        and _is_within_one_word(node, source)
        and _is_on_one_line(node, source)
        and _passes_check_of_its_type(node, source)
    )


def _has_gaps_between_words(node: "Node") -> bool:
    return node.type in _JOINING or not any(
        a.type in _BEFORE_WORD_PART and b.type in _WORD_PARTS and a.end_byte == b.start_byte
        for a, b in pairwise(node.children)
    )


def _is_within_one_word(node: "Node", source: bytes) -> bool:
    if node.type not in _WITHIN_ONE_WORD:
        return True
    text = _unquoted_text(node, source)
    return _STRAY_IN_WORD.search(text.lstrip() if _is_in_string(node) else text) is None


def _is_on_one_line(node: "Node", source: bytes) -> bool:
    if node.type not in _ON_ONE_LINE:
        return True
    gaps = (source[a.end_byte : b.start_byte] for a, b in pairwise(node.children))
    return all(b"\n" not in gap.replace(b"\\\n", b"") for gap in gaps)


def _passes_check_of_its_type(node: "Node", source: bytes) -> bool:
    check = _CHECKS.get(node.type)
    if check is not None:
        return check(node, source)
    return _is_plain_text(node.type, node_text(node, source))


def _is_plain_command(node: "Node", source: bytes) -> bool:
    """Check for `a == b`, which gives `==` to the program, and `_=a b`, which runs b."""
    name = node.child_by_field_name("name")
    sets = name is not None and _SET.match(node_text(name, source)) is not None
    return not sets and all(child.is_named for child in node.children)


def _is_plain_group(node: "Node", source: bytes) -> bool:
    """Check for two brackets, which begin a sum to bash, and a group in a group to the plain shell."""
    return not node_text(node, source).startswith("((")


def _is_plain_word(node: "Node", source: bytes) -> bool:
    """Check for `2>`, which is a stream, and for a backslash at the end, which belongs to what comes next."""
    text = node_text(node, source)
    if text.isdigit():
        return source[node.end_byte : node.end_byte + 1] not in {b"<", b">"}
    return not text.endswith("\\")


def _is_plain_assignment(node: "Node", source: bytes) -> bool:
    """Check that no word touches the assignment; `x+=1` is a program to the plain shell."""
    is_touched = source[node.end_byte : node.end_byte + 1] not in _SEPARATORS_AFTER
    return not is_touched and all(child.type != "+=" for child in node.children) and _sets_inert_variable(node, source)


def _sets_inert_variable(node: "Node", source: bytes) -> bool:
    names = (node_text(child, source) for child in node.named_children if child.type == "variable_name")
    return is_inert_variable(next(names, None))


def _is_plain_variable(node: "Node", source: bytes) -> bool:
    """Check the name. A number is the name of a word that a function was given: it can be read, and not set."""
    text = node_text(node, source)
    is_read = node.parent is not None and node.parent.type in {"simple_expansion", "expansion"}
    return is_variable_name(text) or (is_read and text.isdecimal())


def _is_in_expansion(node: "Node", _: bytes) -> bool:
    return node.parent is not None and node.parent.type == "expansion"


def _is_portable(node: "Node", source: bytes) -> bool:
    """Check for `function` and `select`, which are programs to the plain shell."""
    return node.children[0].type not in {"function", "select"} and (
        node.type != "for_statement" or _sets_inert_variable(node, source)
    )


def _is_plain_string(node: "Node", source: bytes) -> bool:
    """Return whether nothing is left in a string that a shell would expand."""
    return _STARTS_EXPANSION.search(_literal_text(node, source)) is None


def _is_plain_substitution(node: "Node", source: bytes) -> bool:
    """Return whether nothing is nested between backticks: the shell takes one layer of backslashes away before it
    reads.

    In a string bash looks for braces as if each quote between the backticks ended it.
    """
    text = node_text(node, source).lstrip()
    return not text.startswith("`") or ("\\" not in text and not ('"' in text and _is_in_string(node)))


def _has_certain_redirections(node: "Node", source: bytes) -> bool:
    return _has_one_target(node) and _is_stream_or_file(node, source)


def _has_one_target(node: "Node") -> bool:
    """Return whether no word of the command is among the targets: the parser takes later words for more files."""
    operators = {child.type for child in node.children if not child.is_named}
    targets = sum(child.type != "file_descriptor" for child in node.named_children)
    return targets <= (0 if operators & {">&-", "<&-"} else 1)


def _is_stream_or_file(node: "Node", source: bytes) -> bool:
    """Return whether the target is read once: behind `>&` and `<&` bash expands even what single quotes hold."""
    operators = {child.type for child in node.children if not child.is_named}
    if not operators & {">&", "<&"} or not node.named_children:
        return True
    return _STREAM_OR_FILE.fullmatch(node_text(node.named_children[-1], source)) is not None


def _literal_text(node: "Node", source: bytes) -> str:
    """Return what of a string belongs to none of its expansions, without what a backslash quotes."""
    text, end = "", node.start_byte
    for child in node.named_children:
        if child.type != "string_content":
            text += source[end : child.start_byte].decode("utf-8", "replace") + " "
            end = child.end_byte
    return _ESCAPE.sub("", text + source[end : node.end_byte].decode("utf-8", "replace"))


def _is_plain_text(kind: str, text: str) -> bool:
    match kind:
        case "ansi_c_string":
            # The plain shell ends it at the first quote, bash does not.
            return "\\'" not in text
        case "extglob_pattern":
            return _NO_PLAIN_TEST.search(text) is None
        case "expansion":
            return _PLAIN_EXPANSION.fullmatch(text.lstrip()) is not None
        case "arithmetic_expansion":
            return _PLAIN_SUM.fullmatch(text) is not None
        case "file_descriptor":
            # With more digits it is a word to the plain shell.
            return len(text) == 1 and text.isdecimal()
        case "command_name":
            # `! ! a` denies twice; the parser takes the second for a program.
            return text not in RESERVED
        case _:
            return True


def _unquoted_text(node: "Node", source: bytes) -> str:
    """Return what of the node no quote and no substitution holds, also what stands between its children."""
    if node.type in _QUOTING:
        return ""
    if not node.children:
        return node_text(node, source)
    text, end = "", node.start_byte
    for child in node.children:
        text += source[end : child.start_byte].decode("utf-8", "replace") + (_unquoted_text(child, source) or "x")
        end = child.end_byte
    return text + source[end : node.end_byte].decode("utf-8", "replace")


def _is_plain_test(node: "Node", source: bytes) -> bool:
    return _NO_PLAIN_TEST.search(_unquoted_text(node, source)) is None


def _is_plain_pattern(node: "Node", source: bytes) -> bool:
    """Return whether it stands between double brackets, or is cut off a value."""
    return _is_in_expansion(node, source) or _is_in_double_brackets(node, source)


def _is_in_double_brackets(node: "Node", _: bytes) -> bool:
    parent = node.parent
    while parent is not None and parent.type != "test_command":
        parent = parent.parent
    return parent is not None and parent.children[0].type == "[["


def _is_whitespace(text: bytes) -> bool:
    """Return whether it is blank. A line continuation without a blank joins two words, which the parser parts."""
    is_continued = b"\\\n" in text
    return not text.replace(b"\\\n", b"").strip(b" \t\n") and (not is_continued or b" " in text or b"\t" in text)


def _is_comment(node: "Node", source: bytes) -> bool:
    before = source[max(node.start_byte - 2, 0) : node.start_byte]
    return not before or (before[-1:] in b" \t\n;&|(" and before[-2:-1] != b"\\")


def _is_certain_heredoc(node: "Node", source: bytes) -> bool:
    parts = {child.type: node_text(child, source) for child in node.named_children}
    start = _PLAIN_DELIMITER.fullmatch(parts.get("heredoc_start", ""))
    if not _WITHIN_ONE_WORD.isdisjoint(parts):
        # Words that stand behind the delimiter belong to the command.
        return False
    if start is None or parts.get("heredoc_end", "").strip() != start[2] or "heredoc_body" not in parts:
        return False
    if source[node.end_byte : node.end_byte + 1] not in {b"", b"\n"}:
        # The shell looks for a line that is nothing but the delimiter.
        return False
    body = parts["heredoc_body"]
    # The parser overlooks some of what is run in there.
    if not start[1] and ("`" in body or "$(" in body or "${" in body):
        return False
    return start[2] not in (line.lstrip("\t") for line in body.rstrip("\n").split("\n"))


_CHECKS: dict[str, Callable[["Node", bytes], bool]] = {
    "command": _is_plain_command,
    "test_command": _is_plain_test,
    "regex": _is_plain_pattern,
    "comment": _is_comment,
    "heredoc_redirect": _is_certain_heredoc,
    "file_redirect": _has_certain_redirections,
    "variable_assignment": _is_plain_assignment,
    "for_statement": _is_portable,
    "function_definition": _is_portable,
    "string": _is_plain_string,
    "command_substitution": _is_plain_substitution,
    "compound_statement": _is_plain_group,
    "subshell": _is_plain_group,
    "subscript": _is_in_expansion,
    "variable_name": _is_plain_variable,
    "word": _is_plain_word,
    "number": _is_plain_word,
}


def _nodes(node: "Node") -> Iterator["Node"]:
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(current.children))


def _leaves(node: "Node") -> Iterator["Node"]:
    stack = [node]
    while stack:
        current = stack.pop()
        # The grammar keeps no node for every character of a quoted text; all of it belongs to it.
        if current.children and current.type not in _QUOTED:
            stack.extend(reversed(current.children))
        elif current.start_byte != current.end_byte:
            yield current
