"""When a failed request is sent again, and after how long."""

import random
from dataclasses import dataclass

from desktop_agent.vocabulary.errors import AgentError, ProviderError

# The vendors' own clients wait at most this long for a hint; a longer wait is the person's choice.
LONGEST_HINT = 120.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with jitter, in seconds. A server's own hint goes first."""

    attempts: int = 3
    first_delay: float = 0.5
    longest_delay: float = 8.0

    def delay(self, error: AgentError, attempt: int) -> float | None:
        """Seconds to wait before attempt number `attempt` + 1, or None to give up. Attempts count from 1."""
        if not isinstance(error, ProviderError) or not error.retryable or attempt >= self.attempts:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= LONGEST_HINT else None
        ceiling = min(self.first_delay * 2 ** (attempt - 1), self.longest_delay)
        return ceiling * (1 - 0.25 * random.random())  # noqa: S311 - spreads clients out, protects nothing
