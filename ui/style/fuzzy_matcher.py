"""Find texts by a few letters of their words."""

import unicodedata

_STARTS, _BEGINS_WORD, _INSIDE, _IN_SYNONYMS, LETTERS = range(5)


class FuzzyMatcher:
    """A query, split once for many texts."""

    def __init__(self, typed: str, *, by_letters: bool = True) -> None:
        """With `by_letters`, letters that follow one another in a text fit too: "fic" in "Find in conversation"."""
        self._words = typed.casefold().split()
        self._by_letters = by_letters

    @property
    def is_empty(self) -> bool:
        return not self._words

    @property
    def count(self) -> int:
        """How many words it has."""
        return len(self._words)

    def rank(self, text: str, other_words: str = "") -> int | None:
        """Return how well this text fits: 0 is best, None is not at all.

        `other_words` are synonyms: a word of the query may match a whole word of them, or its beginning.
        """
        folded, folded_synonyms = text.casefold(), other_words.casefold()
        total = 0
        for word in self._words:
            candidates = (_rank_of(word, folded), _rank_in_synonyms(word, folded_synonyms))
            ranks = [rank for rank in candidates if rank is not None and (self._by_letters or rank != LETTERS)]
            if not ranks:
                return None
            total += min(ranks)
        return total


def _rank_in_synonyms(word: str, text: str) -> int | None:
    rank = _rank_of(word, text)
    return _IN_SYNONYMS if rank in {_STARTS, _BEGINS_WORD} else None


def _rank_of(word: str, text: str) -> int | None:
    if text.startswith(word):
        return _STARTS
    index = text.find(word)
    while index > 0:
        if not text[index - 1].isalnum() or _needs_no_space(text[index]):
            return _BEGINS_WORD
        if (next_index := text.find(word, index + 1)) < 0:
            return _INSIDE
        index = next_index
    return LETTERS if _is_subsequence(word, text) else None


def _needs_no_space(letter: str) -> bool:
    """Return whether it is a letter without case: in Chinese, Japanese or Thai a word may begin with any."""
    return unicodedata.category(letter) == "Lo"


def _is_subsequence(word: str, text: str) -> bool:
    """Return whether the letters follow one another in the text, the first at the beginning of a word."""
    begins = True
    for index, letter in enumerate(text):
        if begins and letter == word[0] and _letters_follow(word, text, index):
            return True
        begins = not letter.isalnum()
    return False


def _letters_follow(word: str, text: str, index: int) -> bool:
    for letter in word[1:]:
        index = text.find(letter, index + 1)
        if index < 0:
            return False
    return True
