"""The figures in the heading."""

import pytest
from PySide6.QtWidgets import QMenu

from desktop_agent.conversation.history import ConversationUsage
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import Usage
from ui.shell.context_usage import UsageMeter
from ui.style.text import format_count, format_dollars, format_price

WARM = Usage(input_tokens=48_000, output_tokens=2_400, cache_read_tokens=39_840, total_tokens=50_400, cost=0.42)


@pytest.fixture
def meter(qtbot):
    usage_meter = UsageMeter()
    qtbot.addWidget(usage_meter)
    return usage_meter


def show(meter, *usages, window=200_000):
    history = [Message(role=Role.ASSISTANT, usage=usage) for usage in usages]
    meter.show_usage(usages[-1] if usages else None, ConversationUsage(lambda: history), window)
    return meter.accessibleDescription().partition("; ")[0]


def test_tokens_of_the_window_the_cached_share_and_the_cost(meter):
    assert show(meter, WARM) == "50,400 of 200,000 tokens · 83 % from cache · $0.42"
    details = meter.accessibleDescription().split("; ")[1:]
    assert details == [
        "Context: 25 % of 200,000 tokens",
        "Input: 48,000 tokens",
        "Output: 2,400 tokens",
        "Read from cache: 39,840 tokens",
        "Cost: $0.42",
    ]
    assert all(detail in meter.toolTip() for detail in details)


def test_what_is_unknown_is_left_out(meter):
    assert show(meter, Usage(total_tokens=1234), window=None) == "1,234 tokens"
    assert "Cost: not known" in meter.accessibleDescription()
    show(meter)
    assert meter.isHidden()


def test_a_sum_with_gaps_says_at_least(meter):
    assert show(meter, WARM, WARM.model_copy(update={"cost": None})).endswith("≥ $0.42")
    assert "some answers is not known" in meter.accessibleDescription()


def test_it_gets_shorter_where_there_is_less_room(meter):
    show(meter, WARM)
    meter.show()
    texts, widths = [], set()
    for room in range(1000, 0, -5):
        meter.set_room(room)
        if meter.text() not in texts:
            texts.append(meter.text())
        widths.add((meter.text(), meter.sizeHint().width()))
    # As wide as what it shows, whatever more room there is: that is the title's.
    assert len(widths) == len(texts)
    assert texts == [
        "50,400 of 200,000 tokens · 83 % from cache · $0.42",
        "50.4k / 200k · 83 % from cache · $0.42",
        "50.4k / 200k · $0.42",
        "$0.42",
    ]
    assert meter.accessibleName() == "Tokens and cost"
    assert meter.accessibleDescription().startswith(texts[0])


def test_pressing_it_shows_the_details_and_leads_to_the_usage_of_all_conversations(meter, qtbot, qt_messages):
    show(meter, WARM)
    meter.show()
    qt_messages.expect("grabbing the keyboard")
    meter.click()
    menu = meter.findChild(QMenu)
    qtbot.waitUntil(menu.isVisible)
    lines = [action.text() for action in menu.actions() if not action.isSeparator()]
    assert lines[-2:] == ["Cost: $0.42", "Usage of all conversations"]
    with qtbot.waitSignal(meter.usage_requested):
        menu.actions()[-1].trigger()
    menu.close()


def test_money_and_numbers_are_written_as_people_read_them():
    assert [format_dollars(amount) for amount in (0, 0.001, 0.005, 0.42, 1234.5)] == [
        "$0.00",
        "< $0.01",
        "$0.01",
        "$0.42",
        "$1,234.50",
    ]
    assert [format_price(price) for price in (3, 0.3, 1.25, 0.075, 15)] == ["$3", "$0.30", "$1.25", "$0.075", "$15"]
    assert [format_count(count) for count in (950, 19_732, 200_000, 262_144, 1_048_576, 999_999)] == [
        "950", "19.7k", "200k", "262k", "1M", "1M",
    ]  # fmt: skip
