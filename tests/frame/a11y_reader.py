"""Runs in the system's Python. Arguments: application, then tree | press NAME | write NAME TEXT | focus NAME."""

import json
import sys

import pyatspi


def application(name):
    for child in pyatspi.Registry.getDesktop(0):
        if child is not None and child.name == name:
            return child
    return None


def walk(node, depth=0):
    yield node, depth
    for index in range(min(node.childCount, 500)):
        child = node.getChildAtIndex(index)
        if child is not None:
            yield from walk(child, depth + 1)


def described(node, depth):
    interfaces = pyatspi.listInterfaces(node)
    box = node.queryComponent().getExtents(pyatspi.DESKTOP_COORDS) if "Component" in interfaces else None
    text = node.queryText().getText(0, -1) if "Text" in interfaces else None
    actions = node.queryAction() if "Action" in interfaces else None
    return {
        "name": node.name,
        "role": node.getRoleName(),
        "states": [pyatspi.stateToString(state) for state in node.getState().getStates()],
        "text": text,
        "actions": [actions.getName(index) for index in range(actions.nActions)] if actions else [],
        "box": [box.x, box.y, box.width, box.height] if box else None,
        "depth": depth,
    }


def showing(root, name):
    for node, _ in walk(root):
        if node.name == name and node.getState().contains(pyatspi.STATE_SHOWING):
            return node
    raise SystemExit(f"nothing showing is called {name!r}")


def main(app_name, what, *arguments):
    root = application(app_name)
    if root is None:
        if what == "tree":
            return []
        raise SystemExit(f"no application {app_name!r}")
    if what == "tree":
        return [described(node, depth) for node, depth in walk(root)]
    node = showing(root, arguments[0])
    if what == "press":
        return node.queryAction().doAction(0)
    if what == "write":
        return node.queryEditableText().setTextContents(arguments[1])
    return node.queryComponent().grabFocus()


print(json.dumps(main(*sys.argv[1:])))
