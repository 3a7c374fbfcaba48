"""Splits texts and queries into the words that the index knows.

What SQLite's tokenizers make of a text is not enough, and differs by its version. So the text is rewritten before, and
SQLite has only to split it at what is ASCII and no letter or digit:

- Case, width and diacritics are folded: Unicode's case folding, then NFKD without marks, then NFC.
- `snake_case` and paths are split at what is no letter or digit; typed whole they are a phrase. `camelCase` stays
  whole, since people also write it in small letters, and its parts are added at the end of the text.
- Scripts without spaces, and emoji, are written as overlapping pairs of characters, so that a word of two is one token,
  a longer one a phrase, and a single character the beginning of a token.

A query is rewritten in the same way, hence finds what a text has in any of these spellings: `UserName` is the word that
was typed, or these two parts of a longer name.
"""

import re
import string
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

# Thai to Lao, Myanmar, Khmer, CJK with kana, bopomofo and Hangul: Unicode 15.0, Blocks.txt.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u312f\u3130-\u318f\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
# Clocks, arrows of players, weather, dingbats, stars and all later emoji: blocks of Unicode 15.0 that are mostly emoji.
_EMOJI = "\u231a-\u23ff\u2600-\u27bf\u2b50-\u2b55\U0001f000-\U0001faff"
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}{_EMOJI}]+")
_ALPHANUMERIC = frozenset(string.ascii_letters + string.digits)
_ALPHANUMERIC_RUN = re.compile("[A-Za-z0-9]+")
# From a capital on, since few characters are: seven times as fast as from any.
_HUMP_LETTER = re.compile(r"[A-Z](?:(?<=[a-z0-9][A-Z])|[A-Z][a-z]{2})")
_MAX_PIECE = 16 * 1024
_MAX_NAME = 64
"""Characters. What is longer is no name but data, such as base64."""
# Two small letters after capitals: URLs is one word.
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")
# Marks of Latin, Greek and Cyrillic, Hebrew points and Arabic vowels: what people leave out when they type.
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u064b-\u0652\u1ab0-\u1aff\u1dc0-\u1dff]+")

# Signs that are no letters, but parts of words: of Indic scripts, Thai, Lao, Myanmar, Khmer, Arabic and kana.
_SIGNS = (
    "\u0610-\u061a\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0900-\u0963\u0966-\u0dff\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u17b4-\u17d3\u3099\u309a"
)
_SEPARATORS = re.compile(rf"[^\w{_SIGNS}{_EMOJI}]+|_+")

TOKENIZER = "ascii"
"""Of SQLite. All that is not ASCII belongs to words for it."""
_WORD_CHARACTERS = "a-z0-9\x80-\U0010ffff"


def fold(text: str) -> str:
    """Return the text without differences of case, width and diacritics."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", _MARKS.sub("", decomposed))


def split_text(text: str) -> Iterator[str]:
    """Yield the text in pieces of up to 16,384 characters that end before a space, where there is one; at least one."""
    begin = 0
    while len(text) - begin > _MAX_PIECE:
        middle, end = begin + _MAX_PIECE // 2, begin + _MAX_PIECE
        place = max(text.rfind(" ", middle, end), text.rfind("\n", middle, end))
        yield text[begin : (begin := end if place < 0 else place)]
    yield text[begin:]


def to_index_words(text: str) -> str:
    """Return the text as the index takes it."""
    # In pieces, between which other threads have their turn.
    pieces = list(split_text(text))
    names = (_HUMP.sub(" ", name) for piece in pieces for name in _camel_names(piece))
    return "".join(map(_to_words, (*pieces, *(f" {name}" for name in names))))


def _to_words(text: str) -> str:
    words = fold(text)
    if words.isascii():
        return words
    return _UNSPACED_RUN.sub(_to_pairs, _SEPARATORS.sub(" ", words))


def _camel_names(text: str) -> Iterator[str]:
    end = 0
    for hump in _HUMP_LETTER.finditer(text):
        begin = hump.start()
        run = _ALPHANUMERIC_RUN.match(text, begin) if begin >= end else None
        if run is None:
            continue
        end = run.end()
        # Not back through all of a long word, which others may follow.
        while begin > max(0, end - _MAX_NAME - 1) and text[begin - 1] in _ALPHANUMERIC:
            begin -= 1
        if end - begin <= _MAX_NAME:
            yield text[begin:end]


def _to_pairs(run: re.Match[str]) -> str:
    # The last character stands alone, so that each can be found as the beginning of a token.
    characters = run.group()
    return f" {' '.join(characters[index : index + 2] for index in range(len(characters)))} "


def is_unspaced(character: str) -> bool:
    """Return whether it belongs to a script without spaces, or is an emoji."""
    return _UNSPACED_RUN.match(character) is not None


@dataclass(frozen=True, slots=True)
class Term:
    """Words that must follow one another; `is_prefix`: the last one may go on.

    `pieces` are folded words, and whole runs of scripts without spaces. `humps` are the parts of a word in camelCase,
    which may stand in its place.
    """

    pieces: tuple[str, ...]
    is_prefix: bool = False
    humps: tuple[str, ...] = ()

    @property
    def spellings(self) -> list[list[str]]:
        """Return the tokens of the index, in order, for each way to write it."""
        return [self.tokens, *([[*self.humps]] if self.humps else [])]

    @property
    def tokens(self) -> list[str]:
        """Return the tokens of the index, in order."""
        tokens: list[str] = []
        for number, piece in enumerate(self.pieces, 1):
            if not is_unspaced(piece):
                tokens.append(piece)
                continue
            is_last = number == len(self.pieces)
            # What follows the last character of a query is not known; before another piece it stands alone.
            pairs = max(1, len(piece) - 1) if is_last else len(piece)
            tokens += [piece[index : index + 2] for index in range(pairs)]
        return tokens

    @property
    def is_open(self) -> bool:
        """Return whether the last token is the beginning of one."""
        last = self.pieces[-1]
        return len(last) == 1 if is_unspaced(last) else self.is_prefix


def token_pattern(term: Term) -> re.Pattern[str]:
    """Return what finds a term in the words of a text, as SQLite's tokenizer splits them."""
    # Text in which all is ASCII keeps its punctuation.
    gap = rf"[^{_WORD_CHARACTERS}]+"
    end = "" if term.is_open else f"(?![{_WORD_CHARACTERS}])"
    spellings = "|".join(gap.join(map(re.escape, tokens)) for tokens in term.spellings)
    return re.compile(f"(?<![{_WORD_CHARACTERS}])(?:{spellings}){end}")


_SHORT_HUMP = 2
_MAX_TERMS = 16
_MAX_PIECES = 64
_MAX_QUERY = 1000
_QUOTE = re.compile('["\u201c\u201d\u201e\u00ab\u00bb]')


def parse_query(text: str) -> tuple[Term, ...]:
    """Return the terms of a query; none where nothing in it can be looked for. Never raises.

    What is beyond 1,000 characters, 16 terms or 64 words of one term is left out.
    """
    terms: list[Term] = []
    for number, part in enumerate(_QUOTE.split(text[:_MAX_QUERY])):
        # Every second part was between quotes.
        if number % 2:
            terms.append(Term(_pieces(part)))
        else:
            terms += [Term(_pieces(word), humps=_humps(word)) for word in part.split()]
    terms = [term for term in terms if term.pieces][:_MAX_TERMS]
    if terms and not text[-1].isspace() and not _QUOTE.match(text[-1]):
        last = terms[-1]
        # A part of one or two letters may go on in too many ways.
        humps = last.humps if len("".join(last.humps[-1:])) > _SHORT_HUMP else ()
        terms[-1] = Term(last.pieces, is_prefix=True, humps=humps)
    return tuple(dict.fromkeys(terms))


def _humps(word: str) -> tuple[str, ...]:
    """Return the parts of one name in camelCase as the index has them; none of any other word."""
    names = _ALPHANUMERIC_RUN.findall(word)
    if len(names) != 1 or len(names[0]) > _MAX_NAME or _pieces(word) != (names[0].lower(),):
        return ()
    humps = tuple(_HUMP.sub(" ", names[0]).lower().split())
    return humps if len(humps) > 1 else ()


def _pieces(text: str) -> tuple[str, ...]:
    pieces: list[str] = []
    for word in _SEPARATORS.sub(" ", fold(text)).split():
        place = 0
        for run in _UNSPACED_RUN.finditer(word):
            pieces += [word[place : run.start()], run.group()]
            place = run.end()
        pieces.append(word[place:])
    return tuple(piece for piece in pieces if piece)[:_MAX_PIECES]
