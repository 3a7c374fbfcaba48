"""What an answer cost, from its usage and the model's price."""

from dataclasses import dataclass

from desktop_agent.vocabulary.requests import Price
from desktop_agent.vocabulary.usage import Usage

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Pricing:
    """The price of one model, for one answer. `long_lived`: what was written to the cache stays there longer."""

    price: Price
    long_lived: bool = False

    def cost(self, usage: Usage) -> float | None:
        """US dollars, or None where a count or a price that matters is unknown.

        The prompt's tokens are paid in three shares: read from the cache, written to it, and all others. A server that
        does not speak of its cache has none, so that an unknown share counts as empty. Output includes reasoning.
        """
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        price = self._price_for(usage.input_tokens)
        if price is None:
            return None
        read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
        shares = (
            (max(0, usage.input_tokens - read - written), price.input),
            (usage.output_tokens, price.output),
            (read, price.cache_read),
            (written, price.cache_write_long if self.long_lived else price.cache_write),
        )
        total = 0.0
        for tokens, dollars in shares:
            if tokens and dollars is None:
                return None
            total += tokens * (dollars or 0.0)
        return total / _MILLION

    def _price_for(self, prompt: int) -> Price | None:
        is_long = self.price.beyond is not None and prompt > self.price.beyond
        return self.price.long if is_long else self.price
