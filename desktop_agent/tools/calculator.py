"""The tool calculate: an expression, parsed and bounded before it is computed."""

import ast
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import simpleeval  # pyright: ignore[reportMissingTypeStubs]  # ships without types
from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.processes.worker_threads import CancelToken
from desktop_agent.tools.tool import ModelSchema, Tool, run_tool_in_thread
from desktop_agent.types.blocks import Text
from desktop_agent.types.errors import ToolFailed
from desktop_agent.types.tool_calls import ToolClass

MAX_EXPRESSION_LENGTH = 1000
# Deep enough for a sum of 200 terms, and a third of Python's own limit.
MAX_DEPTH = 200
# Python itself writes at most 4,300 digits; 13,000 bits are 3,914.
MAX_BITS = 13_000
MAX_FACTORIAL = 1000
MAX_CHOICES = 5000
MAX_PLACES = 300

Number = int | float
# The function of an operator or a name: any arity, numbers in and a number out.
Operation = Callable[..., Any]


_FAILURES: dict[type[Exception], str] = {
    simpleeval.InvalidExpression: "The expression uses something that this calculator does not know.",
    ZeroDivisionError: "The expression divides by zero.",
    RecursionError: "The expression is nested too deep.",
    OverflowError: "A number in the expression becomes too large.",
    TypeError: "A function got the wrong number or kind of arguments.",
    ValueError: "A function got an argument for which it has no value.",
}


def evaluate(expression: str) -> str:
    """Compute an expression and return its value as text. Raises ToolFailed with a sentence."""
    tree = _parse_expression(expression)
    evaluator: Any = simpleeval.SimpleEval(operators=_OPERATORS, functions=FUNCTIONS, names=_CONSTANTS)
    try:
        return _format_number(evaluator.eval(expression, tree))
    except simpleeval.NameNotDefined as error:
        _fail(f"There is no value named “{error.name}” here.")
    except simpleeval.FunctionNotDefined as error:
        _fail(f"There is no function named “{error.func_name}” here.")
    except tuple(_FAILURES) as error:
        _fail(next(sentence for kind, sentence in _FAILURES.items() if isinstance(error, kind)))


def _fail(sentence: str) -> NoReturn:
    raise ToolFailed(sentence)


# Only what arithmetic needs: no attributes, subscripts, strings, lists, keywords, comprehensions or lambdas.
_ALLOWED = (
    *(ast.Expr, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Name, ast.Constant, ast.Load),
    *(ast.operator, ast.unaryop, ast.cmpop),
)


def _parse_expression(expression: str) -> ast.Expr:
    if len(expression) > MAX_EXPRESSION_LENGTH:
        _fail(f"The expression is longer than {MAX_EXPRESSION_LENGTH:,} characters.")
    try:
        body = ast.parse(expression.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        _fail("The expression is not written in a way that can be computed.")
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        _fail("Write one expression, without assignments.")
    for node, depth in _walk_nodes(body[0]):
        if depth > MAX_DEPTH:
            _fail(f"The expression is nested more than {MAX_DEPTH} deep.")
        _check_node(node)
    return body[0]


def _walk_nodes(root: ast.AST) -> Iterator[tuple[ast.AST, int]]:
    """Yield all nodes with their depth, without recursion."""
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        stack.extend((child, depth + 1) for child in ast.iter_child_nodes(node))


def _check_node(node: ast.AST) -> None:
    if isinstance(node, ast.BitXor):
        _fail("Write ** for powers; ^ means something else.")
    if isinstance(node, ast.Constant) and type(node.value) not in {int, float}:
        _fail("Only numbers can be computed.")
    if not isinstance(node, _ALLOWED):
        _fail("The expression uses something that this calculator does not know.")
    if isinstance(node, ast.Call) and (node.keywords or not isinstance(node.func, ast.Name)):
        _fail("Functions are called by name, with values only.")


def _with_checked_result(function: Operation) -> Operation:
    """Refuse a result that grows beyond bounds or is no real number."""

    def checked(*values: Number) -> Number:
        result = function(*values)
        if isinstance(result, complex):
            _fail("The result is not a real number.")
        if isinstance(result, int) and result.bit_length() > MAX_BITS:
            raise OverflowError
        return result

    return checked


def _power(base: Number, exponent: Number) -> Any:
    """Check the size before computing: 9**9**9 would need 370 million digits."""
    if isinstance(base, int) and isinstance(exponent, int):
        large = abs(base) > 1 and abs(exponent) * base.bit_length() > 2 * MAX_BITS
        if large:
            raise OverflowError
    return base**exponent


def _factorial(value: Number) -> int:
    integer = _as_integer(value)
    if integer > MAX_FACTORIAL:
        _fail(f"Factorials are computed up to {MAX_FACTORIAL:,}.")
    return math.factorial(integer)


def _bounded_choice(function: Callable[[int, int], int]) -> Callable[[Number, Number], int]:
    def limited(total: Number, chosen: Number) -> int:
        if abs(total) > MAX_CHOICES or abs(chosen) > MAX_CHOICES:
            _fail(f"Choices are counted up to {MAX_CHOICES:,}.")
        return function(_as_integer(total), _as_integer(chosen))

    return limited


def _round(value: Number, places: Number = 0) -> Number:
    if abs(places) > MAX_PLACES:
        _fail(f"Numbers are rounded to at most {MAX_PLACES} places.")
    return round(value, _as_integer(places)) if places else round(value)


def _as_integer(value: Number) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise ValueError
    return int(value)


def _format_number(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            _fail("The result is not a finite number.")
        # A double holds 15 digits for certain; the 17 of repr would show 0.1 + 0.2 as 0.30000000000000004.
        return format(value, ".15g")
    return str(value)


def _sum(*values: Number) -> Number:
    return sum(values)


def _mean(*values: Number) -> Number:
    return sum(values) / len(values)


def _divide(value: Number, divisor: Number) -> Number:
    return value / divisor


def _floor_divide(value: Number, divisor: Number) -> Number:
    return value // divisor


_BINARY_OPERATORS: dict[type[ast.AST], Operation] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
    ast.FloorDiv: _floor_divide,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}

_OPERATORS: dict[type[ast.AST], Operation] = {
    **{kind: _with_checked_result(step) for kind, step in _BINARY_OPERATORS.items()},
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}

_CONSTANTS: dict[str, float] = {"pi": math.pi, "e": math.e, "tau": math.tau}

_OF_MATH = (
    "floor ceil trunc sqrt cbrt exp log log2 log10 sin cos tan asin acos atan atan2 hypot degrees radians gcd lcm"
)
_PLAIN_FUNCTIONS: dict[str, Operation] = {
    **{name: getattr(math, name) for name in _OF_MATH.split()},
    "abs": abs,
    "min": min,
    "max": max,
    "sum": _sum,
    "mean": _mean,
    "round": _round,
    "factorial": _factorial,
    "comb": _bounded_choice(math.comb),
    "perm": _bounded_choice(math.perm),
    "pow": _power,
}

FUNCTIONS: dict[str, Operation] = {name: _with_checked_result(step) for name, step in _PLAIN_FUNCTIONS.items()}


class CalculateInput(BaseModel):
    """What to compute."""

    model_config = ConfigDict(extra="forbid")

    expression: str = Field(
        min_length=1,
        max_length=MAX_EXPRESSION_LENGTH,
        description="An expression such as (3 + 4) * sqrt(2) or 2**10. Angles are in radians.",
    )


def calculate() -> Tool[CalculateInput]:
    """Make the tool."""

    def work(params: CalculateInput, token: CancelToken) -> tuple[Text, ...]:
        token.raise_if_cancelled()
        return (Text(text=f"{params.expression.strip()} = {evaluate(params.expression)}"),)

    functions = ", ".join(sorted(FUNCTIONS))
    return Tool(
        name="calculate",
        description=(
            "Compute an arithmetic expression: + - * / // % ** and parentheses, comparisons, "
            f"the constants pi, e and tau, and the functions {functions}."
        ),
        schema=ModelSchema(CalculateInput),
        run=run_tool_in_thread(work),
        tool_class=ToolClass.READ_ONLY,
        timeout=10.0,
    )
