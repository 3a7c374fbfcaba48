"""What is attached to a prompt comes out of its text as it went in."""

import pytest

from desktop_agent.types.messages import AttachedText, label_attached, split_attached

FILE = AttachedText("a “b”.txt", "one\n[end]\n")
RESOURCE = AttachedText("Week 12", "decided", "notes://12", "Notes")
EMPTY = AttachedText("empty.txt", "")


@pytest.mark.parametrize("typed", ["", "Read this.", "Read this:\n\n"])
@pytest.mark.parametrize("attached", [(FILE,), (EMPTY, FILE, RESOURCE), (AttachedText("a", label_attached(FILE)),)])
def test_a_labelled_text_is_found_again(typed: str, attached: tuple[AttachedText, ...]) -> None:
    assert split_attached(typed + "".join(map(label_attached, attached))) == (typed, attached)


@pytest.mark.parametrize("text", ["", "[The file “a.txt”, up to 0a1b2c3d:]\nnever ends", "[x: end of “a”.]"])
def test_a_text_without_an_end_mark_was_typed(text: str) -> None:
    assert split_attached(text) == (text, ())


def test_a_name_of_several_lines_is_one_line_in_its_label() -> None:
    attached = AttachedText("a\nb", "text", "u\nv", "s\nt")
    assert split_attached(label_attached(attached)) == ("", (AttachedText("a b", "text", "u v", "s t"),))
