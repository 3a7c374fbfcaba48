"""Reasoning that a local model wrote into its text between `<think>` and `</think>`.

The rule: only at the very start of an answer, after nothing but white space. There the tag opens thinking, everything
up to the closing tag is thinking, and white space after it is dropped. A tag anywhere later is ordinary text: people
talk about such tags. Some chat templates open the tag themselves, so that the answer starts inside it; nothing in the
stream tells, and holding all text back until a closing tag might come would end streaming. So that is a setting
(`opened_by_template`); without it the text before a lone closing tag stays text.
"""

# What models write, by vLLM's reasoning parsers (vllm/reasoning: deepseek_r1 and qwen3 `think`, seedoss `seed:think`,
# mistral `[THINK]`, cohere_command `<|START_THINKING|>`) and by the tags that Open WebUI looks for
# (open_webui/utils/middleware.py, DEFAULT_REASONING_TAGS: the names beside `think`, OpenThinker's and Kimi-VL's).
_TAG_NAMES = ("think", "thinking", "reasoning", "reason", "thought", "seed:think")
_TAG_PAIRS = (
    *((f"<{name}>", f"</{name}>") for name in _TAG_NAMES),
    ("[think]", "[/think]"),
    ("<|start_thinking|>", "<|end_thinking|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("◁think▷", "◁/think▷"),
)
_MAX_TAG_LENGTH = max(len(opening) for opening, _ in _TAG_PAIRS)
_CLOSING_BY_TEMPLATE = "</think>"


class ThinkTags:
    """Splits the text of one answer into thought and text; tags may be cut anywhere."""

    def __init__(self, *, opened_by_template: bool = False) -> None:
        self.is_settled = False
        self._held = ""
        self._closing = ""
        self._after = False
        self._opened_by_template = opened_by_template

    def feed(self, piece: str) -> list[tuple[bool, str]]:
        """Parts in order: (is thought, text). `settled` becomes true when no tag can matter any more."""
        self._held += piece
        parts: list[tuple[bool, str]] = []
        if not self._closing and not self._after and not self._opens():
            return self.flush() if self.is_settled else []
        if self._closing:
            parts = self._split_inside()
        if self._after:
            self._held = self._held.lstrip()
            if self._held:
                self.is_settled = True
                parts += self.flush()
        return parts

    def drop_blanks(self) -> None:
        """White space that waits is that before thinking: nobody wants to see it."""
        self._held = "" if self._held.isspace() else self._held

    def flush(self) -> list[tuple[bool, str]]:
        """What is held, as it stands."""
        held, self._held = self._held, ""
        return [(bool(self._closing), held)] if held else []

    def _opens(self) -> bool:
        """Whether the thought has begun; settles when it cannot any more."""
        start = self._held.lstrip()
        word = start[:_MAX_TAG_LENGTH].lower()
        for opening, closing in _TAG_PAIRS:
            if word.startswith(opening):
                self._held = start[len(opening) :]
                self._closing = closing
                return True
        if len(start) < _MAX_TAG_LENGTH and any(opening.startswith(word) for opening, _ in _TAG_PAIRS):
            return False
        if self._opened_by_template:
            self._closing = _CLOSING_BY_TEMPLATE
            return True
        self.is_settled = True
        return False

    def _split_inside(self) -> list[tuple[bool, str]]:
        lowered = self._held.lower()
        at = lowered.find(self._closing) if len(lowered) == len(self._held) else self._held.find(self._closing)
        if at >= 0:
            thought, self._held = self._held[:at], self._held[at + len(self._closing) :]
            self._closing, self._after = "", True
            return [(True, thought)] if thought else []
        keep = _overlap(self._held.lower(), self._closing)
        thought, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return [(True, thought)] if thought else []


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of the text may be the start of the tag."""
    return next((size for size in range(min(len(text), len(tag) - 1), 0, -1) if text.endswith(tag[:size])), 0)
