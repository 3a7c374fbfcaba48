"""What a conversation is called on the screen."""

import re
from pathlib import Path

import ui
from ui.style.text import title_or_new


def test_one_without_a_title_has_a_name():
    assert [title_or_new(title) for title in ("", "Lisbon")] == ["New conversation", "Lisbon"]


def test_the_words_for_it_are_in_one_place():
    own_words = re.compile(r'or \w*(?:\.tr|\.?translate)\((?:"\w+", )?"New conversation"')
    sources = {path: path.read_text(encoding="utf-8") for path in Path(ui.__file__).parent.rglob("*.py")}
    assert len(sources) > 250
    found = {path.stem for path, source in sources.items() if own_words.search(source)}
    assert found == {"text"}
