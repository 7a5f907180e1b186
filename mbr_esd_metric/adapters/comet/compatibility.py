"""What COMET 2.2.7 calls and does not find in new versions of Python, numpy and transformers, set in memory where COMET
has been imported. ``mbr_esd_autoload`` sets one name of functools before, without which COMET cannot be imported."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

#: Tokenizers of COMET's encoders -> how many separators they set between two texts.
_SEPARATORS = {"XLMRobertaTokenizerFast": 2, "BertTokenizerFast": 1, "RemBertTokenizerFast": 1}
_JOIN = "build_inputs_with_special_tokens"


def patch_comet() -> None:
    """Give COMET's imported parts what they call and do not find."""
    transformers: Any = sys.modules.get("transformers")
    # transformers 5 dropped the method with which unified and XCOMET models join two texts.
    for name, separators in _SEPARATORS.items():
        tokenizer = getattr(transformers, name, None)
        if isinstance(tokenizer, type) and not hasattr(tokenizer, _JOIN):
            setattr(tokenizer, _JOIN, _joining(separators))
    # It leaves a pooled output that is not there out of a model's tuple, where XLM-R encoders expect None.
    encoder = getattr(sys.modules.get("comet.encoders.xlmr"), "XLMREncoder", None)
    if encoder is not None and int(transformers.__version__.split(".")[0]) >= 5:
        encoder.forward = _encoded
    # Linux forks no processes by default since Python 3.14. COMET's workers would have nothing of what is here, and a
    # model that has predicted once cannot be sent to them. They are forked, as COMET has it on a Mac.
    base: Any = sys.modules.get("comet.models.base")
    if base is not None and multiprocessing.get_all_start_methods()[0] == "forkserver":
        base.DataLoader = _forking
    # argparse of Python 3.12.8, 3.13.1 and later passes an argument more to a method of its own than jsonargparse
    # 3.13.1 does, which COMET asks for.
    parse: Any = vars(argparse.ArgumentParser)["_parse_known_args"]
    if "intermixed" in parse.__code__.co_varnames and parse.__defaults__ is None:
        parse.__defaults__ = (False,)
    # With numpy 2 the statistics of comet-compare are of numpy's own type, which --to_json cannot write.
    if os.path.basename((getattr(sys, "argv", None) or [""])[0]) in ("comet-compare", "compare.py"):
        encoder_class: Any = json.JSONEncoder
        encoder_class.default = _number


def _number(self: json.JSONEncoder, value: Any) -> Any:
    """``json.JSONEncoder.default``, which also writes numpy's numbers."""
    if type(value).__module__ == "numpy":
        return value.item()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _forking(*arguments: Any, num_workers: int = 0, multiprocessing_context: Any = None, **options: Any) -> Any:
    """A ``DataLoader`` whose workers, where it has any, are forked."""
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
        """One text, or two, between the tokens that begin, part and end them."""
        first = [self.cls_token_id, *token_ids_0, self.sep_token_id]
        if token_ids_1 is None:
            return first
        return [*first, *[self.sep_token_id] * (separators - 1), *token_ids_1, self.sep_token_id]

    return build_inputs_with_special_tokens
