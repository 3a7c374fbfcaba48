from desktop_agent.providers.dialects.request_building import PrefixDigest, account_digest


def test_accounts_are_told_apart_by_server_and_model() -> None:
    names = {
        account_digest(*server_and_model)
        for server_and_model in [("https://a", "m"), ("https://a", "n"), ("https://b", "m"), ("https://am", "")]
    }
    assert len(names) == 4
    assert account_digest("https://a", "m") == account_digest("https://a", "m")
    assert "https" not in account_digest("https://a", "m")


def digest(*pieces: object, account: str = "x") -> str:
    prefix = PrefixDigest(account)
    for piece in pieces:
        prefix.add(piece)
    return prefix.value


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
    prefix = PrefixDigest("x")
    prefix.add("a")
    before = prefix.value
    assert prefix.value == before
    prefix.add("b")
    assert (before, prefix.value) == (digest("a"), digest("a", "b"))
