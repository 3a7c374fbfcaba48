"""Runs in the system's Python. Arguments: application (its name, or the id of its process), then one of
tree | screen | words | focused | find NAME ROLE | texts NAME | press NAME [DESCRIPTION] | write NAME TEXT |
focus NAME | bus | serve.

`serve` reads such words from standard input, one JSON array a line, and answers each with a line: {"answer": …} or
{"error": …}. So not every question starts another Python.

AT-SPI is spoken over D-Bus itself: the library of AT-SPI asks one question after the other and waits for each answer,
which costs the program four times as much as answering many at once.
"""

import json
import sys
import time

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, Gio, GLib  # noqa: E402 - the version must be required first

PATIENCE = 30_000  # milliseconds for one answer of the program
_MENU_DEPTH = 3  # below the application, a window and its menu bar
_MOST = 500  # children of one node that are read
_REGISTRY = ("org.a11y.atspi.Registry", "/org/a11y/atspi/accessible/root")
_DAEMON = ("org.freedesktop.DBus", "/org/freedesktop/DBus")
# The errors of Qt about a widget that was deleted, and about one that is being deleted.
_GONE = ("No such object", "was not found in object")
_NOTHING = "/org/a11y/atspi/null"
_ON_SCREEN = int(Atspi.CoordType.SCREEN)


def accessibility_bus():
    session = Gio.bus_get_sync(Gio.BusType.SESSION)
    method = ("org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress")
    address = session.call_sync(*method, None, None, Gio.DBusCallFlags.NONE, PATIENCE, None).unpack()[0]
    kind = Gio.DBusConnectionFlags
    return Gio.DBusConnection.new_for_address_sync(
        address, kind.AUTHENTICATION_CLIENT | kind.MESSAGE_BUS_CONNECTION, None, None
    )


BUS = accessibility_bus()


def ask_all(questions):
    """Ask all questions (node, interface, method, arguments) at once.

    Returns an answer for each; None where the node was deleted, as rows are while text streams.
    """
    answers, errors, open_questions = {}, [], len(questions)

    def take(connection, result, index):
        nonlocal open_questions
        open_questions -= 1
        try:
            answer = connection.call_finish(result).unpack()
        except GLib.GError as error:
            if not any(words in str(error) for words in _GONE):
                errors.append(error)
        else:
            # Methods have one result at most, or a result that is one whole, like a state.
            answers[index] = answer[0] if answer else True

    for index, ((name, path), interface, method, arguments) in enumerate(questions):
        message = (name, path, interface, method, arguments, None, Gio.DBusCallFlags.NONE, PATIENCE, None)
        BUS.call(*message, take, index)
    while open_questions:
        GLib.MainContext.default().iteration(may_block=True)
    if errors:
        raise errors[0]
    return [answers.get(index) for index in range(len(questions))]


def ask_each(nodes, method, arguments=None, interface="Accessible"):
    """Ask each node; return the answers by node, without nodes that were deleted."""
    answers = ask_all([(node, f"org.a11y.atspi.{interface}", method, arguments) for node in nodes])
    return {node: answer for node, answer in zip(nodes, answers, strict=True) if answer is not None}


def read_property(nodes, name, interface="Accessible"):
    """Read a property of each node; return the values by node, without nodes that were deleted."""
    arguments = GLib.Variant("(ss)", (f"org.a11y.atspi.{interface}", name))
    answers = ask_all([(node, "org.freedesktop.DBus.Properties", "Get", arguments) for node in nodes])
    return {node: answer for node, answer in zip(nodes, answers, strict=True) if answer is not None}


def with_interface(interface, nodes):
    """The nodes that have this interface."""
    return [node for node, names in ask_each(nodes, "GetInterfaces").items() if f"org.a11y.atspi.{interface}" in names]


def process_of(name):
    """The id of the process behind this name of the bus."""
    return ask_all([(_DAEMON, _DAEMON[0], "GetConnectionUnixProcessID", GLib.Variant("(s)", (name,)))])[0]


def applications():
    return [tuple(child) for child in ask_each([_REGISTRY], "GetChildren").get(_REGISTRY, ())]


def application(name):
    if name.isdigit():
        # The bus itself knows the process, so another program on it that does not answer delays nobody.
        return next((child for child in applications() if str(process_of(child[0])) == name), None)
    return next((child for child, title in read_property(applications(), "Name").items() if title == name), None)


def children_of(counts):
    """The first children of each node, by the node. `counts` says how many it has."""
    children_by_node = ask_each([node for node, count in counts.items() if 0 < count <= _MOST], "GetChildren")
    for node in [node for node, count in counts.items() if count > _MOST]:
        numbers = [GLib.Variant("(i)", (index,)) for index in range(_MOST)]
        questions = [(node, "org.a11y.atspi.Accessible", "GetChildAtIndex", number) for number in numbers]
        children_by_node[node] = ask_all(questions)
    return {
        node: [tuple(child) for child in children if child and child[1] != _NOTHING]
        for node, children in children_by_node.items()
    }


def walk(root, *, include_hidden=False):
    """The node and all nodes showing below it with their depths, depth first. They are asked for level by level."""
    below, level = {}, [root]
    while level:
        children_by_node = children_of(read_property(level, "ChildCount"))
        every = [child for children in children_by_node.values() for child in children]
        kept = every if include_hidden else with_state(every, Atspi.StateType.SHOWING)
        below |= {node: [child for child in children if child in kept] for node, children in children_by_node.items()}
        level = list(dict.fromkeys(child for node in children_by_node for child in below[node] if child not in below))
    return dict(depth_first(root, below, 0))


def depth_first(node, below, depth):
    yield node, depth
    for child in below.get(node, ()):
        yield from depth_first(child, below, depth + 1)


def with_state(nodes, state):
    """The nodes that have this state."""
    return {node for node, bits in ask_each(nodes, "GetState").items() if has(bits, state)}


def has(bits, state):
    """Whether a state is set: `bits` is two words, with one bit for each state."""
    return bool(bits[int(state) // 32] >> int(state) % 32 & 1)


def by_name(nodes):
    """The nodes of a walk in the order in which a name is looked up: the menus of the menu bar last.

    They come first in the window, and some have the same name as something below them.
    """
    # Roles are asked for only where the menu bar may be.
    roles = roles_of([node for node, depth in nodes.items() if depth <= _MENU_DEPTH])
    return sorted(nodes, key=lambda node: roles.get(node) == "menu item")


def roles_of(nodes):
    """The names of the roles, as older versions of at-spi2-core have them."""
    names = {node: Atspi.role_get_name(Atspi.Role(role)) for node, role in ask_each(nodes, "GetRole").items()}
    return {node: "push button" if name == "button" else name for node, name in names.items()}


def texts_of(nodes):
    """The text of each node that has one."""
    return ask_each(with_interface("Text", nodes), "GetText", GLib.Variant("(ii)", (0, -1)), "Text")


def actions_of(nodes):
    """The names of the actions of each node that has some. Qt's labels have the interface, but no action."""
    counts = read_property(with_interface("Action", nodes), "NActions", "Action")
    return {node: action_names(node, count) for node, count in counts.items() if count}


def action_names(node, count):
    indices = [GLib.Variant("(i)", (index,)) for index in range(count)]
    return ask_all([(node, "org.a11y.atspi.Action", "GetName", index) for index in indices])


def boxes_of(nodes):
    return ask_each(with_interface("Component", nodes), "GetExtents", GLib.Variant("(u)", (_ON_SCREEN,)), "Component")


def described(nodes):
    """Return name, role, states, text, actions, box and depth of each node, without nodes that were deleted.

    `nodes` are their depths by node.
    """
    names, roles, states = read_property(nodes, "Name"), roles_of(nodes), ask_each(nodes, "GetState")
    texts, actions, boxes = texts_of(nodes), actions_of(nodes), boxes_of(nodes)
    return [
        {
            "name": names[node],
            "role": roles[node],
            "states": [state_name(number) for number in range(64) if has(states[node], number)],
            "text": texts.get(node),
            "actions": actions.get(node, []),
            "box": boxes.get(node),
            "depth": depth,
        }
        for node, depth in nodes.items()
        if node in names and node in roles and node in states
    ]


def state_name(number):
    return Atspi.StateType(number).value_nick.replace("-", " ")


def named(nodes, name):
    """The nodes of a walk that have this name, in the order in which a name is looked up."""
    return [node for node, node_name in read_property(by_name(nodes), "Name").items() if name == node_name]


def find(root, name, role):
    """The first showing node of this name and this role, where they are not empty; None without one."""
    every = walk(root)
    nodes = named(every, name) if name else by_name(every)
    if role:
        nodes = [node for node, node_role in roles_of(nodes).items() if node_role == role]
    return next(iter(described({node: every[node] for node in nodes[:1]})), None)


def showing(root, name, interface, description=""):
    """The first showing node of this name that has the interface; the label beside a field does not have it.

    With a description, only a node that has it.
    """
    able = with_interface(interface, named(walk(root), name))
    if interface == "Action":
        able = list(actions_of(able))
    if description:
        descriptions = read_property(able, "Description")
        able = [node for node in descriptions if descriptions[node] == description]
    if able:
        return able[0]
    about = f" about {description!r}" if description else ""
    raise SystemExit(f"nothing showing is called {name!r}{about} and has {interface}")


def words(root):
    """Names and texts of all that is showing. `screen` costs the program twice as much."""
    nodes = walk(root)
    names, contents = read_property(nodes, "Name"), texts_of(nodes)
    return "\n".join(f"{names.get(node, '')}\n{contents.get(node, '')}" for node in nodes)


def texts(root, name):
    """The texts of all showing nodes of this name. Other nodes are asked for nothing but their name."""
    names = read_property(walk(root), "Name")
    return list(texts_of([node for node, node_name in names.items() if node_name == name]).values())


def focused(root):
    """The names of all showing nodes that have the keyboard focus, or are the current row of a list."""
    nodes = walk(root)
    current = with_state(nodes, Atspi.StateType.FOCUSED)
    return list(read_property([node for node in nodes if node in current], "Name").values())


QUERIES = {
    "tree": lambda root: described(walk(root, include_hidden=True)),
    "screen": lambda root: described(walk(root)),
    "words": words,
    "focused": focused,
    "find": find,
    "texts": texts,
}
# The answers while the application is not on the bus yet.
NOTHING = {"tree": [], "screen": [], "words": "", "focused": [], "find": None, "texts": []}


def on_bus():
    """Say for the message of a failure which applications are registered, and whether each answers."""
    lines = []
    for child in applications():
        try:
            name, count = read_property([child], "Name").get(child), read_property([child], "ChildCount").get(child)
            lines.append(f"{name!r}, process {process_of(child[0])}, {count} windows")
        except GLib.GError as error:
            lines.append(f"{child} does not answer: {error}")
    return "\n".join(lines)


def main(app_name, what, *arguments):
    if what == "bus":
        return on_bus()
    root = application(app_name)
    if root is None:
        if what in NOTHING:
            return NOTHING[what]
        raise SystemExit(f"no application {app_name!r}")
    if what in QUERIES:
        return QUERIES[what](root, *arguments)
    if what == "press":
        node = showing(root, arguments[0], "Action", *arguments[1:])
        pressed_at = time.monotonic()
        # A button that closes its dialog may be deleted before it can answer.
        ask_each([node], "DoAction", GLib.Variant("(i)", (0,)), "Action")
        return pressed_at
    if what == "write":
        text = GLib.Variant("(s)", (arguments[1],))
        return ask_each([showing(root, arguments[0], "EditableText")], "SetTextContents", text, "EditableText") != {}
    return ask_each([showing(root, arguments[0], "Component")], "GrabFocus", None, "Component") != {}


def serve(app_name):
    for line in sys.stdin:
        try:
            response = {"answer": main(app_name, *json.loads(line))}
        except (SystemExit, GLib.GError, LookupError, RuntimeError) as error:
            response = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(response), flush=True)


if sys.argv[2] == "serve":
    serve(sys.argv[1])
else:
    print(json.dumps(main(*sys.argv[1:])))
