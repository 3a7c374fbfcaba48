"""Formulas look as the typesetter itself makes them."""

import re

import pytest

from ui.transcript.blocks.math.typesetting import TypesetFormula, load, typeset

load()

import ziamath.nodes.mnode  # noqa: E402  it is loaded in its own way
from ziamath.nodes.mrow import Mrow  # noqa: E402
from ziamath.styles import MathStyle, MathVariant, parse_style  # noqa: E402

from ui.transcript.blocks.math import ziamath_patch  # noqa: E402
from ui.transcript.blocks.math.ziamath_patch import prepare_font  # noqa: E402

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
    """What draws a formula without our nodes."""
    prepare_font("x")
    monkeypatch.setattr(ziamath.nodes.mnode, "parse_style", parse_style)
    monkeypatch.setattr(Mrow, "_get_height_nostretch", ziamath_patch._heights[0])
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
    prepare_font("x")
    made, make = [], ziamath.nodes.mnode.Mnode.fromelement.__func__

    def counted(cls, element, parent, **told):
        made.append(element.tag)
        return make(cls, element, parent, **told)

    def count(latex):
        made.clear()
        typeset(latex, display=True)
        return len(made)

    monkeypatch.setattr(ziamath.nodes.mnode.Mnode, "fromelement", classmethod(counted))
    flat = count(r"\frac{\frac{a}{b}}{\frac{c}{d}}")
    assert flat < 20
    assert count(r"\left(\frac{\frac{a}{b}}{\frac{c}{d}}\right)") > 1.5 * flat


def test_a_style_is_the_callers_own():
    from xml.etree.ElementTree import Element

    above = MathStyle(MathVariant("sans", italic=True, bold=True, normal=True), scriptlevel=2, mathcolor="#123456")
    style = ziamath_patch.child_style(Element("mi"), above)
    assert style == above
    style.mathvariant.italic = False
    assert above.mathvariant.italic
    for own in ({"scriptlevel": "3"}, {"mathvariant": "bold"}, {"displaystyle": "false"}, {"style": "color: red"}):
        element = Element("mi", own)
        assert ziamath_patch.child_style(element, above) == parse_style(element, above)
