"""Runs in the system's Python. Arguments: application, what, and more. Prints one answer as JSON.

rows: role, name and text of every child of the transcript, in order.
row N: the tree of one of them: role, name, text, attributes, actions, children.
find NAME: the same of the first row that has this name.
caret NAME: for the part of this name: caret, the character, word and line around it, the box of a character.
put NAME OFFSET: put the caret into the part of this name.
press ROW NAME: press the first child of a row that has this name.
"""

import json
import sys
import time

import pyatspi
from gi.repository import Atspi

Atspi.set_timeout(30_000, 30_000)


def application(name):
    for _ in range(100):
        for child in pyatspi.Registry.getDesktop(0):
            if child is not None and child.name == name:
                return child
        time.sleep(0.1)
    raise SystemExit(f"no application {name!r}")


def transcript(node):
    if node.name == "Transcript":
        return node
    for index in range(node.childCount):
        descendant = transcript(node.getChildAtIndex(index))
        if descendant is not None:
            return descendant
    return None


def text_of(node):
    return node.queryText().getText(0, -1) if "Text" in pyatspi.listInterfaces(node) else None


def described(node):
    children = [node.getChildAtIndex(index) for index in range(node.childCount)]
    box = node.queryComponent().getExtents(pyatspi.DESKTOP_COORDS)
    actions = node.queryAction() if "Action" in pyatspi.listInterfaces(node) else None
    return {
        "role": node.getRoleName(),
        "name": node.name,
        "text": text_of(node),
        "level": dict(attribute.split(":", 1) for attribute in node.getAttributes() or () if ":" in attribute).get(
            "level"
        ),
        "actions": [actions.getName(index) for index in range(actions.nActions)] if actions else [],
        "box": [box.x, box.y, box.width, box.height],
        "description": node.description,
        "children": [described(child) for child in children],
    }


def parts(node):
    yield node
    for index in range(node.childCount):
        yield from parts(node.getChildAtIndex(index))


def named(node, name):
    return next(part for part in parts(node) if part.name == name)


def around(text, offset):
    kinds = {
        "character": Atspi.TextGranularity.CHAR,
        "word": Atspi.TextGranularity.WORD,
        "line": Atspi.TextGranularity.LINE,
    }
    strings = {name: text.getStringAtOffset(offset, kind) for name, kind in kinds.items()}
    return {name: list(string) for name, string in strings.items()}


def caret(node):
    text = node.queryText()
    offset = text.caretOffset
    box = text.getCharacterExtents(max(0, offset), pyatspi.DESKTOP_COORDS)
    return {"offset": offset, "box": list(box), **around(text, max(0, offset))}


def main(name, what, *arguments):
    root = transcript(application(name))
    if what == "rows":
        rows = [root.getChildAtIndex(index) for index in range(root.childCount)]
        return [[row.getRoleName(), row.name, text_of(row)] for row in rows]
    if what == "row":
        return described(root.getChildAtIndex(int(arguments[0])))
    if what == "find":
        return described(named(root, arguments[0]))
    if what == "caret":
        return caret(named(root, arguments[0]))
    if what == "put":
        return named(root, arguments[0]).queryText().setCaretOffset(int(arguments[1]))
    row, name = root.getChildAtIndex(int(arguments[0])), arguments[1]
    pressable = (part for part in parts(row) if part.name == name and "Action" in pyatspi.listInterfaces(part))
    return next(pressable).queryAction().doAction(0)


print(json.dumps(main(*sys.argv[1:])))
