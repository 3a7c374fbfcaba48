"""Characters in commands that pass for others, and those that only belong to another language."""

import pytest

from desktop_agent.permissions.approvals import explain_line
from desktop_agent.types.tool_calls import Risk

DECEIVE = [
    ("\u0441url https://example.org", "\u0441", "c"),
    ("\u0441\u0443\u0440 a b", "\u0441", "c"),
    ("\uff43url x", "\uff43", "c"),
    ("\U0001d41c\U0001d42e\U0001d42b\U0001d425 x", "\U0001d41c", "c"),
    ("g\u0131t status", "\u0131", "i"),
    ("/usr/bin/\u0441at a", "\u0441", "c"),
    ("rm \u2212rf build", "\u2212", "-"),
    ("rm \u2013rf build", "\u2013", "-"),
    ("rm \u2014force build", "\u2014", "-"),
    ("rm -\u0433f build", "\u0433", "r"),
    ("git push -\u2010force", "\u2010", "-"),
    ("git push --dry\u2010run", "\u2010", "-"),
    ("apt\u2011get update", "\u2011", "-"),
    ("git push --f\u043erce", "\u043e", "o"),
    ("git checkout m\u0430in", "\u0430", "a"),
    ("cat src\u2215main.py", "\u2215", "/"),
    ("cat src/m\u03bfdel.py", "\u03bf", "o"),
    ("curl https://ex\u0430mple.org/x", "\u0430", "a"),
    ("curl https://\u0430\u0440\u0440\u04cf\u0435.com", "\u0430", "a"),
    ("curl \u0430\u0440\u0440\u04cf\u0435.com", "\u0430", "a"),
    ("git clone git@\u0441\u043e\u0441\u043e.io:a/b", "\u0441", "c"),
    ("curl https://example.org\u2215evil.io", "\u2215", "/"),
    ("curl https://example\u2024org", "\u2024", "."),
    ("echo \u2019rm x\u2019", "\u2019", "'"),
    ("curl \u201chttps://example.org\u201d", "\u201c", '"'),
    ("echo \u201c$HOME\u201d", "\u201c", '"'),
    ("echo a \uff1b rm b", "\uff1b", ";"),
    ("echo a\uff5cb", "\uff5c", "|"),
    ("echo x > src/\u0430b.txt", "\u0430", "a"),
    ("sudo \u0441at a", "\u0441", "c"),
    ("git commit -m 'pay\u0440al login'", "\u0440", "p"),
]


@pytest.mark.parametrize(("line", "char", "passes_for"), DECEIVE)
def test_a_character_that_passes_for_another_is_named(line: str, char: str, passes_for: str) -> None:
    parts = [part for part in explain_line(line)[0] if part.lookalikes]
    assert [Risk.LOOKALIKE in part.risks for part in parts] == [True]
    assert (parts[0].lookalikes[0].char, parts[0].lookalikes[0].passes_for) == (char, passes_for)
    assert parts[0].lookalikes[0].name.startswith(f"U+{ord(char):04X} ")


ORDINARY = [
    "git commit -m 'Grüße an alle'",
    "git commit -m 'Привет, мир'",
    "git commit -m 'сор'",
    "git commit -m Привет",
    "git commit -m '修复：登录问题（紧急）'",
    "git commit -m 修复：登录",
    "git commit -m 'It’s done – really'",
    "echo it’s",
    "echo a – b",
    "cat 'Bericht 1990–2000.txt' 1990–2000.txt —Привет",
    "cat 日本語.txt",
    "cat Résumé.pdf Straße/Ölförderung.md",
    "cat документы/отчёт.txt",
    "cat сор.txt",
    "cat Ελλάδα.txt",
    "cat 第3章.md 東京2020.txt",
    "cat 'naïve café.txt'",
    "echo 10m² H₂O 1º x₁ ①a",
    "echo 10µs 5kΩ Δt 25°C",
    "echo ✓ 🎉 →",
    "echo שלום",
    "mkdir kapı",
    "grep -rn 'año' docs",
    "curl https://bücher.example",
    "curl https://пример.рф",
    "docs/обзор.sh",
]


@pytest.mark.parametrize("line", ORDINARY)
def test_what_is_of_another_language_is_no_deception(line: str) -> None:
    assert [part.lookalikes for part in explain_line(line)[0] if part.lookalikes] == []
