"""Servers that say again what they said: every piece the whole so far, or the whole once more at the end.

Only servers that are not a vendor's own are watched (PartBuilder's `repeats`): Perplexity sends a `message` with the
whole beside each piece (docs.perplexity.ai, "Stream mode", `full`), and gateways send the growing whole as each `delta`
(swuecho/chat#687). A piece is taken for the growing whole when the one before it grew in the same way, as a song may
repeat one line: until then it waits.
"""

from desktop_agent.providers.think_tags import ThinkTags

_SURE = 12  # so many characters are no chance
_LIKELY = 4


class RepeatedText:
    """Returns what is new of each piece of one text.

    `found`: something was repeated. `differs`: a whole came that says something else than the pieces did.
    """

    def __init__(self) -> None:
        self.found = False
        self.differs = False
        self._pieces: list[str] = []
        self._length = 0
        self._held = ""  # a piece that begins with all before it: the next one tells
        self._is_growing = False

    def fresh(self, piece: str, *, may_be_all: bool = False) -> str:
        """Return what of this piece was not said. `may_be_all`: the server may say all once more in it."""
        if self._held:
            held, self._held = self._held, ""
            has_grown_twice = len(piece) > len(held) and _has_letters(piece)
            if piece.startswith(held) and (has_grown_twice or self._is_telling(_SURE)):
                self._is_growing = True
                return self._grown(piece)
            return self._said(held) + self.fresh(piece, may_be_all=may_be_all)
        if len(piece) < self._length and not self._is_growing:
            return self._said(piece)
        said = self._all()
        if not said or not piece.startswith(said):
            self._is_growing = False
            return self._said(piece)
        if self._is_growing or (may_be_all and self._is_telling(_SURE)):
            return self._grown(piece)
        if len(piece) > self._length:
            self._held = piece
            return ""
        return self._said(piece)

    def missing(self, whole: str) -> str:
        """Return what the pieces lacked of the whole, which comes beside or behind them."""
        before = self.rest()
        if not whole.strip():
            return before
        said, whole = self._all(), whole.lstrip()
        if not said.strip():
            return before + self._said(whole)
        for known in (said.lstrip(), _without_thought(said)):
            if known.strip() and whole.startswith(known):
                self.found = True
                return before + self._said(whole[len(known) :])
        self.found = True
        self.differs = self.differs or whole.strip() not in said
        return before

    def rest(self) -> str:
        """Return what was held back, at the end."""
        held, self._held = self._held, ""
        if held and self._is_telling(_LIKELY):
            return self._grown(held)
        return self._said(held)

    def _grown(self, piece: str) -> str:
        """The piece begins with all that was said."""
        self.found = True
        return self._said(piece[self._length :])

    def _said(self, piece: str) -> str:
        if piece:
            self._pieces.append(piece)
            self._length += len(piece)
        return piece

    def _all(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def _is_telling(self, least: int) -> bool:
        """Whether what was said is too much to be repeated by chance: words, not figures or signs alone."""
        said = self._all().strip()
        return len(said) >= least and _has_letters(said)


def _has_letters(said: str) -> bool:
    return any(letter.isalpha() for letter in said)


def _without_thought(said: str) -> str:
    """What a person sees of text that may begin with reasoning in tags."""
    tags = ThinkTags()
    parts = tags.feed(said) + tags.flush()
    return "".join(text for is_thought, text in parts if not is_thought).lstrip()
