"""How long the client keeps trying when a server fails.

The retries are this package's own and not a library's (tenacity). A failed request may be tried again as two halves, at
another server, or for the rest of its samples; money is set aside for it; and all requests wait together if the server
says so.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the engine keeps trying.

    Attributes:
        timeout: seconds until a request counts as stalled; it is then tried again in two halves.
        first_wait, longest_wait: seconds before the second try, and the limit up to which they double with each
            further try.
        tries: of one request, before the client gives up. With the defaults it waits about ten minutes in all, which is
            enough to restart a server with a 70B model.
        odd: tries of a request whose replies are complete but not what was asked for.
        longest_rest: the most seconds that a server may ask the client to wait (``Retry-After``, budgets); if it asks
            for more, the run ends.
        ending: seconds that requests under way have to come in when a run ends with an error.
    """

    timeout: float = 600.0
    first_wait: float = 1.0
    longest_wait: float = 60.0
    tries: int = 15
    odd: int = 3
    longest_rest: float = 3600.0
    ending: float = 120.0

    def wait(self, failures: int) -> float:
        """Seconds before the next try, shortened at random by up to half, so that requests do not come all at once."""
        return min(self.longest_wait, self.first_wait * 2.0 ** (failures - 1)) * random.uniform(0.5, 1.0)
