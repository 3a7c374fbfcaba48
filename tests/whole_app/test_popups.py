"""Open menus and lists as an outside client finds them: with their names, roles and rows."""

from collections.abc import Iterator

import pytest

from tests.fakes.threaded_model_server import MODEL, ModelServer, Story, numbered
from tests.fakes.window_process import Screen, opened, wait_until


@pytest.fixture(scope="module")
def screen(real_display: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Screen]:
    data = tmp_path_factory.mktemp("popups") / "data"
    with (
        ModelServer(lambda _: Story(numbered(3))) as server,
        opened(real_display, data, "--base-url", server.url, "--model", MODEL) as (_, window),
    ):
        window.wait_for("Conversation settings")
        window.send("Hello")
        window.wait_last("Assistant said", "w0 w1 w2")
        yield window


def rows_of(screen: Screen, name: str, role: str) -> list[str]:
    """Return the names of the rows in the window of this name and role."""
    tree = screen.tree()
    index = next(
        (number for number, node in enumerate(tree) if (node["name"], node["role"]) == (name, role)), len(tree)
    )
    rows: list[str] = []
    for node in tree[index + 1 :]:
        if node["depth"] <= tree[index]["depth"]:
            break
        rows += [node["name"]] if node["role"] in {"menu item", "list item"} else []
    return rows


def close(screen: Screen, name: str, role: str) -> None:
    """Press Esc, and wait until the window has left the tree."""
    screen.keys("Escape")
    wait_until(f"{name!r} goes", lambda: screen.find(name, role) is None)


@pytest.mark.exhaustive("tests/ui/shell/test_accessible_screens.py::test_it_is_reached_told_apart_and_read_in_order")
@pytest.mark.parametrize(
    ("start", "keys", "name", "first"),
    [
        ("Message", "ctrl+shift+m", "Mode", "Plan: Nothing is changed"),
        ("Conversations", "Menu", "Menu: Conversation", "Rename…"),
        ("Transcript", "Menu", "Menu: Assistant said", "Copy"),
    ],
)
def test_an_open_menu_is_found_with_its_rows(screen: Screen, start: str, keys: str, name: str, first: str) -> None:
    screen.focus(start)
    if start == "Transcript":
        screen.keys("ctrl+Up")
    screen.keys(keys)
    screen.wait_for(name, "popup menu")
    assert rows_of(screen, name, "popup menu")[0] == first
    close(screen, name, "popup menu")


@pytest.mark.exhaustive("tests/ui/shell/test_accessible_screens.py::test_it_is_reached_told_apart_and_read_in_order")
def test_the_folders_menu_has_a_name(screen: Screen) -> None:
    screen.focus("Message")
    screen.press("Workspace folder")
    screen.wait_for("Workspace folder", "popup menu")
    assert rows_of(screen, "Workspace folder", "popup menu")[0] == "Choose folder…"
    close(screen, "Workspace folder", "popup menu")


@pytest.mark.exhaustive("tests/ui/shell/test_accessible_screens.py::test_it_is_reached_told_apart_and_read_in_order")
def test_the_menu_of_a_text_field_has_a_name_and_its_rows_have_no_keys_in_theirs(screen: Screen) -> None:
    screen.focus("Message")
    screen.keys("Menu")
    screen.wait_for("Menu: Text", "popup menu")
    assert rows_of(screen, "Menu: Text", "popup menu")[:2] == ["Undo", "Redo"]
    close(screen, "Menu: Text", "popup menu")


@pytest.mark.exhaustive("tests/ui/shell/test_accessible_screens.py::test_it_is_reached_told_apart_and_read_in_order")
def test_the_list_of_models_is_found(screen: Screen) -> None:
    screen.focus("Message")
    screen.keys("ctrl+m")
    wait_until("the models are listed", lambda: f"{MODEL}, ✓" in rows_of(screen, "Models", "panel"))
    close(screen, "Models", "panel")


@pytest.mark.exhaustive("tests/ui/shell/test_accessible_screens.py::test_it_is_reached_told_apart_and_read_in_order")
def test_a_drop_down_list_of_the_settings_is_found_once(screen: Screen) -> None:
    screen.focus("Message")
    screen.keys("ctrl+comma")
    screen.wait_for("Settings", "dialog")
    screen.focus("Sections")
    screen.keys("A")
    screen.wait_for("Theme", "combo box")
    assert screen.find("System", "combo box") is None, "named after its value"
    screen.click("Theme", "combo box")
    screen.wait_for("Dark", "list item")
    assert [node["name"] for node in screen.tree()].count("Dark") == 1
    screen.keys("Escape")
    wait_until("the list goes", lambda: screen.find("Dark", "list item") is None)
    close(screen, "Settings", "dialog")
