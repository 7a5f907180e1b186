"""The log-probability that a model gives to an answer which it did not sample, computed as in `Sample.logprob`.

It shows where MAP fails: the model finds a wrong annotation more probable than the human one.
"""

from __future__ import annotations

import math

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.generation.engine import Request
from mbr_esd_metric.generation.engines.transformers import TransformersEngine


class LikelihoodEngine(TransformersEngine):
    """A model in this process that says how probable a given answer is."""

    def log_likelihood(self, request: Request, answer: str) -> float:
        """The sum over the answer's tokens, the closing one included, of log M over the tokens that the grammar allows.

        The tokenizer splits the answer into tokens. A model may sample the same text as other tokens, and these have a
        probability of their own.

        Args:
            request: gives the prompt and the grammar.
            answer: a text that the grammar allows.

        Raises:
            InputError: the grammar does not allow the answer; the message names the place.
        """
        tokens = [*self._tokenizer(answer, add_special_tokens=False)["input_ids"], self._vocabulary.eos]
        total = 0.0
        with self._no_grad():
            grammar = self._grammar(request.grammar)
            logits = self._cache.read(self._model, self._tokens(request))
            self._cache.start([len(self._cache.tokens)])
            state = grammar.start
            for at, token in enumerate(tokens):
                forbidden = grammar.forbidden([state])
                if bool(forbidden[0, token]):
                    said = self._vocabulary.text(tokens[:at])
                    raise InputError(f"the model's grammar admits no such answer after {said!r}: {answer!r}")
                scores = logits.float().masked_fill(forbidden, -math.inf)
                total += float(scores[0, token] - scores.logsumexp(1)[0])
                if token != grammar.eos:
                    state = grammar.after(state, token)
                    logits = self._cache.step(self._model, scores.new_tensor([token]).long())
        return total
