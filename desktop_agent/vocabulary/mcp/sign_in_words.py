"""What the person reads in the browser when a sign-in comes to its end."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SignInPageTexts:
    """Each is a page of its own, in `language` (BCP 47)."""

    done: str = "You can close this page and go back to Desktop Agent."
    refused: str = "The sign-in was refused. You can close this page and go back to Desktop Agent."
    finished: str = "This sign-in is over."
    invalid_response: str = "This is no answer to a sign-in."
    not_found: str = "There is nothing here."
    language: str = "en"


ENGLISH_PAGE_TEXTS = SignInPageTexts()
