from desktop_agent.types.providers import Capabilities


def test_what_is_said_wins_and_what_is_not_said_is_filled_up() -> None:
    listed = Capabilities(images=False, context_window=8, efforts=())
    known = Capabilities(images=True, tools=True, context_window=4, efforts=("low",), budget=(1, 2))
    assert listed.over(known) == Capabilities(images=False, tools=True, context_window=8, efforts=(), budget=(1, 2))
    assert Capabilities().over(known) == known
    assert known.over(Capabilities()) == known
