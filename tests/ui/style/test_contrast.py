"""Every colour of the theme can be read where it is written, and every control is seen (WCAG 2.2, 1.4.3 and 1.4.11).

The tables say what is written and drawn on which ground. A colour that is in none of them, and a rule of the style
sheet that writes a pair that is not there, is an error.
"""

import itertools
import re

import pytest

from resources import resource_path
from ui.settings.usage.usage_chart import unread_colour
from ui.style.style_sheet import _colours, mix_colours
from ui.style.theme import _FOLDER_TINTS, DARK, LIGHT, STRONG_DARK, STRONG_LIGHT, Theme, folder_tint
from ui.transcript.style import word_colors

THEMES = (LIGHT, DARK, STRONG_LIGHT, STRONG_DARK)
INKS = ("text", "muted", "accent", "link", "danger", "warning", "success")
PAGES = ("window", "sidebar", "surface", "hover")
TEXT_ON = {
    **dict.fromkeys(PAGES, INKS),
    "user_bubble": INKS,
    "code_background": INKS,
    "danger_background": ("text", "muted", "link", "danger"),
    "warning_background": ("text", "muted", "link", "warning"),
    "success_background": ("text", "success"),
    "added_background": ("text", "danger", "warning"),
    "removed_background": ("text", "danger", "warning"),
    "selection": ("text",),
    "pressed": ("text", "quiet_chosen"),
    "match": ("text", "muted", "link"),
    "current_match": ("text",),
    "accent": ("on_accent",),
    "accent_hover": ("on_accent",),
}
"""Inks by their ground: 4.5:1, and 7:1 with strong contrast."""
FOUND_AT = {"current_match": ("muted", "link")}
"""4.5:1 in every theme: the one match that is walked to has an edge, too."""
SEEN_ON = {
    **dict.fromkeys(PAGES, ("accent", "danger", "warning", "success")),
    "pressed": ("accent", "danger", "warning", "success"),
    **dict.fromkeys(("user_bubble", "code_background", "danger_background", "warning_background"), ("accent",)),
    "current_match": ("warning",),
}
"""Focus rings, edges and symbols by their ground: 3:1."""
EDGES_ON = dict.fromkeys(("window", "sidebar", "surface"), ("field_edge", "muted"))
"""What shows where a field, a box to tick and a scroll bar are: 3:1."""
DECORATION = {"border", "edge"}
"""Edges of what is seen without them: cards, and buttons with words. With strong contrast they too are seen."""
BLOCK = re.compile(r"([^{}]+)\{([^}]*)\}")


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def colours_of(theme: Theme) -> dict[str, str]:
    """Colours by name: of the theme, and what the sheet and the rows make of them."""
    made = _colours(theme) | {"quiet_chosen": mix_colours(theme.muted, theme.text, 0.35)}
    return {name: value for name, value in made.items() if value.startswith("#")}


def too_poor(theme: Theme, pairs: dict[str, tuple[str, ...]], least: float) -> list[str]:
    found = colours_of(theme)
    ratios = {(ink, ground): contrast(found[ink], found[ground]) for ground, inks in pairs.items() for ink in inks}
    return [f"{ink} on {ground}: {ratio:.2f}" for (ink, ground), ratio in ratios.items() if ratio < least]


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_text_can_be_read_on_every_ground(theme):
    assert too_poor(theme, TEXT_ON, 7 if theme.outline else 4.5) == []
    assert too_poor(theme, FOUND_AT, 4.5) == []


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_focus_symbols_and_the_edges_of_fields_are_seen(theme):
    assert too_poor(theme, SEEN_ON, 3) == []
    assert too_poor(theme, EDGES_ON, 3) == []


@pytest.mark.parametrize("theme", [STRONG_LIGHT, STRONG_DARK], ids=lambda theme: theme.name)
def test_with_strong_contrast_every_edge_is_seen(theme):
    edges = ("outline", "border", "edge", "field_edge", "accent")
    assert too_poor(theme, dict.fromkeys((*PAGES, "user_bubble"), edges), 3) == []


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_folders_are_seen_on_every_row(theme):
    found = colours_of(theme)
    pairs = itertools.product(_FOLDER_TINTS, ("sidebar", "hover", "pressed"))
    poor = {pair: contrast(folder_tint(theme, pair[0]), found[pair[1]]) for pair in pairs}
    assert {pair: ratio for pair, ratio in poor.items() if ratio < 3} == {}


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_coloured_words_can_be_read_in_a_box_and_on_a_card(theme):
    pairs = itertools.product(word_colors(theme).items(), ("code_background", "surface"))
    poor = {(word, ground): contrast(colour, getattr(theme, ground)) for (word, colour), ground in pairs}
    assert {pair: ratio for pair, ratio in poor.items() if ratio < (7 if theme.outline else 4.5)} == {}


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_every_bar_of_the_chart_is_seen(theme):
    pairs = itertools.product((theme.accent, unread_colour(theme), theme.muted), (theme.window, theme.surface))
    assert {pair: ratio for pair in pairs if (ratio := contrast(*pair)) < 3} == {}


def test_no_colour_is_forgotten():
    tables = (TEXT_ON, SEEN_ON, EDGES_ON, FOUND_AT)
    named = {name for table in tables for ground, inks in table.items() for name in (ground, *inks)}
    assert set(colours_of(STRONG_LIGHT)) - named - DECORATION - {"outline"} == set()


def rules() -> list[tuple[str, dict[str, str]]]:
    """The selectors of the style sheet, each with what its rules set by names of colours."""
    sheet = re.sub(r"/\*.*?\*/", "", resource_path("style", "window.qss").read_text(encoding="utf-8"), flags=re.DOTALL)
    # `${title}pt` is a size.
    sheet = re.sub(r"\$\{\w+\}", "0", sheet)
    found: dict[str, dict[str, str]] = {}
    for selectors, body in BLOCK.findall(sheet):
        for line in body.split(";"):
            what, _, value = line.partition(":")
            if name := re.search(r"\$(\w+)|transparent", value):
                for selector in selectors.split(","):
                    found.setdefault(selector.strip(), {})[what.strip()] = name[1] or "transparent"
    return list(found.items())


def test_every_rule_of_the_sheet_writes_a_pair_of_the_tables():
    pairs = {(ink, ground) for ground, inks in TEXT_ON.items() for ink in inks}
    found = {
        (rule[what], rule[ground])
        for selector, rule in rules()
        for what, ground in (("color", "background"), ("selection-color", "selection-background-color"))
        if what in rule and rule.get(ground, "transparent") != "transparent" and ":disabled" not in selector
    }
    assert len(found) > 8
    assert found - pairs - {("text", "pressed")} == set()


def test_what_is_switched_on_has_an_edge_that_is_seen():
    on = [rule for selector, rule in rules() if selector.endswith(":checked") and "kind" not in selector]
    assert {rule.get("border-color", rule.get("border")) for rule in on} == {"field_edge", "accent"}


def test_every_ring_and_every_field_has_an_edge_that_is_seen():
    edges = [(selector, rule.get("border-color", rule.get("border", ""))) for selector, rule in rules()]
    rings = {edge for selector, edge in edges if ":focus" in selector and edge}
    assert rings == {"accent", "text"}
    field = re.compile(r"Q(LineEdit|PlainTextEdit|\w*SpinBox|ComboBox)")
    fields = {edge for selector, edge in edges if field.fullmatch(selector)}
    assert fields == {"field_edge"}
