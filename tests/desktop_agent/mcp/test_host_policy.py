"""The judgement of arbitrary addresses that a server gives."""

from urllib.parse import urlsplit

from hypothesis import example, given
from hypothesis import strategies as st

from desktop_agent.mcp.host_policy import allowed_private_hosts, host_of_url, is_private_host, may_open_url

PARTS = [
    "http",
    "https",
    "://",
    "[",
    "]",
    "::1",
    "127.0.0.1",
    "@",
    ":",
    "/",
    "%",
    "0x7f.1",
    "a.example",
    ".",
    "é",
    "\n",
]
ADDRESSES = st.lists(st.sampled_from(PARTS) | st.text(max_size=3), max_size=8).map("".join)


@given(ADDRESSES)
@example("https://127.1/")
@example("https://[::ffff:127.0.0.1]/")
@example("https://localhost./")
@example("https://a.example:99999999999/")
def test_whatever_is_given_is_judged_and_nothing_private_is_opened(url):
    host = host_of_url(url)
    assert allowed_private_hosts(url) <= {host}
    if may_open_url(url, frozenset()):
        assert urlsplit(url).scheme == "https"
        assert not is_private_host(host)
        assert "@" not in urlsplit(url).netloc


def test_what_the_settings_allow_is_not_open_to_every_public_server():
    allowed = frozenset({"wiki.corp.example", "10.0.0.7"})
    assert allowed_private_hosts("https://public.example/mcp", allowed) == frozenset()
    assert allowed_private_hosts("https://wiki.corp.example/mcp", allowed) == allowed
    assert allowed_private_hosts("http://127.0.0.1:8000/mcp", allowed) == {*allowed, "127.0.0.1"}
