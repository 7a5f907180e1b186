"""Makes COMET's own ``download_model`` and ``load_from_checkpoint`` know this package's model names and folders.

Those functions look up two names in the module ``comet.models`` on every call. So it does not matter how and when the
functions were imported, if these names are replaced: ``str2model`` gets our class, and ``snapshot_download`` is
wrapped. For one of our models, the wrapper returns a folder like a COMET checkpoint. Its ``model.ckpt`` is one line of
text with the model's name. No file of COMET is changed, and other names go through unchanged.

Names and behaviour that COMET 2.2.7 needs, and transformers 5, numpy 2 and a newer Python lack, are set in memory too.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mbr_esd_metric.adapters.comet.command_line import report_errors
from mbr_esd_metric.adapters.comet.model_class import POINTER, MbrEsdMetric
from mbr_esd_metric.errors import StoreError
from mbr_esd_metric.files.streams import write_whole
from mbr_esd_metric.generation.model_files import cache_folder
from mbr_esd_metric.metric.model_folder import CLASS_IDENTIFIER, is_model_folder

#: The beginning of our model names. An unknown name with it gets our error message, not COMET's.
PREFIX = "mbr-esd"
#: Tokenizers of COMET's encoders -> how many separators they set between two texts.
_SEPARATORS = {"XLMRobertaTokenizerFast": 2, "BertTokenizerFast": 1, "RemBertTokenizerFast": 1}
_JOIN = "build_inputs_with_special_tokens"


def register() -> None:
    """Register with the imported ``comet.models``. Does nothing if that is not unbabel-comet's, or if it is done
    already."""
    models: Any = sys.modules["comet.models"]
    if not hasattr(models, "str2model") or not hasattr(models, "snapshot_download"):
        return
    models.str2model[CLASS_IDENTIFIER] = MbrEsdMetric
    if not hasattr(models.snapshot_download, "mbr_esd"):
        models.snapshot_download = _extended(models.snapshot_download)
        supply()


def _extended(download: Callable[..., str]) -> Callable[..., str]:
    """`huggingface_hub.snapshot_download` for our names and our model folders too, on this disk or on the hub."""

    @functools.wraps(download)
    def snapshot_download(repo_id: str, *args: Any, cache_dir: str | Path | None = None, **options: Any) -> str:
        base, mark, query = str(repo_id).partition("?")
        if is_model_folder(base):
            folder = base
        elif base.startswith(PREFIX) and "/" not in base:
            return checkpoint_folder(str(repo_id), cache_dir)
        else:
            folder = download(base, *args, cache_dir=cache_dir, **options)
        if is_model_folder(folder):
            return checkpoint_folder(str(Path(folder).resolve()) + mark + query, cache_dir)
        return folder

    snapshot_download.mbr_esd = True  # type: ignore[attr-defined]
    return snapshot_download


def checkpoint_folder(name: str, saving_directory: str | Path | None = None) -> str:
    """A folder with ``hparams.yaml`` and ``checkpoints/model.ckpt`` that COMET loads as the model `name`.

    Args:
        name: a model name or model folder, with its options; it is checked when it is loaded.
        saving_directory: the folder for models that COMET was given; the default is this package's cache folder.
    """
    report_errors()
    root = Path(saving_directory) if saving_directory is not None else cache_folder() / "comet"
    folder = root / f"mbr-esd-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    try:
        _write(folder / "hparams.yaml", f"class_identifier: {CLASS_IDENTIFIER}\n")
        _write(folder / "checkpoints" / "model.ckpt", f"{POINTER}{name}\n")
    except OSError as error:
        raise StoreError(
            f"cannot write {folder}: {error.strerror}; name another folder, with --model_storage_path or MBR_ESD_CACHE"
        ) from None
    return str(folder)


def _write(path: Path, text: str) -> None:
    """Write a small file, unless it is there with that text. A model's name may hold a server's password, so that
    nobody else may read it."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(path, text)
    path.chmod(0o600)


def supply() -> None:
    """Give COMET's imported parts what they call and do not find.

    - transformers 5 dropped the tokenizers' method that COMET's unified and XCOMET models join two texts with, and
      leaves a pooled output that is not there out of a model's tuple, where COMET's XLM-R encoders expect None.
    - argparse of Python 3.12.8, 3.13.1 and later passes an argument more to a method of its own than jsonargparse
      3.13.1 does, which COMET asks for.
    - Linux forks no processes by default since Python 3.14. COMET's workers would have nothing of what is here, and a
      model that has predicted once cannot be sent to them. They are forked, as before, and as COMET has it on a Mac.
    - With numpy 2 the statistics of ``comet-compare`` are of numpy's own type, which ``--to_json`` cannot write.
    """
    transformers: Any = sys.modules.get("transformers")
    for name, separators in _SEPARATORS.items():
        tokenizer = getattr(transformers, name, None)
        if isinstance(tokenizer, type) and not hasattr(tokenizer, _JOIN):
            setattr(tokenizer, _JOIN, _joining(separators))
    encoder = getattr(sys.modules.get("comet.encoders.xlmr"), "XLMREncoder", None)
    if encoder is not None and int(transformers.__version__.split(".")[0]) >= 5:
        encoder.forward = _encoded
    base: Any = sys.modules.get("comet.models.base")
    if base is not None and multiprocessing.get_all_start_methods()[0] == "forkserver":
        base.DataLoader = _forking
    parse: Any = vars(argparse.ArgumentParser)["_parse_known_args"]
    if "intermixed" in parse.__code__.co_varnames and parse.__defaults__ is None:
        parse.__defaults__ = (False,)
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
