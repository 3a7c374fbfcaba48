import pytest

from desktop_agent.tools.files.search_process import GLOB_LIMIT, Glob
from desktop_agent.types.errors import ToolFailed


@pytest.mark.parametrize(
    ("pattern", "meant", "not_meant"),
    [
        ("*.py", ["a.py", "src/a.py", "a/b/c.py"], ["a.pyc", "py", "a.py/b"]),
        ("src/*.py", ["src/a.py"], ["a.py", "src/b/a.py", "x/src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/b/c/a.py"], ["a.py", "src/a.txt"]),
        ("**/test_*", ["test_a", "a/test_b"], ["a/b"]),
        ("src/**", ["src/a", "src/b/c"], ["a"]),
        ("./a?.[ch]", ["a1.c", "ab.h"], ["a.c", "ab.o"]),
        ("/a", ["a"], ["b/a"]),
        ("**/**/**/x", ["x", "a/x", "a/b/c/d/x"], ["x/a"]),
    ],
)
def test_what_a_pattern_means(pattern: str, meant: list[str], not_meant: list[str]) -> None:
    glob = Glob(pattern)
    assert [path for path in meant if not glob.matches(path.split("/"))] == []
    assert [path for path in not_meant if glob.matches(path.split("/"))] == []


def test_a_pattern_that_is_none_is_refused() -> None:
    for pattern in ("", "  ", "/", "a" * (GLOB_LIMIT + 1), "*a" * 30):
        with pytest.raises(ToolFailed):
            Glob(pattern)
