"""What the demo's server says to the examples: decided by a few words, the same in all dialects."""

import re

from desktop_agent.providers.demo.scripted_model import Break, Call, ReceivedRequest, Say, Script, Step, Think

_SUM = re.compile(r"(\d+) ([+-]) (\d+)")
_STORY = "Once upon a time. " * 2000


class ScriptedModel:
    """One model with a memory: what it is to say wrong once, it says right when it is asked again."""

    def __init__(self) -> None:
        self._broke = False

    def play(self, question: ReceivedRequest) -> Script:
        script = self._answer(question)
        return tuple(step for step in script if question.reasons or not isinstance(step, Think))

    def _answer(self, question: ReceivedRequest) -> tuple[Step, ...]:
        text = question.text
        if question.answered:
            # Dialects without a field for it say in words that a call failed; notes of the runtime come first.
            last = [call.result.strip().splitlines()[-1] for call in question.answered]
            results = [words.removeprefix("[failed] ").removesuffix(".") for words in last]
            return (Say(f"It is {' and '.join(results)}."),)
        if question.pictures:
            seen = ", ".join(f"{each.format} {each.width} x {each.height}" for each in question.pictures)
            return (Say(f"I see {seen}."),)
        if "Break once" in text and not self._broke:
            self._broke = True
            return (Say("Half of it, and "), Break("The power is out."))
        if "story" in text:
            return (Say(_STORY),)
        if "JSON" in text:
            return (Say('{"name": "Paris", "river": "Seine"}'),)
        return self._with_tools(question) or (Think("Somebody greets me."), Say(_greeting(text)))

    def _with_tools(self, question: ReceivedRequest) -> tuple[Step, ...]:
        tools = question.tools or ()
        if "Ask the accountant" in question.text and "accountant" in tools:
            return (Call("accountant", {"task": question.text.partition(":")[2].strip()}),)
        if "Ask me" in question.text and "ask_user" in tools:
            return (Call("ask_user", {"question": "Red or blue?", "choices": ["red", "blue"]}),)
        sums = [(int(a), sign, int(b)) for a, sign, b in _SUM.findall(question.text)]
        named = {"+": "add", "-": "subtract"}
        calls = [Call(named[sign], {"a": a, "b": b}) for a, sign, b in sums if named[sign] in tools]
        return (Say("Let me see."), *calls) if calls else ()


def _greeting(text: str) -> str:
    return "Hello again!" if "again" in text or "once more" in text else "Hello!"
