"""The tool that computes: numbers, the usual operators and a few functions, bounded so that nothing can hang."""

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.tools.arithmetic import FUNCTIONS, MAX_EXPRESSION_LENGTH, evaluate
from desktop_agent.tools.in_thread import CancelToken, run_in_thread
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.tool_calls import ToolClass


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

    async def run(params: CalculateInput, _call: RunningCall) -> tuple[Text, ...]:
        return await run_in_thread(lambda token: work(params, token))

    functions = ", ".join(sorted(FUNCTIONS))
    return Tool(
        name="calculate",
        description=(
            "Compute an arithmetic expression: + - * / // % ** and parentheses, comparisons, "
            f"the constants pi, e and tau, and the functions {functions}."
        ),
        schema=ModelSchema(CalculateInput),
        run=run,
        tool_class=ToolClass.READ_ONLY,
        timeout=10.0,
    )
