"""What the nodes of a parsed shell line mean: words, redirections, variables, and what makes a line doubtful."""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node


def word_set(names: str) -> frozenset[str]:
    """Names that stand in one text, with spaces between."""
    return frozenset(names.split())


# Words of the shell itself are such only where nothing touches them.
RESERVED = word_set("if then elif else fi for while until select in do done case esac function { } ! [ ] [[ ]]")
# All else makes a line one that is not understood.
_STRUCTURE = word_set(
    "program list pipeline subshell compound_statement if_statement elif_clause else_clause for_statement "
    "while_statement do_group case_statement case_item function_definition negated_command redirected_statement "
    "comment command command_name test_command declaration_command unset_command file_redirect heredoc_redirect "
    "herestring_redirect heredoc_start heredoc_body heredoc_content heredoc_end file_descriptor variable_assignment "
    "variable_name unary_expression binary_expression negated_expression parenthesized_expression test_operator "
    "regex extglob_pattern brace_expression subscript"
)
WORDS = word_set(
    "word number raw_string string string_content ansi_c_string concatenation simple_expansion expansion "
    "special_variable_name command_substitution process_substitution arithmetic_expansion"
)
RECURSED = _STRUCTURE | WORDS

_ESCAPED = re.compile(r"\\(\n|.)", re.DOTALL)
_ESCAPED_IN_STRING = re.compile(r'\\([\n$`"\\])')
# Patterns of file names, braces, and a home folder at the start of a path.
_EXPANDED = re.compile(r"[*?\[]|\{(?!\})|[@+!]\(|(?:^|[=:])~")
# A shell runs what stands in these when it looks at them, or does sums with what they are set to (bash(1), "Shell
# Variables"); the options of a shell that is started decide how it reads.
_SPECIAL_VARIABLES = word_set("BASH_ENV PS4 SHELLOPTS BASHOPTS RANDOM SRANDOM HISTCMD OPTIND SECONDS BASHPID")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# POSIX, "Environment Variables": names in lower case are left to applications; the proxies are the known exception.
_PRIVATE_VARIABLE_NAME = re.compile(r"[a-z][a-z0-9_]*(?<!_proxy)")


@dataclass(frozen=True, slots=True)
class Redirection:
    """From or to a file. `target` is None where it holds an expansion; `source` is the target as written."""

    target: str | None
    source: str
    writes: bool


def node_text(node: "Node", source: bytes) -> str:
    """The node as written."""
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def literal_word(node: "Node", source: bytes) -> str | None:
    """What the command gets for this word, or None where that is not literal."""
    text = node_text(node, source)
    match node.type:
        case "command_name" if len(node.children) == 1:
            return literal_word(node.children[0], source)
        case "word" | "number" | "variable_name":
            return _unquoted(text)
        case "raw_string":
            return text[1:-1]
        case "string":
            return _string_value(text, node) if len(node.children) != 3 else _heredoc_value(node, source)
        case "concatenation":
            return _concatenated_value(node, source)
        case _:
            # The words of the grammar themselves: `[`, `export`.
            return None if node.is_named else text


def _unquoted(text: str) -> str | None:
    return None if _EXPANDED.search(_ESCAPED.sub("x", text)) else _unescaped(text)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: "" if found[1] == "\n" else found[1], text)


def _string_value(text: str, node: "Node") -> str | None:
    inside = text[1:-1]
    bare = _ESCAPED_IN_STRING.sub("", inside)
    if "$" in bare or "`" in bare or any(each.type not in {"string_content", '"'} for each in node.children):
        return None
    return _ESCAPED_IN_STRING.sub(lambda found: "" if found[1] == "\n" else found[1], inside)


def _heredoc_value(node: "Node", source: bytes) -> str | None:
    """Return what `"$(cat <<'END' … END)"` stands for, as messages of several lines are written; else as any string."""
    inner = node.children[1]
    statement = inner.named_children[0] if inner.type == "command_substitution" and inner.named_children else None
    if statement is None or statement.type != "redirected_statement" or len(inner.named_children) != 1:
        return _string_value(node_text(node, source), node)
    command, *redirections = statement.named_children
    document = [each for each in redirections if each.type == "heredoc_redirect"]
    if node_text(command, source) != "cat" or len(redirections) != 1 or len(document) != 1:
        return None
    kinds = [each.type for each in document[0].children]
    start, body = document[0].children[1], document[0].children[2]
    # Quoted, nothing in it is expanded; `<<-` would take tabs away.
    is_raw = kinds == ["<<", "heredoc_start", "heredoc_body", "heredoc_end"] and node_text(start, source)[0] in "'\""
    if not is_raw:
        return None
    # The reader's body begins behind the empty lines and spaces that it begins with.
    begin = source.index(b"\n", start.end_byte) + 1
    return source[begin : body.end_byte].decode("utf-8", "replace").rstrip("\n")


def _concatenated_value(node: "Node", source: bytes) -> str | None:
    """Pieces without space between; what stands outside of quotes is looked at as one, or it would hide a brace."""
    if any(a.end_byte != b.start_byte for a, b in pairwise(node.children)):
        return None
    bare, literal = "", ""
    for each in node.children:
        is_bare, text = each.type in {"word", "number"}, node_text(each, source)
        part = _unescaped(text) if is_bare else literal_word(each, source)
        if part is None or not each.is_named:
            return None
        bare += _ESCAPED.sub("x", text) if is_bare else "x"
        literal += part
    return None if _EXPANDED.search(bare) else literal


def file_redirection(node: "Node", source: bytes) -> Redirection | None:
    """The file of a redirection; None where it only joins two streams, or leads to nowhere."""
    target = node.named_children[-1] if node.named_children else None
    if target is None or target.type == "file_descriptor":
        # `>&-` closes a stream.
        return None
    operator = "".join(each.type for each in node.children if not each.is_named)
    text = node_text(target, source)
    if operator in {">&", "<&"} and (target.type == "number" or text == "-"):
        return None
    literal = literal_word(target, source)
    return None if literal == "/dev/null" else Redirection(literal, text, ">" in operator)


def sets_variable(node: "Node") -> bool:
    """Whether it changes what later commands may find in their environment."""
    if node.type in {"variable_assignment", "unset_command"}:
        return True
    if node.type != "for_statement":
        return False
    name = next((each for each in node.named_children if each.type == "variable_name"), None)
    return name is None or name.text is None or not is_private_variable(name.text.decode("utf-8", "replace"))


def is_private_variable(name: str) -> bool:
    """Whether a variable of this name is the line's own affair: no program looks for it."""
    return _PRIVATE_VARIABLE_NAME.fullmatch(name) is not None


def is_variable_name(text: str) -> bool:
    """Whether a variable can have this name."""
    return _VARIABLE_NAME.fullmatch(text) is not None


def is_inert_variable(name: str | None) -> bool:
    """Whether it is the name of a variable, and what it is set to is no more than a text to any shell."""
    return name is not None and is_variable_name(name) and name not in _SPECIAL_VARIABLES
