"""Tools in words."""

import pytest

from desktop_agent.types.tool_calls import tool_title


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("run_command", "Run a command"),
        ("github__search_issues", "Search issues (github)"),
        ("mcp__git-hub__list__all-open", "List all open (git-hub)"),
        ("reviewer", "reviewer"),
        ("Bash", "Bash"),
        ("github__", "github__"),
        ("a__b\u202ec", "a__b\u202ec"),
    ],
)
def test_a_tool_is_called_by_words(name: str, words: str) -> None:
    assert str(tool_title(name)) == words
