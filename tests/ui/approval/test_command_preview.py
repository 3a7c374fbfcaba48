from desktop_agent.permissions.approvals import explain_line
from ui.approval import command_preview as module
from ui.approval.command_preview import find_risk_spans, risks_first


def risk_spans(line):
    spans = find_risk_spans(line, explain_line(line)[0])
    return [(line[start:end], is_grave) for start, end, is_grave in spans]


def test_commands_and_what_they_write_to_are_found_in_order():
    assert risk_spans("ls; rm x; cat a > b; git push") == [("rm x", True), ("> b", False), ("git push", True)]


def test_blanks_and_broken_lines_hide_nothing():
    assert risk_spans("ls  -l ;  rm   -rf \\\n  x;git\tpush") == [("rm   -rf \\\n  x", True), ("git\tpush", True)]


def test_of_very_many_the_grave_ones_are_kept(monkeypatch):
    monkeypatch.setattr(module, "MAX_SPANS", 2)
    assert risk_spans("touch a; touch b; rm c; touch d; rm e") == [("rm c", True), ("rm e", True)]


def test_passages_never_overlap():
    assert risk_spans("rm '> a'; cat x > a") == [("rm '> a'", True)]


def test_those_with_risks_stand_first_with_what_they_start():
    parts = explain_line("ls; sudo rm x; pwd; curl y")[0]
    assert [part.text for part in risks_first(parts)] == ["sudo rm x", "rm x", "curl y", "ls", "pwd"]
