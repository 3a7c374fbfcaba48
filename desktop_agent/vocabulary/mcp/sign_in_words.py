"""What the person reads in the browser when a sign-in comes to its end."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageWords:
    """Each is a page of its own, in `language` (BCP 47)."""

    done: str = "You can close this page and go back to Desktop Agent."
    refused: str = "The sign-in was refused. You can close this page and go back to Desktop Agent."
    over: str = "This sign-in is over."
    no_answer: str = "This is no answer to a sign-in."
    nothing: str = "There is nothing here."
    language: str = "en"


ENGLISH = PageWords()
