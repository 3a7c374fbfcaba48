"""What calls change in files: those of our tools, and those of other programs."""

from typing import Any

import pytest

from desktop_agent.conversation.file_changes import FileChange, file_changes

PATCH = """*** Begin Patch
*** Update File: a.py
@@ def f():
 one
-two
+three
@@
-four
*** Add File: b.py
+new
*** Delete File: c.py
*** End Patch"""
EDIT = {"old_string": "x", "new_string": "y"}
PATCHED = (
    FileChange("a.py", (" one", "-two", "+three", "@@", "-four")),
    FileChange("b.py", ("+new",)),
    FileChange("c.py", ()),
)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        (
            "edit_file",
            {"path": "a", "old_text": "x\ny", "new_text": "x\nz"},
            (FileChange("a", (" x", "-y", "+z")),),
        ),
        ("write_file", {"path": "a", "content": "x\n"}, (FileChange("a", ("+x",)),)),
        (
            "MultiEdit",
            {
                "file_path": "a",
                "edits": [EDIT, {"old_string": "z", "new_string": ""}, 3],
            },
            (FileChange("a", ("-x", "+y", "@@", "-z")),),
        ),
        ("apply_patch", {"input": PATCH}, PATCHED),
        ("patch", {"patchText": PATCH}, PATCHED),
        ("run_command", {"command": ["apply_patch", PATCH]}, PATCHED),
        ("run_command", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]}, PATCHED),
        ("run_command", {"command": "ls"}, ()),
        ("run_command", {"command": f"cat <<'EOF'\n{PATCH}"}, ()),
        (
            "developer__text_editor",
            {"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"},
            (FileChange("a", ("-x", "+y")),),
        ),
        ("text_editor", {"command": "write", "path": "a", "file_text": "x"}, (FileChange("a", ("+x",)),)),
        ("text_editor", {"command": "insert", "path": "a", "new_str": "x"}, (FileChange("a", ("+x",)),)),
        ("text_editor", {"command": "view", "path": "a"}, ()),
        ("read_file", {"path": "a"}, ()),
    ],
)
def test_a_call_that_changes_files_has_their_lines(
    name: str, arguments: dict[str, Any], expected: tuple[FileChange, ...]
) -> None:
    assert file_changes(name, arguments) == expected


@pytest.mark.parametrize("odd", [None, 3, [], {}, "", ["x"], {"path": 1}])
def test_any_shape_is_taken(odd: object) -> None:
    for name in ("edit_file", "write_file", "MultiEdit", "apply_patch", "run_command", "text_editor"):
        for key in ("path", "old_text", "new_text", "content", "edits", "file_path", "input", "patch", "command"):
            arguments = {"path": "a", "file_path": "a", "old_text": "x", "new_text": "y", "content": "c", key: odd}
            assert isinstance(file_changes(name, arguments), tuple)


def test_very_long_texts_are_not_compared() -> None:
    before, after = "a\n" * 5000, "b\n" * 5000
    (change,) = file_changes("edit_file", {"path": "a", "old_text": before, "new_text": after})
    assert change.counts == (5000, 5000)


def test_lines_are_counted_without_those_that_stay() -> None:
    assert FileChange("a", (" x", "-y", "+z", "+@", "@@")).counts == (2, 1)
