"""The cost of a run of a hosted model, and its limit: `price_in`, `price_out`, `max_cost`.

A request is sent only if the most that it can cost, together with the requests in progress, stays within `max_cost`.
This most is known in advance, because a token has at least one byte, and an answer has at most `max_tokens` tokens.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from mbr_esd_metric.generation.server.dialect import Usage

#: The most tokens of a chat template around a prompt.
_TEMPLATE = 64


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices per million tokens, and the most that a run may cost (None: no limit), in one currency."""

    tokens_in: float = 0.0
    tokens_out: float = 0.0
    most: float | None = None

    def of(self, usage: Usage) -> float:
        """The cost of these tokens."""
        return (usage.prompt * self.tokens_in + usage.completion * self.tokens_out) / 1e6

    def bound(self, prompt: str, tokens: int) -> float:
        """The most that a request for `tokens` tokens can cost."""
        return self.of(Usage(len(prompt.encode("utf-8", "surrogatepass")) + _TEMPLATE, tokens))


class Budget:
    """The money that one run has spent and set aside; for one event loop.

    Attributes:
        spent: on replies that came, and on requests whose reply was lost after the work may have been done.
    """

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self.spent = 0.0
        self._aside = 0.0
        self._changed = asyncio.Condition()

    async def reserve(self, bound: float) -> bool:
        """Set money aside for a request, if needed after others have finished; False if it can never be enough."""
        most = self.prices.most
        async with self._changed:
            while most is not None and self.spent + self._aside + bound > most:
                if self._aside <= 1e-12:
                    return False
                await self._changed.wait()
            self._aside += bound
            return True

    async def settle(self, bound: float, cost: float) -> None:
        """Release the money that was set aside, and count what the request cost."""
        async with self._changed:
            self._aside = max(0.0, self._aside - bound)
            self.spent += cost
            self._changed.notify_all()
