"""How well typed words fit a text: all must be in it, in any order, whole or by some of their letters."""

_STARTS, _BEGINS_WORD, _IN_SYNONYMS, _INSIDE, _LETTERS = range(5)


class FuzzyMatcher:
    """What was typed, taken apart once for many texts."""

    def __init__(self, typed: str) -> None:
        self._words = typed.casefold().split()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is looked for."""
        return not self._words

    def rank(self, text: str, others: str = "") -> int | None:
        """Return how well this text fits: 0 is best, None is not at all.

        `others` are more words for the same thing: a word may also stand in them, but whole or by its beginning.
        """
        folded, other = text.casefold(), others.casefold()
        total = 0
        for word in self._words:
            ranks = [rank for rank in (_rank_of(word, folded), _rank_in_synonyms(word, other)) if rank is not None]
            if not ranks:
                return None
            total += min(ranks)
        return total


def _rank_in_synonyms(word: str, text: str) -> int | None:
    rank = _rank_of(word, text)
    return None if rank is None or rank == _LETTERS else max(rank, _IN_SYNONYMS)


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
    return _LETTERS if _is_subsequence(word, text) else None


def _is_subsequence(word: str, text: str) -> bool:
    """Whether the letters come one after the other in the text, the first of them at the beginning of a word."""
    begins = True
    for at, letter in enumerate(text):
        if begins and letter == word[0] and _letters_follow(word, text, at):
            return True
        begins = not letter.isalnum()
    return False


def _letters_follow(word: str, text: str, at: int) -> bool:
    for letter in word[1:]:
        at = text.find(letter, at + 1)
        if at < 0:
            return False
    return True
