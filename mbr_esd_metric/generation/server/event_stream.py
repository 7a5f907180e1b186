"""Replies that come token by token, as server-sent events: what of them is whole, whenever they end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mbr_esd_metric.errors import printable
from mbr_esd_metric.generation.server import numbers
from mbr_esd_metric.generation.server.failures import Odd, Transient

#: The fields of a request that ask for such a reply, with the tokens that it used.
ASKED: Mapping[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}


class Arrived:
    """The events of one reply of OpenAI's chat completions, put together.

    Attributes:
        ended: whether the server said that nothing more comes.
    """

    def __init__(self) -> None:
        self._choices: dict[int, dict[str, Any]] = {}
        self._model: object = None
        self._prompt = self._completion = 0
        self._counted = False
        self._line = bytearray()
        self.ended = False

    def take(self, piece: bytes) -> bool:
        """Note bytes as they come; whether they had an event with something of an answer.

        Raises:
            Odd: an event is not what was asked for.
            Transient: the server says that it failed.
        """
        self._line += piece
        if b"\n" not in piece:
            return False
        *lines, self._line = self._line.split(b"\n")
        return sum(self._note(bytes(line[5:].strip())) for line in lines if line.startswith(b"data:")) > 0

    def whole(self) -> dict[str, Any]:
        """The reply as it would be at once, with the choices that have come to their end."""
        choices = [
            {
                "index": index,
                "message": {"content": "".join(one["text"]), "refusal": "".join(one["refusal"])},
                "logprobs": {"content": one["logprobs"]} if one["logprobs"] is not None else None,
                "finish_reason": one["finish"],
            }
            for index, one in sorted(self._choices.items())
            if one["finish"] is not None
        ]
        usage = {"prompt_tokens": self._prompt, "completion_tokens": self._completion}
        return {"model": self._model, "choices": choices, "usage": usage if self._counted else None}

    def runs(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Whole choices that follow one another: the index of the first, and them as a reply of their own."""
        found = self.whole()
        begin, choices = 0, found["choices"]
        for end in range(1, len(choices) + 1):
            if end == len(choices) or choices[end]["index"] != choices[end - 1]["index"] + 1:
                run = [{**one, "index": index} for index, one in enumerate(choices[begin:end])]
                yield choices[begin]["index"], {"model": self._model, "choices": run}
                begin = end

    def _note(self, data: bytes) -> bool:
        if data == b"[DONE]":
            self.ended = True
        if not data or self.ended:
            return False
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            raise Transient("the reply has an event that is not JSON") from None
        if not isinstance(event, Mapping):
            raise Odd("the reply has an event that is no object")
        if event.get("error"):
            raise Transient(f"the reply breaks off: {printable(str(event['error']))[:200]}")
        self._model = event.get("model", self._model)
        usage = event.get("usage")
        if isinstance(usage, Mapping):
            # llama.cpp counts each choice by itself.
            self._prompt = max(self._prompt, numbers.count(usage.get("prompt_tokens")) or 0)
            self._completion += numbers.count(usage.get("completion_tokens")) or 0
            self._counted = True
        choices = event.get("choices")
        return sum(map(self._add, choices)) > 0 if isinstance(choices, list) else False

    def _add(self, choice: object) -> bool:
        index = choice.get("index") if isinstance(choice, Mapping) else None
        if not isinstance(choice, Mapping) or type(index) is not int:
            raise Odd("the reply has a choice without an index")
        one = self._choices.setdefault(index, {"text": [], "refusal": [], "logprobs": None, "finish": None})
        delta, logprobs = choice.get("delta"), choice.get("logprobs")
        for name, field in (("text", "content"), ("refusal", "refusal")):
            piece = delta.get(field) if isinstance(delta, Mapping) else None
            if piece is not None and not isinstance(piece, str):
                raise Odd("a candidate's text is no text")
            if piece:
                one[name].append(piece)
        content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
        if content is not None:
            if not isinstance(content, list):
                raise Odd("the log-probabilities of a candidate are no list")
            one["logprobs"] = one["logprobs"] or []
            one["logprobs"].extend(content)
        if choice.get("finish_reason") is not None:
            one["finish"] = choice["finish_reason"]
        return True
