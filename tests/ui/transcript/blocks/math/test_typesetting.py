"""Formulas look as the typesetter itself makes them."""

import re

import pytest
import ziamath.nodes.mnode
from ziamath.nodes.mrow import Mrow

from desktop_agent.markdown import typesetting
from desktop_agent.markdown.typesetting import TypesetFormula
from tests.ui.transcript.blocks.math.typeset_here import typeset

FORMULAS = [
    r"\frac{a+b}{c-d}",
    r"\sum_{i=1}^{n} i = \frac{n(n+1)}{2}",
    r"\left(\frac{a}{b}\right)^2",
    r"\left|\frac{1}{2}\right|_{x}",
    r"\sqrt{\left[\sum_i x\right]}",
    r"\int_0^1 \left\langle x \middle| y\right\rangle",
    r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}",
    r"\overbrace{a+b}^{n}",
    r"\widehat{abc} \overrightarrow{AB}",
    r"\color{red}{x+y}",
    r"\textstyle\frac12 \displaystyle\sum_i x {\scriptstyle x}",
    r"\mathbf{A}\mathcal{B}\mathfrak{C}\mathrm{sin}",
    r"x_{y_{z^{w}}}",
    r"\uparrow \frac{a}{b} \Downarrow",
    r"f'(x) = \lim_{h\to0}\frac{f(x+h)-f(x)}{h}",
]


@pytest.fixture
def as_the_library_does(monkeypatch, qapp):
    """Let the library draw formulas without our rows."""
    monkeypatch.setattr(Mrow, "_get_height_nostretch", typesetting._library_row_height)
    yield
    monkeypatch.undo()


@pytest.mark.parametrize("latex", FORMULAS)
@pytest.mark.parametrize("display", [True, False])
def test_every_formula_is_the_same(request, qapp, latex, display):
    ours = typeset(latex, display=display)
    request.getfixturevalue("as_the_library_does")
    theirs = typeset(latex, display=display)
    assert isinstance(ours, TypesetFormula)
    assert ours == theirs
    assert re.search('viewBox="[-0-9. ]+"', ours.svg)


def test_rows_are_made_twice_only_when_something_in_them_stretches(qapp, monkeypatch):
    tags, original = [], ziamath.nodes.mnode.Mnode.fromelement.__func__

    def counted(cls, element, parent, **kwargs):
        tags.append(element.tag)
        return original(cls, element, parent, **kwargs)

    def count(latex):
        tags.clear()
        typeset(latex, display=True)
        return len(tags)

    monkeypatch.setattr(ziamath.nodes.mnode.Mnode, "fromelement", classmethod(counted))
    flat = count(r"\frac{\frac{a}{b}}{\frac{c}{d}}")
    assert flat < 20
    assert count(r"\left(\frac{\frac{a}{b}}{\frac{c}{d}}\right)") > 1.5 * flat
