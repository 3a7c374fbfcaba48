"""A second start on the same folder raises the first window."""

from ui.shell.single_instance import SingleInstance


def test_the_second_start_raises_the_first(qtbot, tmp_path):
    first, second, elsewhere = (SingleInstance(folder) for folder in (tmp_path, tmp_path / ".", tmp_path.parent))
    assert first.is_first()
    with qtbot.waitSignal(first.raise_requested):
        assert not second.is_first()
    assert elsewhere.is_first()
    first.close()
    assert second.is_first()
    for each in (first, second, elsewhere):
        each.close()
