"""Addresses with gaps; the examples are those of RFC 6570."""

import pytest

from ui.composer.completions import expand_template, template_variables

VALUES = {"var": "value", "hello": "Hello World!", "path": "/foo/bar", "x": "1024", "y": "768", "empty": ""}


@pytest.mark.parametrize(
    ("template", "address"),
    [
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        ("{+hello}", "Hello%20World!"),
        ("{+path}/here", "/foo/bar/here"),
        ("here?ref={+path}", "here?ref=/foo/bar"),
        ("X{#hello}", "X#Hello%20World!"),
        ("map?{x,y}", "map?1024,768"),
        ("X{.var}", "X.value"),
        ("{/var,x}/here", "/value/1024/here"),
        ("{;x,y}", ";x=1024;y=768"),
        ("{?x,y}", "?x=1024&y=768"),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("{var:3}", "val"),
        ("{/var*}", "/value"),
        ("a{nothing}b{?nothing}", "ab"),
        ("no gaps", "no gaps"),
    ],
)
def test_gaps_are_filled(template, address):
    assert expand_template(template, VALUES) == address


def test_the_names_of_the_gaps_each_once():
    assert template_variables("a/{b}/{+c:3}{?d*,b}") == ("b", "c", "d")


def test_a_value_never_makes_another_path():
    assert expand_template("notes://week/{number}", {"number": "../../etc/passwd?x#y"}) == (
        "notes://week/..%2F..%2Fetc%2Fpasswd%3Fx%23y"
    )
