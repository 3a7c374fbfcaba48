"""Arguments come back as they were, however they are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.settings.mcp_servers.connection_fields import find_secret, format_arguments, parse_arguments, split_command_line


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=4).map(tuple))
def test_what_is_written_is_read_again(arguments):
    assert parse_arguments(format_arguments(arguments)) == arguments


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("-y\n\n  files  \n", ("-y", "files")),
        ('"/home/ada/My notes"', ("/home/ada/My notes",)),
        ('"C:\\My notes"', ("C:\\My notes",)),
        ('"', ('"',)),
        ('a "b"', ('a "b"',)),
    ],
)
def test_what_people_write(written, read):
    assert parse_arguments(written) == read


def test_a_shell_line_is_taken_apart():
    assert split_command_line("npx -y 'a b' \"c\"") == ("npx", "-y", "a b", "c")
    assert split_command_line("npx 'open") == ()


@pytest.mark.parametrize(
    ("arguments", "secret"),
    [
        (("--token=abc",), "--token"),
        (("--api-key", "abc"), "--api-key"),
        (("sk-proj-0123456789abcdef",), "sk-pro…"),
        (("-y", "@modelcontextprotocol/server-filesystem", "/home/ada"), None),
        (("--token=$TOKEN", "--token-file"), None),
        (("--auth", "abc"), "--auth"),
        (("--author", "ada"), None),
        (("--api-key", "--verbose"), None),
        (("a-very-long-name-of-a-package-without-digits",), None),
    ],
)
def test_what_seems_to_be_a_secret_is_named_and_never_shown(arguments, secret):
    assert find_secret(arguments) == secret
