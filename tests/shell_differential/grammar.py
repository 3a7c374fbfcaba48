"""Makes shell lines: of everything that a shell has, of mutations of such, and of loose pieces.

Ordinary forms come far more often than others, as in the lines that people and models write; each rarer form still
comes some hundred times in 70,000 lines. What there is stands in `words.toml`.
"""

from collections.abc import Callable, Iterator
from random import Random

from tests.shell_differential.box import WORDS

_LISTS: dict[str, list[str]] = WORDS["lists"]
_WEIGHTS: dict[str, dict[str, int]] = WORDS["weights"]
_DEEPEST = 3


class Grammar:
    """Lines by chance."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._documents: list[str] = []
        self._compound: dict[str, Callable[[int], str]] = {
            "group": lambda level: self._filled("group", self._group_body(level)),
            "if": self._if,
            "loop": self._loop,
            "for": self._for,
            "case": self._case,
            "function": self._function,
            "test": self._test,
            "sum": lambda _: self._filled("sum", self._one("sums")),
            "select": lambda level: f"select i in {self._word(level)}; do {self._body(level)}done",
            "coprocess": lambda level: self._filled("coprocess", self._command(level)),
            "live": lambda _: self._one("live").replace("{}", self._one("live_names"), 1),
        }

    def line(self) -> str:
        """One line, or a few, with the here documents that they begin."""
        self._documents = []
        lines: list[str] = []
        for _ in range(int(self._of("lines"))):
            text = self._list(0)
            if self._chance(0.03):
                text += self._one("comments")
            lines += [text, *self._documents]
            self._documents = []
        before, after = (self._random.choice(" \n\t") if self._chance(share) else "" for share in (0.04, 0.02))
        return before + "\n".join(lines) + after

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _one(self, name: str) -> str:
        return self._random.choice(_LISTS[name])

    def _of(self, name: str) -> str:
        weights = _WEIGHTS[name]
        return self._random.choices(list(weights), list(weights.values()))[0]

    def _filled(self, name: str, inner: str) -> str:
        return self._of(name).replace("{}", inner, 1)

    def _list(self, level: int) -> str:
        text = self._pipeline(level)
        if self._chance(0.04):
            going = self._one("going")
            text = going + self._of("going") + text + ")" * going.startswith("(")
        while self._chance(0.3 - 0.05 * level):
            text += self._of("list") + self._pipeline(level)
        return text + self._of("list_end")

    def _pipeline(self, level: int) -> str:
        text = self._of("pipeline") + self._command(level)
        while self._chance(0.2):
            text += self._of("pipe") + self._command(level)
        return text

    def _command(self, level: int) -> str:
        if level >= _DEEPEST or self._chance(0.87):
            return self._simple(level)
        made = self._compound[self._of("compound")](level + 1)
        return f"{made} {self._redirection(level)}" if self._chance(0.15) else made

    # -- simple commands

    def _simple(self, level: int) -> str:
        parts: list[str] = []
        if self._chance(0.06):
            parts.append(self._one("assigned" if self._chance(0.75) else "rarely_assigned"))
            if self._chance(0.3):
                return parts[0]
        if self._chance(0.02):
            parts.append(self._redirection(level))
        parts.append(self._first(level))
        parts += [self._word(level) for _ in range(int(self._of("words")))]
        if self._chance(0.16):
            at = len(parts) if self._chance(0.9) else self._random.randrange(1, len(parts) + 1)
            parts.insert(at, self._redirection(level))
        text = parts[0]
        for part in parts[1:]:
            text += (self._one("spaces") if self._chance(0.03) else " ") + part
        return text

    def _first(self, level: int) -> str:
        match self._of("command"):
            case "own":
                return self._one("own_often" if self._chance(0.6) else "own")
            case "wrapper":
                return f"{self._one('wrappers')} {self._first(level)}"
            case "shell":
                return self._filled("shell", self._quoted(self._inner(level)))
            case "find":
                return f"find {self._one('found_in')} {self._of('find').format(self._one('names'))}"
            case "trap":
                return f"trap {self._quoted(self._inner(level))} {self._one('signals')}"
            case "odd":
                return self._one("odd_commands" if self._chance(0.6) else "strange")
            case _:
                return self._one("names")

    def _inner(self, level: int) -> str:
        # Here documents within a text would end outside of it.
        kept, self._documents = self._documents, []
        text = "\n".join([self._list(max(level + 1, 2)), *self._documents])
        self._documents = kept
        return text

    def _quoted(self, text: str) -> str:
        if self._chance(0.7):
            return "'" + text.replace("'", "'\\''") + "'"
        if self._chance(0.5):
            return '"' + "".join("\\" + each if each in '"\\$`' else each for each in text) + '"'
        return self._random.choice(("'{}'", '"{}"', "{}", "$'{}'")).replace("{}", text)

    def _word(self, level: int) -> str:
        match self._of("word"):
            case "single":
                return f"'{self._one('single')}'"
            case "double" if self._chance(0.03):
                return self._message()
            case "double":
                return f'"{self._inside_double(level)}"'
            case "variable":
                return self._one("variables")
            case "rare":
                return self._one("rare_expansions")
            case "inner" if level < _DEEPEST:
                return self._substitution(level)
            case "joined":
                return self._word(level) + self._word(level)
            case "odd":
                return (self._one("plain") if self._chance(0.5) else "") + self._one("strange")
            case _:
                return self._one("plain") if self._chance(0.999) else "x" * 3000

    def _inside_double(self, level: int) -> str:
        text = ""
        while not text or self._chance(0.5):
            if self._chance(0.9):
                text += self._one("double")
            else:
                text += self._substitution(level) if self._chance(0.5) else self._one("rare_expansions")
        return text

    def _message(self) -> str:
        """A text of several lines in one word, as messages of commits are written."""
        mark = self._one("delimiters_often" if self._chance(0.5) else "delimiters")
        end = "".join(each for each in mark if each not in "'\"\\")
        lines = [self._one("document") for _ in range(self._random.randint(0, 3))]
        return f'"$(cat {"<<-" if self._chance(0.1) else "<<"}{mark}\n' + "\n".join([*lines, end]) + '\n)"'

    def _substitution(self, level: int) -> str:
        return self._filled("substitution", self._inner(level + 1) if level < _DEEPEST else self._one("names"))

    def _redirection(self, level: int) -> str:
        match self._of("redirection"):
            case "stream":
                return self._of("stream")
            case "string":
                return f"<<<{' ' * self._chance(0.6)}{self._word(level)}"
            case "document":
                return self._document()
            case _:
                target = self._one("files") if self._chance(0.9) else self._word(level)
                return self._of("file") + " " * self._chance(0.55) + target

    def _document(self) -> str:
        delimiter = self._one("delimiters_often" if self._chance(0.8) else "delimiters")
        operator = self._of("document")
        name = "document_often" if self._chance(0.7) else "document"
        lines = [self._one(name) for _ in range(self._random.randint(0, 2))]
        tab = "\t" * (operator == "<<-" and self._chance(0.5))
        end = "".join(each for each in delimiter if each not in "'\"\\") if self._chance(0.97) else "F"
        self._documents.append("\n".join([*lines, tab + end]))
        return operator + delimiter

    # -- compound commands

    def _group_body(self, level: int) -> str:
        return self._list(level).removesuffix(" &").removesuffix(";")

    def _body(self, level: int) -> str:
        return self._group_body(level) + self._of("body")

    def _if(self, level: int) -> str:
        text = f"if {self._body(level)}then {self._body(level)}"
        if self._chance(0.2):
            text += f"elif {self._body(level)}then {self._body(level)}"
        return text + (f"else {self._body(level)}" if self._chance(0.3) else "") + "fi"

    def _loop(self, level: int) -> str:
        condition = "read -r v; " if self._chance(0.4) else self._body(level)
        return f"{self._of('loop')} {condition}do {self._body(level)}done"

    def _for(self, level: int) -> str:
        over = " ".join(self._word(level) for _ in range(self._random.randint(1, 3)))
        text = self._of("for").replace("{name}", self._of("variable")).replace("{sum}", self._one("sums"))
        return text.replace("{over}", over).replace("{body}", self._body(level))

    def _case(self, level: int) -> str:
        text = f"case {self._word(level)} in "
        for _ in range(self._random.randint(0, 2)):
            text += f"{self._one('patterns')}) {self._group_body(level)}{self._of('case_end')}"
        return text + "esac"

    def _function(self, level: int) -> str:
        name = self._of("function_name")
        text = self._of("function") + self._of("function_end")
        return text.replace("{name}", name).replace("{body}", self._body(level))

    def _test(self, level: int) -> str:
        one = self._one("tests") if self._chance(0.9) else f"{self._word(level)} = {self._word(level)}"
        return self._of("test").replace("{one}", one).replace("{double}", self._one("double_tests"))


def mutated(random: Random, line: str) -> str:
    """The line with a few characters taken away, put in, doubled or swapped."""
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5))):
        line = random.choice(_MUTATIONS)(random, line, random.randrange(len(line) + 1))
    return line


def soup(random: Random) -> str:
    """Loose pieces."""
    return "".join(random.choice(WORDS["pieces"]) for _ in range(random.randint(2, 12)))


def lines(seed: int) -> Iterator[tuple[str, str]]:
    """Lines without end, each with its kind. The same seed makes the same lines."""
    random = Random(seed)
    grammar = Grammar(random)
    kinds = _WEIGHTS["kind"]
    while True:
        kind = random.choices(list(kinds), list(kinds.values()))[0]
        line = soup(random) if kind == "soup" else grammar.line()
        yield kind, mutated(random, line) if kind == "mutation" else line


def _nasty(random: Random) -> str:
    return random.choice(WORDS["characters"] if random.random() < 0.7 else WORDS["pieces"])


_MUTATIONS: tuple[Callable[[Random, str, int], str], ...] = (
    lambda _, line, at: line[:at] + line[at + 1 :],
    lambda _, line, at: line[:at] + line[at:].replace(" ", "", 1),
    lambda _, line, at: line[:at] + line[at:].replace("; ", "\n", 1),
    lambda random, line, at: line[:at] + _nasty(random) + line[at:],
    lambda random, line, at: line[:at] + _nasty(random) + line[at:],
    lambda random, line, at: line[:at] + _nasty(random) + line[at + 1 :],
    lambda _, line, at: line[:at] + line[at : at + 1] * 2 + line[at + 1 :],
    lambda _, line, at: line[:at] + line[at + 1 : at + 2] + line[at : at + 1] + line[at + 2 :],
    lambda random, line, at: line[:at] + line[at : at + random.randint(1, 9)] + line[at:],
)
