"""A report stays short, whatever an import left out."""

from desktop_agent.exchange.import_report import ImportReport
from desktop_agent.types.errors import Sentence


def test_the_report_is_bounded() -> None:
    report = ImportReport()
    for number in range(5000):
        report.add(Sentence("“{name}” is not known.", {"name": f"{number} " + "x" * 1000}))
    notes = list(report.notes)
    assert len(notes) == 201
    assert notes[-1][1] == 4800
    assert all(len(str(sentence)) < 200 for sentence, _ in notes)
