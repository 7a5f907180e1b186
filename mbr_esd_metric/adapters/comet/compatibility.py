"""Patches in memory for functions that COMET 2.2.7 uses and that new versions of Python, numpy and transformers lack.
``mbr_esd_autoload`` patches functools earlier, without which COMET cannot be imported."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

#: Tokenizer of COMET's encoders -> number of separators between two texts.
_SEPARATORS = {"XLMRobertaTokenizerFast": 2, "BertTokenizerFast": 1, "RemBertTokenizerFast": 1}
_JOIN = "build_inputs_with_special_tokens"


def patch_comet() -> None:
    """Patch the imported modules of COMET."""
    transformers: Any = sys.modules.get("transformers")
    # transformers 5 dropped the method with which unified and XCOMET models join two texts.
    for name, separators in _SEPARATORS.items():
        tokenizer = getattr(transformers, name, None)
        if isinstance(tokenizer, type) and not hasattr(tokenizer, _JOIN):
            setattr(tokenizer, _JOIN, _joining(separators))
    # It omits a missing pooled output from the model's tuple, where XLM-R encoders expect None.
    encoder = getattr(sys.modules.get("comet.encoders.xlmr"), "XLMREncoder", None)
    if encoder is not None and int(transformers.__version__.split(".")[0]) >= 5:
        encoder.forward = _encoded
    # From Python 3.14 on, processes on Linux are not forked by default. COMET's workers would lack these patches, and a
    # model that has predicted once cannot be pickled. So they are forked, as COMET does on macOS.
    base: Any = sys.modules.get("comet.models.base")
    if base is not None and multiprocessing.get_all_start_methods()[0] == "forkserver":
        base.DataLoader = _forking
    # argparse of Python 3.12.8, 3.13.1 and later passes an additional argument to a method that jsonargparse 3.13.1,
    # which COMET requires, overrides.
    parse: Any = vars(argparse.ArgumentParser)["_parse_known_args"]
    if "intermixed" in parse.__code__.co_varnames and parse.__defaults__ is None:
        parse.__defaults__ = (False,)
    # With numpy 2, the statistics of comet-compare are numpy numbers, which --to_json cannot write.
    if os.path.basename((getattr(sys, "argv", None) or [""])[0]) in ("comet-compare", "compare.py"):
        encoder_class: Any = json.JSONEncoder
        encoder_class.default = _number


def _number(self: json.JSONEncoder, value: Any) -> Any:
    """``json.JSONEncoder.default``, which also writes numpy's numbers."""
    if type(value).__module__ == "numpy":
        return value.item()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _forking(*arguments: Any, num_workers: int = 0, multiprocessing_context: Any = None, **options: Any) -> Any:
    """A ``DataLoader`` with forked workers, if it has any."""
    from torch.utils.data import DataLoader

    context = "fork" if num_workers else multiprocessing_context
    return DataLoader(*arguments, num_workers=num_workers, multiprocessing_context=context, **options)


def _encoded(self: Any, input_ids: Any, attention_mask: Any, **_: Any) -> dict[str, Any]:
    """``XLMREncoder.forward``, with the model's outputs by name."""
    output = self.model(input_ids=input_ids, attention_mask=attention_mask, output_hidden_states=True, return_dict=True)
    return {
        "sentemb": output.last_hidden_state[:, 0, :],
        "wordemb": output.last_hidden_state,
        "all_layers": output.hidden_states,
        "attention_mask": attention_mask,
    }


def _joining(separators: int) -> Callable[..., list[int]]:
    def build_inputs_with_special_tokens(
        self: Any, token_ids_0: Sequence[int], token_ids_1: Sequence[int] | None = None
    ) -> list[int]:
        """One or two texts with start, separator and end tokens."""
        first = [self.cls_token_id, *token_ids_0, self.sep_token_id]
        if token_ids_1 is None:
            return first
        return [*first, *[self.sep_token_id] * (separators - 1), *token_ids_1, self.sep_token_id]

    return build_inputs_with_special_tokens
