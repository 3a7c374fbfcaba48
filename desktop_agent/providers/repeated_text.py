"""Servers that say again what they said: every piece the whole so far, or the whole once more at the end.

Only servers that are not a vendor's own are watched (PartBuilder's `may_repeat`): Perplexity sends a `message` with the
whole beside each piece (docs.perplexity.ai, "Stream mode", `full`), and gateways send the growing whole as each `delta`
(swuecho/chat#687). A piece is taken for the growing whole when the one before it grew in the same way, as a song may
repeat one line: until then it waits.
"""

from desktop_agent.providers.think_tags import ThinkTags

_SURE_LENGTH = 12  # so many characters are no chance
_LIKELY_LENGTH = 4


class RepeatFilter:
    """Returns what is new of each piece of one text.

    `found`: something was repeated. `differs`: a whole came that says something else than the pieces did.
    """

    def __init__(self) -> None:
        self.has_repeats = False
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
            if piece.startswith(held) and (has_grown_twice or self._is_significant(_SURE_LENGTH)):
                self._is_growing = True
                return self._take_growing(piece)
            return self._remember_text(held) + self.fresh(piece, may_be_all=may_be_all)
        if len(piece) < self._length and not self._is_growing:
            return self._remember_text(piece)
        said = self._all_text()
        if not said or not piece.startswith(said):
            self._is_growing = False
            return self._remember_text(piece)
        if self._is_growing or (may_be_all and self._is_significant(_SURE_LENGTH)):
            return self._take_growing(piece)
        if len(piece) > self._length:
            self._held = piece
            return ""
        return self._remember_text(piece)

    def missing_text(self, whole: str) -> str:
        """Return what the pieces lacked of the whole, which comes beside or behind them."""
        before = self.flush()
        if not whole.strip():
            return before
        said, whole = self._all_text(), whole.lstrip()
        if not said.strip():
            return before + self._remember_text(whole)
        for known in (said.lstrip(), _without_thinking(said)):
            if known.strip() and whole.startswith(known):
                self.has_repeats = True
                return before + self._remember_text(whole[len(known) :])
        self.has_repeats = True
        self.differs = self.differs or whole.strip() not in said
        return before

    def flush(self) -> str:
        """Return what was held back, at the end."""
        held, self._held = self._held, ""
        if held and self._is_significant(_LIKELY_LENGTH):
            return self._take_growing(held)
        return self._remember_text(held)

    def _take_growing(self, piece: str) -> str:
        """The piece begins with all that was said."""
        self.has_repeats = True
        return self._remember_text(piece[self._length :])

    def _remember_text(self, piece: str) -> str:
        if piece:
            self._pieces.append(piece)
            self._length += len(piece)
        return piece

    def _all_text(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def _is_significant(self, least: int) -> bool:
        """Whether what was said is too much to be repeated by chance: words, not figures or signs alone."""
        said = self._all_text().strip()
        return len(said) >= least and _has_letters(said)


def _has_letters(said: str) -> bool:
    return any(letter.isalpha() for letter in said)


def _without_thinking(said: str) -> str:
    """What a person sees of text that may begin with reasoning in tags."""
    tags = ThinkTags()
    parts = tags.feed(said) + tags.flush()
    return "".join(text for is_thought, text in parts if not is_thought).lstrip()
