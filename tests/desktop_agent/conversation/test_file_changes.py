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


@pytest.mark.parametrize(
    ("real", "counts", "is_diff", "text"),
    [
        (None, (2, 0), True, "+x\n+y"),
        ((2, 0), (2, 0), True, "+x\n+y"),
        ((1, 4), (1, 4), False, "x\ny"),
        ((0, 0), (0, 0), False, "x\ny"),
    ],
)
def test_what_really_changed_goes_before_what_was_written(
    real: tuple[int, int] | None, counts: tuple[int, int], is_diff: bool, text: str
) -> None:
    (change,) = file_changes("write_file", {"path": "a", "content": "x\ny\n"}, real)
    assert (change.counts, change.is_diff, change.text) == (counts, is_diff, text)


def test_of_several_files_none_is_known_to_have_changed_so() -> None:
    assert file_changes("apply_patch", {"input": PATCH}, (7, 7)) == PATCHED


def test_equal_lines_far_from_a_change_are_left_out() -> None:
    old = "".join(f"{number}\n" for number in range(20))
    (change,) = file_changes("edit_file", {"path": "a", "old_text": old, "new_text": old.replace("10\n", "x\n")})
    assert change.lines == (" 7", " 8", " 9", "-10", "+x", " 11", " 12", " 13")
    (change,) = file_changes("edit_file", {"path": "a", "old_text": "x\r\ny\r\n", "new_text": "x\r\nz\r\n"})
    assert change.lines == (" x", "-y", "+z")
    (change,) = file_changes("edit_file", {"path": "a", "old_text": "0\n" + old + "1", "new_text": "x\n" + old + "y"})
    assert change.lines[4:6] == (" 2", "@@")


def test_very_long_texts_are_not_compared() -> None:
    before, after = "a\n" * 5000, "b\n" * 5000
    (change,) = file_changes("edit_file", {"path": "a", "old_text": before, "new_text": after})
    assert change.counts == (5000, 5000)


def test_lines_are_counted_without_those_that_stay() -> None:
    assert FileChange("a", (" x", "-y", "+z", "+@", "@@")).counts == (2, 1)
