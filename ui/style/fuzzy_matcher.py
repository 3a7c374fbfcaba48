"""Find texts by a few letters of their words."""

_STARTS, _BEGINS_WORD, _IN_SYNONYMS, _INSIDE, LETTERS = range(5)


class FuzzyMatcher:
    """A query, split once for many texts."""

    def __init__(self, typed: str) -> None:
        self._words = typed.casefold().split()

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
            known = (_rank_of(word, folded), _rank_in_synonyms(word, folded_synonyms))
            ranks = [rank for rank in known if rank is not None]
            if not ranks:
                return None
            total += min(ranks)
        return total


def _rank_in_synonyms(word: str, text: str) -> int | None:
    rank = _rank_of(word, text)
    return None if rank is None or rank == LETTERS else max(rank, _IN_SYNONYMS)


def _rank_of(word: str, text: str) -> int | None:
    if text.startswith(word):
        return _STARTS
    index = text.find(word)
    while index > 0:
        if not text[index - 1].isalnum():
            return _BEGINS_WORD
        if (next_index := text.find(word, index + 1)) < 0:
            return _INSIDE
        index = next_index
    return LETTERS if _is_subsequence(word, text) else None


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
