"""`dialect=plain`: any server with chat completions.

Nothing holds the model to the format, so the answer is looked for in its text. `dialect=transformers` is the same, with
the settings in the field in which ``transformers serve`` takes them.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

from mbr_esd_metric.generation.server.dialect import Ask, Capabilities, Dialect, messages

_DECODER = json.JSONDecoder()
#: The decoder's errors count the lines from the text's beginning. What is further back than this is cut off.
_BEHIND = 4096


class PlainDialect(Dialect):
    """Temperature, top-p and the length; one sample a request."""

    name: ClassVar[str] = "plain"
    can: ClassVar[Capabilities] = Capabilities("none", n=False, seed=False, top_k=False, logprobs=False)
    reasons_at_a_temperature: ClassVar[bool] = False
    version: ClassVar[int] = 2

    def same_model(self, said: str, asked: str) -> bool:
        """Gateways name the models behind them in their own way."""
        return True

    def body(self, ask: Ask) -> dict[str, Any]:
        """Only the fields that every server knows, as some servers refuse others."""
        body: dict[str, Any] = {
            "model": ask.model,
            "messages": messages(ask.request),
            "max_tokens": ask.sampling.max_tokens,
        }
        if self.abilities.sampling:
            body |= {"temperature": ask.sampling.temperature, "top_p": ask.sampling.top_p}
        return body | self.reasoning

    def answer(self, text: str) -> str:
        """The first JSON object in the text that has errors; the whole text if there is none.

        Each brace may begin it. What is read in vain is counted, so that the time grows with the text and not with its
        square.
        """
        text = super().answer(text)
        rest, at, left = text, text.find("{"), 16 * len(text) + 1000
        while at >= 0 and left > 0:
            if at > _BEHIND:
                rest, at = rest[at:], 0
            try:
                value, end = _DECODER.raw_decode(rest, at)
            except json.JSONDecodeError as error:
                end = error.pos
            except (ValueError, RecursionError):  # too many digits, or braces
                end = len(rest)
            else:
                if isinstance(value, dict) and "errors" in value:
                    return rest[at:end]
            left -= end - at + 1
            at = rest.find("{", at + 1)
        return text
