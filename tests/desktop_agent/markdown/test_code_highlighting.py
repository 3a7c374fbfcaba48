"""Which lexer highlights a code block."""

import pytest

from desktop_agent.markdown.code_highlighting import find_lexer


@pytest.mark.parametrize(
    ("language", "name"),
    [
        ("python", "Python"),
        ("py", "Python"),
        ("main.py", "Python"),
        ("yml", "YAML"),
        ("Dockerfile", "Docker"),
        ("Makefile", "Makefile"),
        (".bashrc", "Bash"),
        ("diff", "Diff"),
    ],
)
def test_a_language_is_found_by_its_name_or_that_of_a_file(language, name):
    lexer = find_lexer(language)
    assert lexer is not None
    assert lexer.name == name


@pytest.mark.parametrize("language", ["", "no-such-language", "../../etc", "a*", "[a", "x" * 500])
def test_what_is_no_language_has_no_lexer(language):
    assert find_lexer(language) is None
