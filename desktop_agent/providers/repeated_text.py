"""Servers that say again what they said: every piece the whole so far, or the whole once more at the end.

Only servers that are not a vendor's own are watched (PartBuilder's `repeats`): Perplexity sends a `message` with the
whole beside each piece (docs.perplexity.ai, "Stream mode", `full`), and gateways send the growing whole as each `delta`
(swuecho/chat#687). A piece that begins with everything before it is read so from the first piece on, or not at all.
"""

_SURE = 12  # so many characters are no chance
_LIKELY = 4


class RepeatedText:
    """Gives what is new of each piece of one text. `found`: something was repeated."""

    def __init__(self) -> None:
        self.found = False
        self._pieces: list[str] = []
        self._length = 0
        self._held = ""  # a second piece that begins with the first: the third one tells

    def fresh(self, piece: str, *, may_be_all: bool, is_whole: bool) -> str:
        """What of this piece was not said. `may_be_all`: it may repeat all; `is_whole`: it does, beside what is new."""
        if is_whole:
            return self._new_of_whole(piece)
        if len(piece) < self._length and not self.found and not self._held:
            self._pieces.append(piece)
            self._length += len(piece)
            return piece
        return self._looked_at(piece, may_be_all=may_be_all)

    def rest(self) -> str:
        """What was held back, at the end."""
        held, self._held = self._held, ""
        if held and self._is_telling(_LIKELY):
            return self._grown(held)
        return self._said(held)

    def _looked_at(self, piece: str, *, may_be_all: bool) -> str:
        if self._held:
            held, self._held = self._held, ""
            if len(piece) > len(held) and piece.startswith(held):
                return self._grown(piece)
            return self._said(held) + self.fresh(piece, may_be_all=may_be_all, is_whole=False)
        said = self._all()
        if said and piece.startswith(said):
            return self._begun_alike(piece, may_be_all=may_be_all)
        return "" if self.found and said.startswith(piece) else self._said(piece)

    def _begun_alike(self, piece: str, *, may_be_all: bool) -> str:
        """The piece begins with all that was said: is that the whole so far, or chance?"""
        is_sure = self._is_telling(_SURE)
        if self.found or (is_sure and (may_be_all or len(piece) > self._length)):
            return self._grown(piece)
        if not is_sure and len(piece) > self._length and len(self._pieces) == 1:
            self._held = piece
            return ""
        return self._said(piece)

    def _new_of_whole(self, whole: str) -> str:
        if not whole:
            return ""
        before = self.rest()
        said = self._all()
        if whole.startswith(said):
            self.found = self.found or bool(said)
            return before + self._said(whole[len(said) :])
        if whole.strip() == said.strip():
            self.found = True
            return before
        return before + self._said(whole)

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
            return self._pieces[0]
        return self._pieces[0] if self._pieces else ""

    def _is_telling(self, least: int) -> bool:
        """Whether what was said is too much to be repeated by chance: words, not figures or signs alone."""
        said = self._all().strip()
        return len(said) >= least and any(letter.isalpha() for letter in said)
