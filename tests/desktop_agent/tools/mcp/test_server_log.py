"""What a server says beside its answers."""

from desktop_agent.tools.mcp.server_log import LONGEST_LINE, MOST_LINES, ServerLog


def test_the_last_lines_are_kept_each_of_a_bounded_length():
    heard = []
    log = ServerLog(heard.append)
    for number in range(MOST_LINES + 10):
        log.add(f"{number} " + "x" * 10_000)
    assert len(log.lines) == MOST_LINES
    assert log.lines[0].text.startswith("10 ")
    assert len(log.lines[0].text) == LONGEST_LINE
    assert len(heard) == MOST_LINES + 10


def test_what_cannot_be_shown_is_replaced_and_secrets_are_taken_out():
    log = ServerLog()
    log.hide(("s3cret-value", "abc"))
    log.add("a\x1b[31m b \udc80 s3cret-value abc", "error")
    (line,) = log.lines
    assert line.text == "a�[31m b ? ••• abc"
    assert line.level == "error"
    log.add("   ")
    assert log.last_words == line.text


def test_a_secret_is_hidden_whole_wherever_a_line_is_cut():
    log = ServerLog()
    secret = "S3CRET" + "secretvalue" * 30
    log.hide(("S3CRETse", secret))
    for text in (f"{secret} " * 50, "x" * (LONGEST_LINE - 9) + secret, "x" * (LONGEST_LINE * 2 - 9) + secret):
        log.add(text)
        log.add_stray(text)
        for shown in (log.lines[-1].text, log.last_words, log.stray):
            assert len(shown) <= LONGEST_LINE
            assert "S3C" not in shown
            assert "secretvalue" not in shown
    assert log.hidden(f"a {secret} b") == "a ••• b"
