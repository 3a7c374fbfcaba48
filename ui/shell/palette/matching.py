"""How well typed words fit a text: all must be in it, in any order, whole or by some of their letters."""

_STARTS, _BEGINS_WORD, _INSIDE, _LETTERS = range(4)


class TypedWords:
    """What was typed, taken apart once for many texts."""

    def __init__(self, typed: str) -> None:
        self._words = typed.casefold().split()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is looked for."""
        return not self._words

    def rank(self, text: str) -> int | None:
        """Return how well this text fits: 0 is best, None is not at all."""
        folded = text.casefold()
        total = 0
        for word in self._words:
            rank = _rank_of(word, folded)
            if rank is None:
                return None
            total += rank
        return total


def _rank_of(word: str, text: str) -> int | None:
    if text.startswith(word):
        return _STARTS
    at = text.find(word)
    while at > 0:
        if not text[at - 1].isalnum():
            return _BEGINS_WORD
        if (after := text.find(word, at + 1)) < 0:
            return _INSIDE
        at = after
    return _LETTERS if _has_letters(word, text) else None


def _has_letters(word: str, text: str) -> bool:
    """Whether the letters come one after the other in the text, the first of them at the beginning of a word."""
    begins = True
    for at, letter in enumerate(text):
        if begins and letter == word[0] and _follow(word, text, at):
            return True
        begins = not letter.isalnum()
    return False


def _follow(word: str, text: str, at: int) -> bool:
    for letter in word[1:]:
        at = text.find(letter, at + 1)
        if at < 0:
            return False
    return True
