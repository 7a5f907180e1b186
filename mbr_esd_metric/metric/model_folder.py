"""A model folder: weights, a COMET-style ``hparams.yaml`` with the options of a card, and ``calibration.json``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from mbr_esd_metric.errors import InputError, OptionError, unknown
from mbr_esd_metric.files.untrusted import LARGEST_YAML, read_flat_yaml
from mbr_esd_metric.messages import printable
from mbr_esd_metric.metric.card import ANY_MODEL, LOCAL_MODEL, OPTIONS, ModelCard, with_options
from mbr_esd_metric.metric.shots import shots_file
from mbr_esd_metric.prompting.prompt import built_in

#: Arguments of vLLM that a model folder may set: lengths, memory shares, parallel sizes, and quantization.
HARMLESS_ARGUMENTS = frozenset(
    (
        *("max_model_len", "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization", "enforce_eager"),
        *("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "quantization", "kv_cache_dtype"),
    )
)
_HUB_ID = re.compile(r"\w[\w.-]*/[\w.-]+")
#: The class identifier in the ``hparams.yaml`` of our model folders.
CLASS_IDENTIFIER = "mbr_esd_metric"


def is_model_folder(path: str | Path) -> bool:
    """Whether a folder holds an ``hparams.yaml`` with our class identifier."""
    hparams = Path(path) / "hparams.yaml"
    if not hparams.is_file():
        return False
    with hparams.open("rb") as file:
        return CLASS_IDENTIFIER.encode() in file.read(LARGEST_YAML)


def folder_card(folder: Path) -> ModelCard:
    """The card of a model folder. Raises `InputError` for an ``hparams.yaml`` that is not ours or that sets an option
    reserved for the user, and `OptionError`, with the file, for an unknown option or value."""
    path = folder / "hparams.yaml"
    hparams = read_flat_yaml(path)
    if hparams.pop("class_identifier", None) != CLASS_IDENTIFIER:
        raise InputError(f"{path} needs the line class_identifier: {CLASS_IDENTIFIER}")
    description = printable(hparams.pop("description", None) or f"model folder {folder}")
    limits, measured = (" ".join((hparams.pop(key, None) or "").split()) for key in ("limits", "measured"))
    for key in hparams:
        if key in OPTIONS and OPTIONS[key].metadata.get("place"):
            raise InputError(
                f"{path}: {key} may only be set by the user, not by a model folder, which may be untrusted; remove "
                f"the line, and use {folder}?{key}=... if you want it"
            )
    for argument in (hparams.get("vllm") or "").split(","):
        harmless = re.fullmatch(r"\s*(\w+):[\w.]+\s*", argument)  # a value could inject another flag of `vllm serve`
        if argument and (harmless is None or harmless[1] not in HARMLESS_ARGUMENTS):
            raise InputError(
                f"{path}: vllm={argument.strip()} may only be set by the user, not by a model folder, because some "
                f"arguments of vLLM run code; remove it, and use {folder}?vllm={argument.strip()} if you want it"
            )
    for key in ("model", "adapter", "prompt", "shots"):
        if (value := hparams.get(key)) is not None:
            hparams[key] = _file_in_folder(folder, key, value)
    adapter = hparams.pop("adapter", None)
    hparams.setdefault("model", str(folder.resolve()))
    memory_gb = sum(file.stat().st_size for file in Path(str(hparams["model"])).glob("*.safetensors")) / 1e9
    calibration = str(file) if (file := folder / "calibration.json").is_file() else ""
    try:
        card = ModelCard(
            str(folder), description, memory_gb, limits, measured, unit="auto", calibration=calibration, adapter=adapter
        )
        card.unmeasured(card.measured_pairs)  # raises for an invalid language pair
        return with_options(card, hparams)
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from None


def _file_in_folder(folder: Path, key: str, value: str) -> str:
    """The value of an option in ``hparams.yaml``: the full path of a file in the folder (for examples, with their
    number), a hub id, or a prompt version. Raises `InputError` for a path outside the folder."""
    path, number = shots_file(value) if key == "shots" else (value, 0)
    inside, home = folder / path, folder.resolve()
    target = inside.resolve()
    linked = home.parent.name == "snapshots" and target.is_relative_to(home.parents[1])  # a download from the hub
    if inside.exists() and (target.is_relative_to(home) or linked):
        return f"{target}:{number}" if number else str(target)
    elsewhere = inside.exists() or Path(value).exists() or ".." in Path(value).parts
    # Prompts are sent to servers, so an untrusted folder could leak any file. Only the base model may be outside the
    # folder, as an absolute path.
    allowed = {
        "model": (not elsewhere and value[0] != "-") or Path(value).is_absolute(),
        "adapter": not elsewhere and _HUB_ID.fullmatch(value) is not None,
        "prompt": value in built_in("json") or value == "gemba-mqm",
    }
    if not allowed.get(key):
        fix = f", or set it yourself: {folder}?{key}=..." if key in OPTIONS else ""
        raise InputError(f"{folder / 'hparams.yaml'}: {key} {value} is not in the folder; copy it there{fix}")
    return value


#: Names of COMET checkpoints on the hub, without the owner; they are not misspelt names of our models.
_COMET = ("XCOMET-XL", "XCOMET-XXL", "wmt22-comet-da", "wmt22-cometkiwi-da", "wmt23-cometkiwi-da-xl")


def other_card(base: str, cards: Sequence[str]) -> ModelCard:
    """The card of a model folder; for any other name, an error that lists the valid names."""
    if is_model_folder(base):
        return folder_card(Path(base))
    if Path(base).is_dir():
        raise InputError(
            f"{base} is not a model folder: it has no hparams.yaml with class_identifier: {CLASS_IDENTIFIER}"
        )
    if base.startswith(("/", "./", "../", "~")):
        raise InputError(f"{base}: no such model folder")
    first = base.partition("&")[0]
    if first in cards:
        raise OptionError(f"the first option of a model starts with ?, not &: {first}?option=value&option=value")
    error = unknown("model", base, (*cards, *(f"Unbabel/{name}" for name in _COMET)), "`mbr-esd models`")
    model = "NAME" if base.startswith("mbr-esd") else base
    raise OptionError(
        f"{error}; or use the path of a model folder, {LOCAL_MODEL}?model={model} for a model in process, or "
        f"{ANY_MODEL}?model={model}&server=URL for one on your server"
    )
