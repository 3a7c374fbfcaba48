"""Reads the source for texts that people see: those that bypass translation, and those that wait for it."""

import ast
import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parents[2]
TRANSLATES = {"tr", "translate", "translate_preference", "translate_sentence"}
PASSES_ON = {"escape_mnemonics", "plain_tooltip", "format", "join", "upper", "capitalize", "replace"}

# Which arguments of a call a person reads: positions after `self`, and names.
FIRST, SECOND, THIRD = (0,), (1,), (2,)
TAKES_TEXT: dict[str, tuple[int | str, ...]] = {
    **dict.fromkeys(
        (
            "setText", "setPlainText", "setWindowTitle", "setAccessibleName", "setAccessibleDescription", "setToolTip",
            "setStatusTip", "setWhatsThis", "setPlaceholderText", "setInformativeText", "setDetailedText", "setTitle",
            "setPrefix", "setSuffix", "setNameFilters", "setSpecialValueText", "setLabelText", "show_text",
            "QLabel", "QPushButton", "QToolButton", "QCheckBox", "QRadioButton", "QGroupBox", "QMenu", "QAction",
            "QListWidgetItem", "addAction", "addMenu", "addSection", "addItem", "addItems", "addButton", "addRow",
            "label", "ElidedLabel", "BannerButton", "Button", "Control", "Line", "CodeView", "show_undo", "_card",
                    ),
        FIRST,
    ),
    "QMessageBox": (1, 2),
    "QuestionBox": (1, 2, 3),
    "add_answer": (0,),
    "add_field": (1, "help_text", "accessible_name"),
    "show_warning": FIRST,
    "show_problem": FIRST,
    "check_box": FIRST,
    "text_line": ("placeholder",),
    "text_area": ("placeholder",),
    "number_box": ("prefix", "suffix", "zero_text"),
    "QFileDialog": (1, 3),
    "QInputDialog": SECOND,
    "button": (0, 3, "name"),
    "IconButton": (2, "name"),
    "ShortcutButton": SECOND,
    "ApiKeyField": (0, 1, "name", "placeholder"),
    "QLineEdit": (0, "placeholderText"),
    "addTab": (0, 1, 2),
    "insertItem": SECOND,
    "setItemText": SECOND,
    "setTabText": SECOND,
    "announce": SECOND,
    "add_remedy_button": SECOND,
    "show_state": SECOND,
    "Header": (0, "title", "state", "control"),
    "CodeBlock": ("title",),
    "elidedText": FIRST,
    "paint_flat_button": THIRD,
    "drawText": (1, 2, 3, 4, 5, 6),
}  # fmt: skip
QT_PROPERTIES = {"placeholderText", "text", "toolTip", "windowTitle", "title", "accessibleName"}
# What is called so answers with words for the screen.
SAYS = {"label", "words", "_words", "heading", "title"}
# Names, which are the same in every language. Key names come from Qt, which translates them itself.
NAMES = re.compile(
    r"Desktop Agent|https?://\S+|\b(Ctrl|Shift|Alt|Esc|Enter|Return|Tab|Del)\b|\b[KMG]B\b|(?<=\+)[A-Z0-9]\b"
)

# Where the text of an expression comes from; not what it is chosen by.
PARTS: dict[type[ast.expr], tuple[str, ...]] = {
    ast.JoinedStr: ("values",),
    ast.FormattedValue: ("value",),
    ast.Starred: ("value",),
    ast.NamedExpr: ("value",),
    ast.BinOp: ("left", "right"),
    ast.BoolOp: ("values",),
    ast.IfExp: ("body", "orelse"),
    ast.List: ("elts",),
    ast.Tuple: ("elts",),
    ast.ListComp: ("elt",),
    ast.GeneratorExp: ("elt",),
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect nothing while trees of whole packages are made, which all stay: that was two fifths of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def modules(package: str) -> Iterator[tuple[str, ast.Module]]:
    """Path under the root, and the parsed module, of each file of a package."""
    for file in sorted((ROOT / package).rglob("*.py")):
        yield file.relative_to(ROOT).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def name_of(node: ast.expr) -> str:
    """The last part of a dotted name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _assigned(scope: ast.AST) -> dict[str, list[ast.expr]]:
    """What each plain name of a function or module is ever set to."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return found


@dataclass
class Untranslated:
    """Finds the literals in one module that reach a person as they stand."""

    path: str
    tree: ast.Module
    found: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        outer = {name: values for name, values in _assigned_here(self.tree).items() if name.isupper()}
        self._look(self.tree, outer)

    def _look(self, scope: ast.AST, names: dict[str, list[ast.expr]]) -> None:
        for node in ast.iter_child_nodes(scope):
            inner = names
            if isinstance(node, Function):
                inner = names | _assigned(node)
                if node.name in SAYS:
                    for each in ast.walk(node):
                        if isinstance(each, ast.Return) and each.value is not None:
                            self._judge(each.value, inner)
            if isinstance(node, ast.Call):
                for argument in _texts_of(node):
                    self._judge(argument, inner)
            self._look(node, inner)

    def _judge(self, text: ast.expr, names: dict[str, list[ast.expr]]) -> None:
        for literal in _literals(text, names, set()):
            if any(each.isalpha() for each in NAMES.sub("", str(literal.value))):
                self.found.append(f"{self.path}:{literal.lineno}: {literal.value!r}")


def _assigned_here(tree: ast.Module) -> dict[str, list[ast.expr]]:
    return _assigned(ast.Module([each for each in tree.body if not isinstance(each, Function | ast.ClassDef)], []))


def _texts_of(call: ast.Call) -> Iterator[ast.expr]:
    wanted = TAKES_TEXT.get(name_of(call.func), ())
    for index, argument in enumerate(call.args):
        if index in wanted:
            yield argument
    for keyword in call.keywords:
        of_qt = name_of(call.func).startswith("Q") and keyword.arg in QT_PROPERTIES
        if keyword.arg in wanted or of_qt:
            yield keyword.value


def _literals(node: ast.expr, names: dict[str, list[ast.expr]], seen: set[str]) -> Iterator[ast.Constant]:
    """The string literals that become part of what this expression says."""
    match node:
        case ast.Constant(value=str()):
            yield node
            return
        case ast.Name(id=name) if name not in seen:
            inner, seen = names.get(name, []), seen | {name}
        case ast.Call(func=func, args=args) if name_of(func) in PASSES_ON:
            inner = [*args, func.value] if isinstance(func, ast.Attribute) else args
        case ast.Subscript(value=ast.Dict(values=values)):
            inner = values
        case _:
            inner = [part for name in PARTS.get(type(node), ()) for part in _as_list(getattr(node, name))]
    for part in inner:
        yield from _literals(part, names, seen)


def _as_list(part: ast.expr | list[ast.expr]) -> list[ast.expr]:
    return part if isinstance(part, list) else [part]


def untranslated(source: str, path: str = "source.py") -> list[str]:
    """`path:line: 'text'` for each literal of this module that a person would read untranslated."""
    return Untranslated(path, ast.parse(source)).found


Parsed = dict[str, ast.Module]
# Templates that are read where they come from: of errors and of another sentence, and the table of startup files.
HANDED_ON = {"what", "remedy", "template", "program", "when"}
# What makes a sentence of its first argument.
MAKES_SENTENCE = {"Sentence", "deny", "NotReadable", "_InvalidHeaderError"}
# Where no sentence may be an f-string, which has no template. Callers of the library and models get English anyway.
SAID_TO_PERSONS = ("desktop_agent/conversation/", "desktop_agent/mcp/", "desktop_agent/providers/dialects/")


@no_garbage_collection()
def sentence_templates(
    parsed: Parsed | None = None, errors: dict[str, bool] | None = None
) -> tuple[set[str], list[str]]:
    """Every Sentence template of these modules, for the context `Sentence`; and `path:line` of those it cannot read.

    Without modules those of the runtime.
    """
    parsed = dict(modules("desktop_agent")) if parsed is None else parsed
    errors = error_classes(parsed) if errors is None else errors
    templates: set[str] = set()
    unread: list[str] = []
    for path, tree in parsed.items():
        reader = _Templates(tree, errors)
        templates |= reader.found
        lines = reader.unread + (reader.formatted if path.startswith(SAID_TO_PERSONS) else [])
        unread += [f"{path}:{line}" for line in lines]
    return templates, unread


def error_classes(parsed: Parsed) -> dict[str, bool]:
    """AgentError and all below it; whether what they are given is a sentence (True) or a fragment of one."""
    classes = [node for tree in parsed.values() for node in _classes(tree)]
    found = {"AgentError": True}
    while True:
        more = {
            each.name: each.name != "ProviderError" and all(found[name] for name in bases)
            for each in classes
            if each.name not in found and (bases := [name_of(base) for base in each.bases if name_of(base) in found])
        }
        if not more:
            return found
        found |= more


def _classes(scope: ast.AST) -> Iterator[ast.ClassDef]:
    """Look among statements alone: expressions hold no classes, and are most of a tree."""
    for node in (*getattr(scope, "body", ()), *getattr(scope, "orelse", ())):
        if isinstance(node, ast.ClassDef):
            yield node
        yield from _classes(node)


class _Templates:
    """The templates in one module: literals, and those handed through a function or a table of the same module."""

    def __init__(self, tree: ast.Module, errors: dict[str, bool]) -> None:
        self.found: set[str] = set()
        self.unread: list[int] = []
        self.formatted: list[int] = []
        self._tree = tree
        self._errors = errors
        self._global = _assigned_here(tree)
        self._class = ""
        self._look(tree, None)

    def _look(self, scope: ast.AST, function: Function | None) -> None:
        for node in ast.iter_child_nodes(scope):
            if isinstance(node, ast.ClassDef):
                self._class = node.name
                if node.name in self._errors:
                    self._read_class(node)
            if isinstance(node, ast.Call):
                self._read_call(node, function)
            self._look(node, node if isinstance(node, Function) else function)

    def _read_class(self, node: ast.ClassDef) -> None:
        for name, values in _assigned(ast.Module(node.body, [])).items():
            if name in {"default_remedy", "template"}:
                self.found |= set().union(*(self._texts(each, None) for each in values))

    def _read_call(self, node: ast.Call, function: Function | None) -> None:
        name = name_of(node.func)
        if name == "cls":
            name = self._class
        if name in MAKES_SENTENCE and node.args:
            texts = self._texts(node.args[0], function)
            self.found |= texts
            handed_on = name_of(node.args[0]) in HANDED_ON
            if not texts and not handed_on:
                self.unread.append(node.lineno)
        elif name in self._errors:
            sentences = [*node.args[: 2 if self._errors[name] else 0], *_remedy_of(node)]
            for each in sentences if self._errors[name] else _remedy_of(node):
                self.found |= self._texts(each, function)

    def _texts(self, node: ast.expr, function: Function | None) -> set[str]:
        """All that this expression can be."""
        match node:
            case ast.Constant(value=str(text)):
                return {text}
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                pairs = product(self._texts(left, function), self._texts(right, function))
                return {first + second for first, second in pairs}
            case ast.IfExp(body=body, orelse=other):
                return self._texts(body, function) | self._texts(other, function)
            case ast.Call(func=ast.Name(id=name)):
                return self._returned(name)
            case ast.Dict(values=values):
                return set().union(*(self._texts(each, function) for each in values))
            case ast.Subscript(value=table):
                return self._texts(table, function)
            case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[_, default]):
                return self._texts(table, function) | self._texts(default, function)
            case ast.Name(id=name):
                return self._named(name, function)
            case ast.JoinedStr():
                self.formatted.append(node.lineno)
                return set()
            case _:
                return set()

    def _named(self, name: str, function: Function | None) -> set[str]:
        values = _assigned(function).get(name, []) if function else []
        if function and name in (names := [each.arg for each in function.args.args]):
            values += self._given(function.name, names.index(name) - (names[0] in {"self", "cls"}), name)
            defaults = dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
            values += [defaults[name]] if name in defaults else []
        values = values or self._global.get(name, [])
        return set().union(*(self._texts(each, None) for each in values))

    def _returned(self, name: str) -> set[str]:
        """What a function of this module returns."""
        functions = [each for each in self._tree.body if isinstance(each, Function) and each.name == name]
        returns = [(each, node) for each in functions for node in ast.walk(each) if isinstance(node, ast.Return)]
        texts = [self._texts(node.value, each) for each, node in returns if node.value and not _calls(node, name)]
        return set().union(*texts)

    def _given(self, function: str, index: int, name: str) -> list[ast.expr]:
        """What callers in this module hand over."""
        calls = [each for each in ast.walk(self._tree) if isinstance(each, ast.Call) and name_of(each.func) == function]
        by_name = [word.value for each in calls for word in each.keywords if word.arg == name]
        return [each.args[index] for each in calls if len(each.args) > index] + by_name


def _remedy_of(node: ast.Call) -> list[ast.expr]:
    return [each.value for each in node.keywords if each.arg == "remedy"]


def _calls(scope: ast.AST, name: str) -> bool:
    return any(isinstance(node, ast.Call) and name_of(node.func) == name for node in ast.walk(scope))
