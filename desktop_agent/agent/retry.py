"""Whether a failed request is retried, and after how long; and the remedy where that is too long to wait."""

import random
from dataclasses import dataclass

from desktop_agent.types.errors import AgentError, ProviderError, QuotaExhausted, Sentence

# In seconds. The vendors' own clients follow a server's hint up to this; a longer wait is the person's choice.
MAX_RETRY_AFTER = 120.0
_WEEK_SECONDS = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with jitter, in seconds. A server's own hint goes first."""

    attempts: int = 3
    first_delay: float = 0.5
    max_delay: float = 8.0

    def delay(self, error: AgentError, attempt: int) -> float | None:
        """Return the seconds to wait before attempt `attempt` + 1, or None to give up. Attempts count from 1."""
        if not isinstance(error, ProviderError) or not error.retryable or attempt >= self.attempts:
            return None
        # Whatever a proxy's headers say: an empty account does not fill up by waiting.
        if isinstance(error, QuotaExhausted):
            return None
        if error.retry_after:
            return error.retry_after if error.retry_after <= MAX_RETRY_AFTER else None
        ceiling = min(self.first_delay * 2 ** (attempt - 1), self.max_delay)
        return ceiling * (1 - 0.25 * random.random())  # noqa: S311 - spreads clients out, protects nothing


def long_retry_remedy(error: AgentError) -> Sentence | None:
    """Return the remedy for an error whose server asks for a longer wait than the retry policy allows; else None."""
    if not isinstance(error, ProviderError) or isinstance(error, QuotaExhausted):
        return None
    seconds = error.retry_after or 0.0
    if not error.retryable or seconds <= MAX_RETRY_AFTER:
        return None
    if seconds > _WEEK_SECONDS:
        return Sentence("The server asks for a wait of more than a week; choose another model or server.")
    if seconds < 2 * 3600:
        return Sentence(
            "The server asks to wait {minutes} minutes; try again then.", {"minutes": f"{seconds / 60:.0f}"}
        )
    return Sentence("The server asks to wait {hours} hours; try again then.", {"hours": f"{seconds / 3600:.0f}"})
