"""What code is called when it is saved."""

import pytest

from ui.style.theme import LIGHT
from ui.transcript.blocks.code.code_block import CodeBlock, CodeCallbacks, suggest_file_name
from ui.transcript.style import RenderStyle


@pytest.mark.parametrize(
    ("language", "name"),
    [
        ("python", "code.py"),
        ("py", "code.py"),
        ("js", "code.js"),
        ("TypeScript", "code.ts"),
        ("bash", "code.sh"),
        ("c++", "code.cpp"),
        ("c", "code.c"),
        ("json", "code.json"),
        ("yaml", "code.yaml"),
        ("html", "code.html"),
        ("css", "code.css"),
        ("rust", "code.rs"),
        ("go", "code.go"),
        ("sql", "code.sql"),
        ("markdown", "code.md"),
        ("mermaid", "code.mmd"),
        ("latex", "code.tex"),
        ("dockerfile", "Dockerfile"),
        ("makefile", "Makefile"),
        ("", "code.txt"),
        ("no-such-language", "code.txt"),
        ("../../etc/passwd", "code.txt"),
    ],
)
def test_code_is_named_by_its_language(language, name):
    assert suggest_file_name(language) == name


def test_code_is_named_by_its_title():
    assert suggest_file_name("json", "package.json") == "package.json"
    assert suggest_file_name("main.py") == "main.py"
    assert suggest_file_name("", "result") == "result.txt"
    assert suggest_file_name("", "../x.py") == "code.txt"
    assert suggest_file_name("json", "arguments, edited") == "code.json"


def test_the_button_gives_name_and_text(qapp):
    saved = []
    host = CodeCallbacks(lambda text: None, lambda: None, save=lambda name, text: saved.append((name, text)))
    block = CodeBlock("x = 1", "python", host)
    block.layout(400, RenderStyle(LIGHT, 100))
    names = [control.name for control in block.controls()]
    assert names == ["Copy code", "Wrap lines", "Save code as…"]
    block.append("\ny = 2")
    block.controls()[2].press()
    assert saved == [("code.py", "x = 1\ny = 2")]


def test_a_narrow_head_keeps_its_buttons_apart_from_its_title(qapp):
    style = RenderStyle(LIGHT, 100)
    block = CodeBlock("x", "python", CodeCallbacks(lambda text: None, lambda: None, save=lambda *given: None))
    block.layout(260, style)
    boxes = [control.box for control in block.controls()]
    assert all(not one.intersects(other) for one in boxes for other in boxes if one is not other)
    assert all(box.left() >= 0 for box in boxes)


def test_where_there_is_no_room_the_least_needed_buttons_go(qapp):
    style = RenderStyle(LIGHT, 100)
    block = CodeBlock("x", "python", CodeCallbacks(lambda text: None, lambda: None, save=lambda *given: None))
    names = []
    for width in (400, 150, 80):
        block.layout(width, style)
        names.append([control.name for control in block.controls()])
        assert all(control.box.left() >= 0 for control in block.controls())
    assert names == [
        ["Copy code", "Wrap lines", "Save code as…"],
        ["Copy code", "Save code as…"],
        ["Copy code"],
    ]
