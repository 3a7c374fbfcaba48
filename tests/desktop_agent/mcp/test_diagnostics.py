"""The log of what a server writes beside its answers."""

from desktop_agent.mcp.diagnostics import MAX_LINES, MAX_LOG_LINE_LENGTH, ServerLog


def test_the_last_lines_are_kept_each_of_a_bounded_length():
    lines = []
    log = ServerLog(lines.append)
    for number in range(MAX_LINES + 10):
        log.add(f"{number} " + "x" * 10_000)
    assert len(log.lines) == MAX_LINES
    assert log.lines[0].text.startswith("10 ")
    assert len(log.lines[0].text) == MAX_LOG_LINE_LENGTH
    assert len(lines) == MAX_LINES + 10


def test_what_cannot_be_shown_is_replaced_and_secrets_are_taken_out():
    log = ServerLog()
    log.add_secrets(("s3cret-value", "abc"))
    log.add("a\x1b[31m b \udc80 s3cret-value abc", "error")
    (line,) = log.lines
    assert line.text == "a�[31m b ? ••• abc"
    assert line.level == "error"
    log.add("   ")
    assert log.last_line == line.text


def test_a_secret_is_hidden_whole_wherever_a_line_is_cut():
    log = ServerLog()
    secret = "S3CRET" + "secretvalue" * 30
    log.add_secrets(("S3CRETse", secret))
    for text in (
        f"{secret} " * 50,
        "x" * (MAX_LOG_LINE_LENGTH - 9) + secret,
        "x" * (MAX_LOG_LINE_LENGTH * 2 - 9) + secret,
    ):
        log.add(text)
        log.add_stray_output(text)
        for logged in (log.lines[-1].text, log.last_line, log.stray_output):
            assert len(logged) <= MAX_LOG_LINE_LENGTH
            assert "S3C" not in logged
            assert "secretvalue" not in logged
    assert log.redact(f"a {secret} b") == "a ••• b"
