"""The strings of the sources that a translation is needed for: those of `tr` and `translate`, and the runtime's own.

lupdate alone would miss the runtime's: templates of sentences, and titles and descriptions of declared settings.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast, get_args, get_origin

from pydantic import BaseModel

from tests.ui.texts import Parsed, error_classes, modules, name_of, sentence_templates

_WORDS_BESIDE_NAMES = re.compile(r"\b(?:a|the|your|or|and|IDEs)\b|'s ")


@dataclass(frozen=True, slots=True)
class SourceString:
    """A string as Qt looks it up. `numerus`: it has a form for each number."""

    context: str
    text: str
    comment: str = ""
    numerus: bool = False


def source_strings() -> list[SourceString]:
    """Return all of them, each once, by context and then in the order of the sources. Raises ValueError."""
    runtime, window = dict(modules("desktop_agent")), dict(modules("ui"))
    strings = [*_window_strings(window), *_sentences(runtime, window), *_startup_words(), *_preferences()]
    unique = dict.fromkeys(strings)
    return sorted(unique, key=lambda string: string.context)


def _sentences(runtime: Parsed, window: Parsed) -> Iterator[SourceString]:
    errors = error_classes(runtime | window)
    for parsed in (runtime, window):
        templates, unread = sentence_templates(parsed, errors)
        if parsed is runtime and unread:
            raise ValueError(f"sentences whose template cannot be read: {', '.join(unread)}")
        for template in sorted(templates):
            # "{text}" alone has nothing to translate; what joins two sentences has, even a space.
            if any(_outside_braces(template)):
                yield SourceString("Sentence", template)


def _outside_braces(template: str) -> list[str]:
    return [part.rpartition("}")[2] for part in template.split("{")]


def _startup_words() -> Iterator[SourceString]:
    """Yield the texts that say when a startup file is run, and by which program, unless that is a mere name."""
    from desktop_agent.sandbox.startup_files import startup_file_table

    for entry in startup_file_table():
        yield SourceString("Sentence", entry.when)
        if _WORDS_BESIDE_NAMES.search(entry.program):
            yield SourceString("Sentence", entry.program)


def _preferences() -> Iterator[SourceString]:
    from desktop_agent.types.preferences import Preferences
    from desktop_agent.types.providers import ConversationParameters

    texts: list[str] = []
    for name, section in Preferences.model_fields.items():
        texts += [name.capitalize(), *_field_texts(cast("type[BaseModel]", section.annotation))]
    for text in (*texts, *_field_texts(ConversationParameters)):
        if any(letter.isalpha() for letter in text):
            yield SourceString("Preferences", text)


def _field_texts(model: type[BaseModel]) -> Iterator[str]:
    """Yield what a form shows of the fields that have a control: `ui/forms/model_fields.py`."""
    from desktop_agent.types.frozen_model import ChoiceNames, LanguagesField, NumberFormat, OptionalNumber

    for name, field in model.model_fields.items():
        kind = field.annotation
        if get_origin(kind) is tuple and not any(isinstance(hint, LanguagesField) for hint in field.metadata):
            continue
        yield field.title or name
        yield field.description or ""
        names: dict[str, str] = {}
        for hint in field.metadata:
            match hint:
                case NumberFormat(unit=unit, zero_text=zero_text):
                    yield from (unit, zero_text)
                case OptionalNumber(empty_text=empty_text):
                    yield empty_text
                case ChoiceNames(names=own):
                    names = dict(own)
                case _:
                    pass
        if get_origin(kind) is Literal:
            yield from (str(choice).capitalize() for choice in get_args(kind) if choice not in names)


def _window_strings(window: Parsed) -> Iterator[SourceString]:
    wrappers = {path: _wrappers_of(tree) for path, tree in window.items()}
    for path, tree in window.items():
        reader = _Reader(path, wrappers[path] | _imported_wrappers(tree, wrappers))
        reader.visit(tree)
        yield from reader.strings


class _Reader(ast.NodeVisitor):
    """Reads the calls of one module. Functions of one line that call `translate` with their argument count too.

    `wrappers` are the contexts of those functions.
    """

    def __init__(self, path: str, wrappers: dict[str, str]) -> None:
        self.strings: list[SourceString] = []
        self._path = path
        self._classes: list[str] = []
        self._constants: list[dict[str, str]] = []
        self._wrappers = wrappers

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._classes.append(node.name)
        self.generic_visit(node)
        self._classes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._constants.append(
            {
                statement.targets[0].id: statement.value.value
                for statement in node.body
                if isinstance(statement, ast.Assign)
                and isinstance(statement.targets[0], ast.Name)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
            }
        )
        self.generic_visit(node)
        self._constants.pop()

    def visit_Call(self, node: ast.Call) -> None:
        name = name_of(node.func)
        if name == "tr" and isinstance(node.func, ast.Attribute):
            if name_of(node.func.value) != "self" or not self._classes:
                raise ValueError(f"{self._path}:{node.lineno}: call tr of self, or translate with a context")
            self._add(node, self._classes[-1], node.args)
        elif name == "translate" and len(node.args) > 1 and (context := self._text(node.args[0])):
            if self._text(node.args[1]) or name_of(node.args[1]) not in {"text", "template"}:
                self._add(node, context, node.args[1:])
        elif isinstance(node.func, ast.Name) and name in self._wrappers:
            self._add(node, self._wrappers[name], node.args)
        self.generic_visit(node)

    def _add(self, node: ast.Call, context: str, words: list[ast.expr]) -> None:
        text = self._text(words[0]) if words else None
        if text is None:
            if context == "Preferences":  # those are read from the declarations; see _preferences
                return
            raise ValueError(f"{self._path}:{node.lineno}: not a literal: {ast.unparse(node)}")
        comment = self._text(words[1]) if len(words) > 1 else None
        self.strings.append(SourceString(context, text, comment or "", numerus=len(words) > 2))

    def _text(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        if isinstance(node, ast.Name) and self._constants:
            return self._constants[-1].get(node.id)
        return None


def _wrappers_of(tree: ast.Module) -> dict[str, str]:
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return {node.name: context for node in functions if (context := _wrapped_context(node))}


def _imported_wrappers(tree: ast.Module, wrappers: dict[str, dict[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            known = wrappers.get(f"{node.module.replace('.', '/')}.py", {})
            found |= {name.name: known[name.name] for name in node.names if name.name in known}
    return found


def _wrapped_context(node: ast.FunctionDef) -> str:
    for statement in node.body:
        match statement:
            case ast.Return(value=ast.Call(func=func, args=[ast.Constant(value=str(context)), ast.Name(id=name)])):
                if name_of(func) == "translate" and name == node.args.args[0].arg and context != "Sentence":
                    return context
            case _:
                pass
    return ""
