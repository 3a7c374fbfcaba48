"""What a page says about itself that a browser would not show it.

Read are attributes, the styles of elements, and of the page's own style sheets the rules for one class or id. Style
sheets that lie elsewhere are not asked for, and what scripts would do is not known. Many pages let their words fade in:
what is transparent (`opacity`) is read where the page's own style sheets make it seen, by a rule or by an animation;
else it is not, and how much that was is told.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

_MAX_STYLES = 400_000
_OFF_SCREEN = 500.0
"""Pixels; whoever moves a text so far out of the page means it not to be seen."""
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ESCAPE = re.compile(r"\\([0-9a-f]{1,6})\s?")
_PLAIN_RULE = re.compile(r"([^{}]*)\{([^{}]*)\}")
_ONE_NAME = re.compile(r"(?:[a-z][a-z0-9]*)?([.#][\w-]+)")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)")
_CLEAR = re.compile(r"transparent|#(?:[0-9a-f]{3}0|[0-9a-f]{6}00)|(?:rgba?|hsla?)\(.*[,/]\s*0(?:\.0*)?%?\s*\)")
_NO_SCALE = re.compile(r"scale(?:3d|x|y)?\(\s*0(?:\.0*)?\s*[,)]")
_CLEARED = re.compile(r"opacity\(\s*(?:0+(?:\.0\d*)?|\.0\d*)%?\s*\)")
_ANIMATION = re.compile(r"@(?:-\w+-)?keyframes\s+([\w-]+)")
_ANY_NAME = re.compile(r"[.#][\w-]+")
_MIN_OPACITY = 0.05
"""An opacity up to which nobody reads."""
_CLIPPED = re.compile(r"(?:inset\(\s*(?:100|[5-9]\d)(?:\.\d*)?%|circle\(\s*0|polygon\(\s*0)")

Style = Mapping[str, str]


class HiddenElements:
    """Of one page; `sheets` are the texts of its style sheets."""

    def __init__(self, sheets: Iterable[str] = ()) -> None:
        text = _COMMENT.sub("", "\n".join(sheets)[:_MAX_STYLES].lower())
        rules = tuple(_rules(text))
        self._names = _names_of_rules(rules, is_hidden, {"display", "visibility"})
        self._animations = frozenset(_ANIMATION.findall(text))
        self._appearing = frozenset(_appearing_names(rules))
        self._transparent = _names_of_rules(rules, self._is_transparent, {"opacity"}) - self._appearing

    def hides(self, name: str, attributes: Mapping[str, str]) -> bool:
        """Whether an element of this name, with these attributes, and all that is in it are not shown."""
        return (
            "hidden" in attributes
            or "popover" in attributes
            or (name == "dialog" and "open" not in attributes)
            or attributes.get("aria-hidden", "").lower() == "true"
            or ("style" in attributes and is_hidden(parse_style(attributes["style"])))
            or (bool(self._names) and not self._names.isdisjoint(_names_of(attributes)))
        )

    def makes_transparent(self, name: str, attributes: Mapping[str, str]) -> bool:
        """Whether it and all in it are there and cannot be seen, unless a script makes that. A whole page never is."""
        if name in {"html", "body"}:
            return False
        own = "opacity" in attributes.get("style", "").lower() or "\\" in attributes.get("style", "")
        if not (own or self._transparent):
            return False
        style, names = parse_style(attributes.get("style", "")), _names_of(attributes)
        if self._is_transparent(style):
            return self._appearing.isdisjoint(names)
        return not _becomes_visible(style) and not self._transparent.isdisjoint(names)

    def _is_transparent(self, style: Style) -> bool:
        if _opacity(style) > _MIN_OPACITY and _CLEARED.search(style.get("filter", "")) is None:
            return False
        moved = f"{style.get('animation', '')} {style.get('animation-name', '')}"
        return self._animations.isdisjoint(re.split(r"[\s,]+", moved))


@lru_cache(maxsize=256)
def parse_style(text: str) -> Style:
    """Its properties, in lower case; of one that stands twice the one that holds."""
    found: dict[str, str] = {}
    important: set[str] = set()
    plain = _ESCAPE.sub(_character, _COMMENT.sub("", text.lower()))
    for part in plain.split(";"):
        name, _, value = part.partition(":")
        value, mark, _ = value.partition("!")
        name = name.strip()
        if mark or name not in important:
            found[name] = value.strip()
        if mark:
            important.add(name)
    return found


def is_hidden(style: Style) -> bool:
    """Whether nothing is seen of what has this style."""
    return any(test(style) for test in _TESTS)


def _is_not_displayed(style: Style) -> bool:
    return (
        style.get("display") == "none"
        or style.get("visibility") in {"hidden", "collapse"}
        or style.get("content-visibility") == "hidden"
    )


def _has_clear_text(style: Style) -> bool:
    ground = style.get("background-color") or style.get("background")
    color = style.get("color", "")
    return _CLEAR.fullmatch(color) is not None or bool(color and color == ground)


def _is_tiny(style: Style) -> bool:
    size = style.get("font-size") or next(
        iter(re.findall(r"(?:^|\s)([\d.]+[a-z%]*)(?:/|\s)", style.get("font", ""))), ""
    )
    least = 1.0 if size.endswith(("px", "pt")) else 5.0 if size.endswith("%") else 0.05
    return (
        _number(size) <= least
        or _NO_SCALE.search(f"{style.get('transform', '')} scale({style.get('scale', 1)})") is not None
    )


def _is_off_screen(style: Style) -> bool:
    moved = ["text-indent", "margin-left", "margin-top"]
    if style.get("position") in {"absolute", "fixed"}:
        moved += ["left", "right", "top", "bottom"]
    return any(_number(style.get(each), 0.0) <= -_OFF_SCREEN for each in moved)


def _is_clipped(style: Style) -> bool:
    sizes = ("width", "height", "max-width", "max-height")
    is_cut = any(style.get(each) in {"hidden", "clip"} for each in ("overflow", "overflow-x", "overflow-y"))
    is_empty = is_cut and any(_number(style.get(each)) <= 1 for each in sizes if not style.get(each, "").endswith("em"))
    is_clipped = _CLIPPED.search(style.get("clip-path", "")) is not None
    return is_empty or is_clipped or re.sub(r"[\s,]|px", "", style.get("clip", "")) in {"rect(0000)", "rect(1111)"}


_TESTS: tuple[Callable[[Style], bool], ...] = (
    _is_not_displayed,
    _has_clear_text,
    _is_tiny,
    _is_off_screen,
    _is_clipped,
)


def _opacity(style: Style) -> float:
    value = style.get("opacity", "1")
    return _number(value) / (100 if value.endswith("%") else 1)


def _becomes_visible(style: Style) -> bool:
    return "opacity" in style and _opacity(style) > _MIN_OPACITY


def _number(value: str | None, otherwise: float = float("inf")) -> float:
    found = _NUMBER.match(value or "")
    return float(found[0]) if found else otherwise


def _character(escape: re.Match[str]) -> str:
    code = int(escape[1], 16)
    return chr(code).lower() if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


def _names_of(attributes: Mapping[str, str]) -> set[str]:
    names = {f".{each}" for each in attributes.get("class", "").lower().split()}
    return names | {f"#{attributes['id'].lower()}"} if attributes.get("id") else names


def _rules(sheets: str) -> Iterator[tuple[str, Style]]:
    """Selectors and styles. Rules within rules, as those for paper or for small screens, are left out."""
    for selectors, body in _PLAIN_RULE.findall(_outermost(sheets)):
        yield selectors.rpartition(";")[2], parse_style(body)


def _names_of_rules(
    rules: Iterable[tuple[str, Style]], test: Callable[[Style], bool], otherwise: set[str]
) -> frozenset[str]:
    """Classes and ids with their marks, for which the test holds in the last rule that says something about it."""
    found: dict[str, bool] = {}
    for selectors, style in rules:
        holds = test(style)
        if holds or not otherwise.isdisjoint(style):
            for each in selectors.split(","):
                if name := _ONE_NAME.fullmatch(each.strip()):
                    found[name[1]] = holds
    return frozenset(name for name, holds in found.items() if holds)


def _appearing_names(rules: Iterable[tuple[str, Style]]) -> Iterator[str]:
    """All in selectors for more than one name, which go before those for one, that let something be seen."""
    for selectors, style in rules:
        if _becomes_visible(style):
            for each in selectors.split(","):
                if not _ONE_NAME.fullmatch(each.strip()):
                    yield from _ANY_NAME.findall(each)


def _outermost(sheets: str) -> str:
    """Without rules that hold rules."""
    kept: list[str] = []
    begin, depth = 0, 0
    for brace in re.finditer(r"[{}]", sheets):
        if brace[0] == "{":
            depth += 1
            continue
        depth = max(depth - 1, 0)
        if depth == 0:
            whole = sheets[begin : brace.end()]
            kept.append(whole if whole.count("{") == 1 else "")
            begin = brace.end()
    return "".join(kept)
