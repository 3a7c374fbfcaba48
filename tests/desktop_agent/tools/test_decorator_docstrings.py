from desktop_agent.tools.decorator import parse_docstring


def test_a_docstring_with_everything() -> None:
    def function() -> None:
        """Look something up.

        In two paragraphs: the second
        has two lines.

        Args:
            city: The city.
            days (int, optional): How many days,
                at most ten.
                more: they are refused.

            unit : C or F
            *more: others
            empty:

        Returns:
            text: not a parameter

        Raises:
            ValueError: never
        """

    description, parameters = parse_docstring(function)
    assert description == "Look something up.\n\nIn two paragraphs: the second\nhas two lines."
    assert parameters == {
        "city": "The city.",
        "days": "How many days, at most ten. more: they are refused.",
        "unit": "C or F",
        "more": "others",
        "empty": "",
    }


def test_little_and_nothing() -> None:
    def bare() -> None:
        pass

    def short() -> None:
        """One line. Args: no section"""

    def only() -> None:
        """
        Arguments:
          a: b
        """

    assert parse_docstring(bare) == ("", {})
    assert parse_docstring(short) == ("One line. Args: no section", {})
    assert parse_docstring(only) == ("", {"a": "b"})
