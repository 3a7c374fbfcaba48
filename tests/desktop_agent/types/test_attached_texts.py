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


def test_of_a_server_the_last_name_counts_whatever_it_wrote_before() -> None:
    attached = AttachedText("a”, b", "text", "x://a, from the server “Other”, b", "Notes")
    assert split_attached(label_attached(attached)) == ("", (attached,))


def test_a_label_at_the_end_of_a_message_that_was_trimmed_is_found() -> None:
    assert split_attached(label_attached(FILE).strip()) == ("", (FILE,))


@pytest.mark.parametrize("sign", ["other.txt", "a.txt"])
def test_a_label_inside_of_an_attached_text_is_part_of_it(sign: str) -> None:
    attached = AttachedText("a.txt", f"[The file “{sign}”, up to 0a1b2c3d:]\nwords")
    text = label_attached(attached) + "\n[0a1b2c3d: end of “a.txt”.]\n"
    assert split_attached(text) == ("\n[0a1b2c3d: end of “a.txt”.]\n", (attached,))


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "line",
    [
        "[“" * 30_000,
        ", ".join(["“word”"] * 30_000),
        "[“" + "”, , from the server “" * 30_000,
        "[The file “" * 30_000,
        "[The file “a”, up to 0a1b2c3d:]\n" * 30_000,
        "[0a1b2c3d: end of “" * 30_000,
    ],
)
def test_the_work_grows_with_the_text_alone(line: str) -> None:
    assert split_attached(line) == (line, ())


@pytest.mark.parametrize("text", ["", "[The file “a.txt”, up to 0a1b2c3d:]\nnever ends", "[x: end of “a”.]"])
def test_a_text_without_an_end_mark_was_typed(text: str) -> None:
    assert split_attached(text) == (text, ())


def test_a_name_of_several_lines_is_one_line_in_its_label() -> None:
    attached = AttachedText("a\nb", "text", "u\nv", "s\nt")
    assert split_attached(label_attached(attached)) == ("", (AttachedText("a b", "text", "u v", "s t"),))
