import pytest

from desktop_agent.tools.linear_patterns import PatternRejected, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("b", "abc", True),
        ("^b", "abc", False),
        (r"^\d{4}-\d{2}$", "2024-05", True),
        (r"^\d{4}-\d{2}$", "2024-05\n", False),
        (r"^\p{Lu}\w*$", "Äpfel", True),
        ("^(a|b)+$", "abba", True),
        ("", "", True),
        (".", "\ud800", False),
    ],
)
def test_it_is_found_anywhere_in_the_text(pattern: str, text: str, *, matches: bool) -> None:
    assert compile_pattern(pattern).matches(text) is matches


@pytest.mark.parametrize(
    "pattern",
    ["(", "[a", "a{2,1}", "(?=a)", "(?<!a)b", r"(a)\1", "a{1,100000000}", "(a{1000}){1000}", "x" * 2001],
)
def test_what_cannot_be_matched_in_linear_time_is_refused(pattern: str) -> None:
    with pytest.raises(PatternRejected):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 100_000 + "b"),
        ("^(a|a)*$", "a" * 100_000 + "b"),
        ("(x+x+)+y", "x" * 100_000),
        (r"^(\w+\s?)*$", "a" * 100_000 + "!"),
    ],
)
def test_catastrophic_patterns_end(pattern: str, text: str) -> None:
    assert not compile_pattern(pattern).matches(text)


@pytest.mark.parametrize(
    ("pattern", "size"),
    [
        ("abc", 4),
        ("a{10}", 11),
        ("a{2,10}b", 12),
        ("a{5,}", 6),
        ("(ab){10}", 21),
        ("((a{10}){10}){10}", 1001),
        (r"\d{4}-\d{2}", 8),
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}", 24),
        (r"[\]{9}]{2}", 3),
        (r"\p{L}+", 3),
        (")", None),
        (r"\{10}", 5),
    ],
)
def test_the_size_counts_repetitions_out(pattern: str, size: int | None) -> None:
    if size is None:
        with pytest.raises(PatternRejected):
            compile_pattern(pattern)
    else:
        assert compile_pattern(pattern).size >= size
        assert compile_pattern(pattern).size <= size + 5
