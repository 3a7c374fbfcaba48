"""What is asked for every link costs little and is answered as the library answers it."""

from urllib.parse import urlsplit

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it.common.normalize_url import normalizeLink, validateLink

from desktop_agent.markdown.link_targets import safe_target
from desktop_agent.markdown.parser import is_valid_target, normalize_target

_SIGNS = [*"a/?#@:[]()*~\\^{|_-+.;&=$,!'\" \t\nés\0。"]
_WORDS = ["http://", "HTTPS://", "//", "example.org", "EXAMPLE", "xn--a", "ſ", "::1", "80", "%20", "%", ".."]
_LONG = ["x" * 64, "y" * 63, ("z" * 60 + ".") * 5]
_PARTS = st.sampled_from([*_SIGNS, *_WORDS, *_LONG, "javascript:", "data:", "mailto:"])
_ENDS = st.lists(_PARTS, max_size=6).map("".join)
_TARGETS = st.sampled_from(["", "http://", "https://", "https://a.example/"]).flatmap(lambda s: _ENDS.map(s.__add__))


@given(_TARGETS)
@example("https://a.example:80/a%20b?c=(d)#e'f")
@example("https://a.example/'\"")
@example("https://a_b.example:/")
def test_a_target_is_written_and_judged_as_the_library_does_it(target):
    assert normalize_target(target) == normalizeLink(target)
    assert is_valid_target(target) == validateLink(target)


@given(_TARGETS)
@example("https://u@a.example/")
@example("https://a.example\t/")
@example("https://a.example:b/")
def test_a_target_with_a_plain_host_is_safe_when_the_standard_library_finds_that_host(target):
    try:
        host = urlsplit(target).hostname or ""
    except ValueError:
        host = ""
    is_plain = host.isascii() and host[:1].isalnum() and not set(host) - set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    if is_plain and target[:7] != "mailto:":
        assert bool(safe_target(target)) == (urlsplit(target).scheme in {"http", "https"})
    elif host.isascii() and ":" not in host and not target.lower().startswith("mailto:"):
        assert not safe_target(target)
