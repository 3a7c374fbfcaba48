import pytest

from desktop_agent.exchange.simple_math import simple_math


@pytest.mark.parametrize(
    ("latex", "html"),
    [
        ("x^2", "<i>x</i><sup>2</sup>"),
        ("a_{i+1}", "<i>a</i><sub><i>i</i>+1</sub>"),
        ("\\pi r^2 \\le 3.5", "<i>π</i><i>r</i><sup>2</sup> ≤ 3.5"),
        ("a - b = -1", "<i>a</i> \u2212 <i>b</i> =  \u2212 1"),
        ("a < b", "<i>a</i> &lt; <i>b</i>"),
    ],
)
def test_signs_in_a_row_are_drawn(latex: str, html: str) -> None:
    assert simple_math(latex) == html


@pytest.mark.parametrize(
    "latex",
    [r"\frac{a}{b}", "x^", "^2", "a_{b_c}", "x^{2", "}", "a & b", "", " ", "x" * 121, r"\unknown", "é", "<b>\0"],
)
def test_everything_else_stays_as_it_was_written(latex: str) -> None:
    assert simple_math(latex) is None
