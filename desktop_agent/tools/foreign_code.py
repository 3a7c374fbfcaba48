"""What may be said of an error in code that is not ours: tools, hooks, guards, approvers."""

from traceback import walk_tb


def trace_of(error: BaseException) -> str:
    """For the log: what it was and where, but neither what it says nor source lines, which may hold secrets."""
    frames = [
        f'  File "{frame.f_code.co_filename}", line {line}, in {frame.f_code.co_name}'
        for frame, line in walk_tb(error.__traceback__)
    ]
    return "\n".join([type(error).__name__, *frames])
