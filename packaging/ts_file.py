"""Qt Linguist's files of translations (.ts): read and written as Linguist itself writes them."""

import re
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from source_strings import SourceString

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "resources" / "translations"
LANGUAGES = {"de": 2, "zh_CN": 1}
"""The languages of the window besides English, and how many forms a number has in each."""

QUOTES = {'"': "&quot;", "'": "&apos;"}
PLACEHOLDER = re.compile(r"\{\w*\}|%n|%L?\d")


@dataclass(frozen=True, slots=True)
class Translation:
    """The forms of a translation, one unless the string has a form for each number."""

    forms: tuple[str, ...]
    finished: bool = True

    @property
    def is_complete(self) -> bool:
        return self.finished and all(self.forms)


Catalog = dict[SourceString, Translation]


def ts_path(language: str) -> Path:
    """Return the file of a language."""
    return FOLDER / f"desktop_agent_{language}.ts"


def read_ts(path: Path) -> Catalog:
    """Read a file; a file that is missing is empty. Raises ParseError."""
    if not path.exists():
        return {}
    catalog: Catalog = {}
    for context in ElementTree.parse(path).getroot().iter("context"):  # noqa: S314  our own
        for message in context.iter("message"):
            numerus = message.get("numerus") == "yes"
            string = SourceString(
                context.findtext("name", ""), message.findtext("source", ""), message.findtext("comment", ""), numerus
            )
            translation = message.find("translation")
            if translation is None:
                continue
            forms = [form.text or "" for form in translation.iter("numerusform")] or [translation.text or ""]
            catalog[string] = Translation(tuple(forms), finished=translation.get("type") is None)
    return catalog


def write_ts(path: Path, language: str, catalog: Catalog) -> None:
    """Write a file; contexts in the order of their names, strings as they come."""
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        "<!DOCTYPE TS>",
        f'<TS version="2.1" language="{language}" sourcelanguage="en">',
    ]
    strings = sorted(catalog, key=lambda string: string.context)
    for context, group in groupby(strings, key=lambda string: string.context):
        lines += ["<context>", f"    <name>{_xml(context)}</name>"]
        for string in group:
            lines += _message(string, catalog[string])
        lines.append("</context>")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*lines, "</TS>", ""]), encoding="utf-8")


def problems(string: SourceString, translation: Translation, language: str) -> list[str]:
    """Return what is wrong with a translation: a form or a placeholder is missing, or one is not of the source."""
    faults: list[str] = []
    if len(translation.forms) != (LANGUAGES[language] if string.numerus else 1):
        faults.append("it has not as many forms as the language has")
    placeholders = set(PLACEHOLDER.findall(string.text))
    for form in translation.forms:
        if not form.strip():
            faults.append("it is empty")
        elif set(PLACEHOLDER.findall(form)) != placeholders:
            faults.append(f"“{form}” has other placeholders than {sorted(placeholders)}")
        elif string.text.endswith("…") != form.endswith("…"):
            faults.append(f"“{form}” lost or gained the ellipsis")
    return faults


def _message(string: SourceString, translation: Translation) -> list[str]:
    lines = ['    <message numerus="yes">' if string.numerus else "    <message>"]
    lines.append(f"        <source>{_xml(string.text)}</source>")
    if string.comment:
        lines.append(f"        <comment>{_xml(string.comment)}</comment>")
    state = "" if translation.finished else ' type="unfinished"'
    if string.numerus:
        lines.append(f"        <translation{state}>")
        lines += [f"            <numerusform>{_xml(form)}</numerusform>" for form in translation.forms]
        lines.append("        </translation>")
    else:
        lines.append(f"        <translation{state}>{_xml(translation.forms[0])}</translation>")
    return [*lines, "    </message>"]


def _xml(text: str) -> str:
    return escape(text, QUOTES)
