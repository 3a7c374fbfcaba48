from desktop_agent.providers.dialects.request_building import PrefixDigest, account_digest


def test_accounts_are_told_apart_by_server_and_model() -> None:
    names = {
        account_digest(*each)
        for each in [("https://a", "m"), ("https://a", "n"), ("https://b", "m"), ("https://am", "")]
    }
    assert len(names) == 4
    assert account_digest("https://a", "m") == account_digest("https://a", "m")
    assert "https" not in account_digest("https://a", "m")


def digest(*pieces: object, account: str = "x") -> str:
    made = PrefixDigest(account)
    for piece in pieces:
        made.add(piece)
    return made.value


def test_the_digest_depends_on_every_piece_its_place_and_the_account() -> None:
    all_of_them = [
        digest(),
        digest(account="y"),
        digest({"a": 1}),
        digest({"a": 2}),
        digest({"a": 1}, {"b": 1}),
        digest({"b": 1}, {"a": 1}),
        digest([{"a": 1}, {"b": 1}]),
        digest("ab"),
        digest("a", "b"),
        digest(12),
        digest(1, 2),
        digest(None),
    ]
    assert len(set(all_of_them)) == len(all_of_them)
    assert digest({"a": 1}) == digest({"a": 1})


def test_the_value_may_be_read_on_the_way() -> None:
    made = PrefixDigest("x")
    made.add("a")
    before = made.value
    assert made.value == before
    made.add("b")
    assert (before, made.value) == (digest("a"), digest("a", "b"))
