"""Where links lead, and what is said about links that pretend."""

from importlib.resources import files

import pytest

from desktop_agent.markdown.link_targets import safe_target
from ui.transcript.markdown.inline import SpanStyle, parse_inline, slice_utf16
from ui.transcript.markdown.misleading_links import (
    display_host,
    is_top_level_domain,
    link_tooltip,
    misleading_link_note,
    unicode_host,
)

CYRILLIC_APPLE = "https://\u0430\u0440\u0440\u04cf\u0435.com"


def links(text):
    line = parse_inline(text)
    return [
        (slice_utf16(line.text, s.start, s.start + s.length), s.href) for s in line.spans if s.style & SpanStyle.LINK
    ]


@pytest.mark.parametrize(
    ("words", "target", "note"),
    [
        ("google.com", "https://evil.com/", "evil.com"),
        ("Log in at www.paypal.com", "https://e.ru/x", "e.ru"),
        ("https://google.com/login", "https://evil.com", "evil.com"),
        ("https://google.com@evil.com", "https://google.com@evil.com", "evil.com"),
        ("docs.python.org", "https://python.org", "python.org"),
        ("mail me: a@b.com", "mailto:c@d.com", "c@d.com"),
        ("аpple.com", "https://xn--pple-43d.com", "xn--pple-43d.com"),
        ("any words", "https://xn--80ak6aa92e.com", "xn--80ak6aa92e.com"),
        ("google.com", "https://google.com/x?y#z", ""),
        ("python.org", "https://docs.python.org", ""),
        ("www.a.com", "http://a.com", ""),
        ("A.COM", "http://a.com", ""),
        ("click here", "https://evil.com", ""),
        ("README.md", "https://github.com/x/blob/main/README.md#usage", ""),
        ("README.md", "https://github.com/x", "github.com"),
        ("numpy.array", "https://numpy.org", ""),
        ("müller.de", "https://xn--mller-kva.de", ""),
        ("中国", "https://xn--fiqs8s.cn", ""),
        ("a@b.com", "mailto:a@b.com?subject=x", ""),
    ],
)
def test_words_that_name_another_place_are_answered_with_the_real_one(words, target, note):
    assert misleading_link_note(words, target) == note


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("example.org", "example.org"),
        ("xn--mller-kva.de", "müller.de"),
        ("xn--fiqs8s.cn", "中国.cn"),
        ("xn--pple-43d.com", "xn--pple-43d.com"),
        ("xn--80ak6aa92e.com", "xn--80ak6aa92e.com"),
        ("xn--e1afmkfd.xn--p1ai", "пример.рф"),
        ("xn--strae-oqa.de", "straße.de"),
        ("xn--w-uga1v8h.pl", "żółw.pl"),
        ("xn--w-uga1v8h.com", "xn--w-uga1v8h.com"),
        ("日本のノート.com", "日本のノート.com"),
        ("abcアイ.com", "abcアイ.com"),
        ("भारत.com", "भारत.com"),
        ("한국.kr", "한국.kr"),
        ("google.comノlogin.evil.com", "google.xn--comlogin-634g.evil.com"),
        ("google.com丿a.evil.cn", "google.xn--coma-ni5f.evil.cn"),
        ("google.com.ノ.cn", "google.com.xn--ldk.cn"),
        ("ɡoogle.com", "xn--oogle-qmc.com"),
        ("gıthub.com", "xn--gthub-n4a.com"),
        ("paypaḷ.com", "xn--paypa-hj1b.com"),
        ("l·l.com", "xn--ll-0ea.com"),
        ("ᎪᏢ.com", "xn--g9d6i.com"),
        ("gооgle.com", "xn--ggle-55da.com"),
        ("go\u3164ogle.com", "google.com"),
        # As the approval dialog reads them: gamma passes for y, sigma for o.
        ("γουσι.gr", "xn--oxamrqj.gr"),
        ("γλώσσα.gr", "γλώσσα.gr"),
        # Arabic heh passes for o, Hebrew he for nothing.
        ("xn--jhbaa.com", "xn--jhbaa.com"),
        ("טיסה.co.il", "טיסה.co.il"),
        ("xn--a", "xn--a"),
        (f"{'ä' * 64}.com", f"{'ä' * 64}.com"),
    ],
)
def test_hosts_are_shown_in_their_letters_only_where_these_pass_for_no_others(host, shown):
    assert display_host(host) == shown


@pytest.mark.parametrize(
    "words",
    [
        "(google.com)",
        "google.com,",
        '"google.com"',
        "→google.com",
        "google.com…",
        "google。com",
        "google．com",
        "google․com",
        "google·com",
        "google\u00ad.com",
        "google.c\u00adom",
        "google.сom",
        "google.com_login",
        "google.com.foo",
        "google.com⁄x",
        "google.comノx",
        "𝗀𝗈𝗈𝗀𝗅𝖾.com",
        "https:⁄⁄google.com",
        "https:\\\\google.com",
        "http:google.com",
        "http://localhost",
        "//intranet",
        "www.intranet",
        "192.168.1.1",
        "https://[::1]",
        "[::1]",
        "paypal.cash",
        "google.gg",
        "правительство.рф",
        "bob@bank.com",
        "evil.example and google.com",
        "https://evil.example/google.com",
        "google.com@evil.example",
        "evil.example@google.com",
    ],
)
def test_whatever_could_be_another_place_is_answered(words):
    assert misleading_link_note(words, "https://evil.example") == "evil.example"


@pytest.mark.parametrize(
    ("words", "target"),
    [
        ("https://x.org/google.com?q=a@b.com", "https://x.org/google.com?q=a@b.com"),
        ("(https://x.org/google.com).", "https://x.org/google.com"),
        ("https://x.org/ä.com", "https://x.org/%C3%A4.com"),
        ("asyncio.gather", "https://docs.python.org/3/library/asyncio-task.html#asyncio.gather"),
        ("Python 3.11.2, e.g. the docs.", "https://python.org"),
        ("Node.js", "https://nodejs.org"),
        ("请看。谢谢", "https://x.org"),
        ("日本のノート.com", "https://日本のノート.com"),
        ("me@x.org", "https://x.org"),
        ("x.org support", "mailto:help@x.org"),
        ("straße.de", "https://xn--strae-oqa.de"),
    ],
)
def test_what_names_the_place_itself_or_nothing_is_not_answered(words, target):
    assert misleading_link_note(words, target) == ""


@pytest.mark.parametrize(
    ("words", "target", "note"),
    [
        ("https://google.com", "mailto:a@evil.example", "a@evil.example"),
        ("google.com", "mailto:a@evil.example", "a@evil.example"),
        ("https://evil.example", "mailto:a@evil.example", "a@evil.example"),
        ("a@b.com", "mailto:a@b.com,c@d.com", "a@b.com,c@d.com"),
        ("(a@b.com)", "mailto:c@d.com", "c@d.com"),
        ("write", "mailto:a@gооgle.com", "a@xn--ggle-55da.com"),
    ],
)
def test_mail_that_goes_elsewhere_is_answered(words, target, note):
    assert misleading_link_note(words, target) == note


def test_letters_that_are_looked_up_apart_are_apart():
    assert misleading_link_note("strasse.de", "https://straße.de") == "straße.de"


def test_every_ending_of_the_root_zone_is_known():
    zone = files("hypothesis.vendor").joinpath("tlds-alpha-by-domain.txt").read_text().lower().split("\n")
    endings = [line for line in zone if line and not line.startswith("#")]
    assert len(endings) > 1000
    assert [
        ending for ending in endings if not is_top_level_domain(ending) or not is_top_level_domain(unicode_host(ending))
    ] == []
    assert not any(map(is_top_level_domain, ("js", "json", "array", "html", "2")))


def test_the_note_stands_after_the_link_and_belongs_to_nothing():
    line = parse_inline("see [**google.com**](https://evil.com) now")
    assert line.text == "see google.com (→ evil.com) now"
    assert line.spans[0].href == "https://evil.com"
    assert (line.spans[1].style, line.spans[1].href) == (SpanStyle.NOTE, "")


def test_a_bare_address_in_foreign_letters_is_answered():
    assert parse_inline(f"see {CYRILLIC_APPLE} now").text == f"see {CYRILLIC_APPLE} (→ xn--80ak6aa92e.com) now"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("(https://x.org/a)", "https://x.org/a"),
        ("https://x.org/a_(b).", "https://x.org/a_(b)"),
        ("https://x.org/?q=1&r=2!", "https://x.org/?q=1&r=2"),
        ("https://x.org:8080/a, b", "https://x.org:8080/a"),
        ("https://x.org/a\u202eb", "https://x.org/a"),
    ],
)
def test_bare_addresses_end_where_the_sentence_goes_on(text, address):
    assert links(text) == [(address, address)]


@pytest.mark.parametrize(
    "text", ["https:///x", "http://", "https://)(/x", "[a](https:///x)", "[a](HTTPS://)", "[a](ftp://x.org)"]
)
def test_what_has_no_host_leads_nowhere(text):
    assert links(text) == []


@pytest.mark.parametrize(
    ("target", "expected_target"),
    [
        ("mailto:a@b.com", "mailto:a@b.com"),
        ("mailto:a@b.com?Subject=x&body=y%0D%0Az&cc=c@d.e&bcc=f@g.h", ...),
        ("mailto:?subject=x", ...),
        ("mailto:a@b.com?attach=/etc/passwd", "mailto:a@b.com"),
        ("MAILTO:a@b.com?subject=x&ATTACH=/etc/passwd&body=y", "MAILTO:a@b.com?subject=x&body=y"),
        ("mailto:a@b.com?%61ttach=/etc/passwd", "mailto:a@b.com"),
        ("mailto:a@b.com?subject=x&amp;attachment=/etc/passwd", "mailto:a@b.com?subject=x"),
        ("mailto:a@b.com?subject=x#&attach=/etc/passwd", "mailto:a@b.com?subject=x#"),
        ("mailto:a@b.com&attach=/etc/passwd", ""),
        ("mailto:?attach=/etc/passwd", ""),
        ("mailto:?", ""),
        ("mailto:a@b.com?subject=x%0D%0ABcc:c@d.e", ""),
        ("mailto:a@b.com%0ABcc:c@d.e", ""),
        ("mailto:a@b.com?cc=c@d.e%0Ax", ""),
        ("mailto:a@b.com?body=%00", ""),
        ("mailto:a@b.com?body=%C2%9B", ""),
        ("mailto:a@b.com?body=a\nb", ""),
        ("mailto:a@b.com?subject=a\x7f", ""),
    ],
)
def test_mail_attaches_nothing_and_forges_no_head(target, expected_target):
    expected = target if expected_target is ... else expected_target
    assert safe_target(target) == safe_target(expected) == expected


def test_the_tip_of_mail_is_what_will_be_opened():
    (link,) = links("[write](mailto:a@b.com?attach=/etc/passwd)")
    assert link == ("write", "mailto:a@b.com")


def test_the_tip_is_the_whole_target_with_nothing_hidden():
    assert link_tooltip("https://x.org/a\u202eb") == "https://x.org/a⟨U+202E⟩b"
    assert link_tooltip(CYRILLIC_APPLE) == f"{CYRILLIC_APPLE} (xn--80ak6aa92e.com)"
    assert link_tooltip("#fn:1") == "#fn:1"
