"""Runs in the system's Python. Arguments: application (its name, or the id of its process), then one of
tree | screen | words | focused | find NAME ROLE | texts NAME | press NAME [DESCRIPTION] | write NAME TEXT |
focus NAME | bus | serve.

`serve` takes such words as one JSON array a line on standard input, and answers each with a line: {"answer": …} or
{"error": …}. It spares the start of a Python for each question.
"""

import json
import sys
import time

import pyatspi
from gi.repository import Atspi, GLib

PATIENCE = 30_000  # milliseconds for one answer of the program
_MENU_DEPTH = 3  # below the application, a window and its menu bar


def application(name):
    for child in pyatspi.Registry.getDesktop(0):
        # The bus itself knows the process: another program on it that does not answer holds up nobody.
        if child is not None and (name == str(child.get_process_id()) or (not name.isdigit() and name == child.name)):
            return child
    return None


def walk(node, depth=0):
    yield node, depth
    for index in range(min(node.childCount, 500)):
        child = node.getChildAtIndex(index)
        if child is not None:
            yield from walk(child, depth + 1)


def walk_showing(node, depth=0):
    """Without what is hidden and all that is in it; each property is a question to the other process."""
    yield node, depth
    for index in range(if_there(lambda: min(node.childCount, 500)) or 0):
        child = if_there(lambda at=index: node.getChildAtIndex(at))
        if child is not None and if_there(lambda one=child: one.getState().contains(pyatspi.STATE_SHOWING)):
            yield from walk_showing(child, depth + 1)


def by_name(root):
    """All that is showing, in the order in which a name is looked up: the menus of the menu bar last.

    They are the first thing of the window, and some have the name of something else.
    """
    menus = []
    for node, depth in walk_showing(root):
        # Roles are asked for where the bar may be: each is a question to the other process.
        if depth <= _MENU_DEPTH and role_of(node) == "menu item":
            menus.append((node, depth))
        else:
            yield node, depth
    yield from menus


def if_there(ask):
    """The answer, or None where what is asked went while the tree is walked, as rows do while text streams."""
    try:
        return ask()
    except GLib.GError as error:
        if "No such object" not in str(error):
            raise
        return None


def text_of(node):
    """Asked for by itself: the list of all interfaces takes ten times as long."""
    return if_there(lambda: node.queryText().getText(0, -1) if node.get_text_iface() else None)


def name_of(node):
    """The accessible name; None where the node went."""
    return if_there(lambda: node.name)


def role_of(node):
    """The name of its role as older versions of at-spi2-core have it; None where the node went."""
    role = if_there(node.getRoleName)
    return "push button" if role == "button" else role


def described(node, depth):
    box = node.queryComponent().getExtents(pyatspi.DESKTOP_COORDS) if node.get_component_iface() else None
    text = text_of(node)
    actions = node.queryAction() if node.get_action_iface() else None
    return {
        "name": node.name,
        "role": role_of(node),
        "states": [pyatspi.stateToString(state) for state in node.getState().getStates()],
        "text": text,
        "actions": [actions.getName(index) for index in range(actions.nActions)] if actions else [],
        "box": [box.x, box.y, box.width, box.height] if box else None,
        "depth": depth,
    }


def find(root, name, role):
    """The first showing node of this name and this role, where they are not empty; None without one."""
    for node, depth in by_name(root):
        if name in {"", name_of(node)} and role in {"", role_of(node)}:
            return described(node, depth)
    return None


def showing(root, name, interface, description=""):
    """The first node of this name that is showing and can do what is asked; a label beside a field cannot.

    With a description only one that has it.
    """
    for node, _ in by_name(root):
        # Qt's labels have the interface of actions and no action.
        if (
            name_of(node) == name
            and description in {"", if_there(lambda one=node: one.description)}
            and interface in pyatspi.listInterfaces(node)
            and (interface != "Action" or node.queryAction().nActions)
        ):
            return node
    about = f" about {description!r}" if description else ""
    raise SystemExit(f"nothing showing is called {name!r}{about} and has {interface}")


def words(root):
    """Names and texts of all that is showing; a look at `screen` costs the program three times as much."""
    parts = []
    for node, _ in walk_showing(root):
        parts.append(f"{name_of(node) or ''}\n{text_of(node) or ''}")
    return "\n".join(parts)


def texts(root, name):
    """The texts of all showing nodes of this name; only they are asked for more than their name."""
    found = [text_of(node) for node, _ in walk_showing(root) if name_of(node) == name]
    return [text for text in found if text is not None]


def focused(root):
    """The names of all that is showing and has the keyboard, or is the current row of a list."""
    return [node.name for node, _ in walk_showing(root) if node.getState().contains(pyatspi.STATE_FOCUSED)]


LOOKS = {
    "tree": lambda root: [described(node, depth) for node, depth in walk(root)],
    "screen": lambda root: [described(node, depth) for node, depth in walk_showing(root)],
    "words": words,
    "focused": focused,
    "find": find,
    "texts": texts,
}
# While the application is not on the bus yet.
NOTHING = {"tree": [], "screen": [], "words": "", "focused": [], "find": None, "texts": []}


def on_bus():
    """For whoever reads a failure: each application that is registered, and whether it answers."""
    desktop = pyatspi.Registry.getDesktop(0)
    lines = []
    for index in range(desktop.childCount):
        try:
            child = desktop.getChildAtIndex(index)
            lines.append(f"{child.name!r}, process {child.get_process_id()}, {child.childCount} windows")
        except (GLib.GError, AttributeError) as error:
            lines.append(f"application {index} does not answer: {error}")
    return "\n".join(lines)


def main(app_name, what, *arguments):
    if what == "bus":
        return on_bus()
    root = application(app_name)
    if root is None:
        if what in NOTHING:
            return NOTHING[what]
        raise SystemExit(f"no application {app_name!r}")
    if what in LOOKS:
        return LOOKS[what](root, *arguments)
    if what == "press":
        actions = showing(root, arguments[0], "Action", *arguments[1:]).queryAction()
        pressed_at = time.monotonic()
        try:
            actions.doAction(0)
        except GLib.GError as error:
            # A button that closes its dialog may be gone before it can answer.
            if "No such object" not in str(error):
                raise
        return pressed_at
    if what == "write":
        return showing(root, arguments[0], "EditableText").queryEditableText().setTextContents(arguments[1])
    return showing(root, arguments[0], "Component").queryComponent().grabFocus()


def serve(app_name):
    # The usual 0.8 s is less than what a busy machine may take.
    Atspi.set_timeout(PATIENCE, PATIENCE)
    # What is remembered is only renewed by a main loop, and there is none here.
    pyatspi.Registry.getDesktop(0).set_cache_mask(Atspi.Cache.NONE)
    for line in sys.stdin:
        try:
            said = {"answer": main(app_name, *json.loads(line))}
        except (SystemExit, GLib.GError, LookupError, NotImplementedError, RuntimeError) as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), flush=True)


if sys.argv[2] == "serve":
    serve(sys.argv[1])
else:
    print(json.dumps(main(*sys.argv[1:])))
