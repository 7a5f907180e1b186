"""The training folder for TRL: the data set, configurations for full fine-tuning and for LoRA, and the ``hparams.yaml``
that make the results model folders."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from mbr_esd_metric.core.signature import Signature
from mbr_esd_metric.distill.training_rows import TrainingRow
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.records import json_line
from mbr_esd_metric.files.streams import whole_file, write_whole
from mbr_esd_metric.metric.card import ModelCard, settings
from mbr_esd_metric.prompting.prompt import built_in

Method = Literal["dpo", "sft"]
#: The share of the rows that is held out for validation.
_HELD_OUT = 0.1

#: TRL settings for full fine-tuning (METHOD.yaml), and for LoRA on one GPU with 80 GB (METHOD-lora.yaml).
_RECIPES = Path(__file__).parent / "recipes"
#: Options that the trained model inherits from the model.
_INHERITED = ("format", "location", "prompt", "grounded", "temperature", "top_k", "max_tokens")


def held_out(sources: Sequence[str]) -> list[bool]:
    """Whether each row is held out for validation. Sources are held out in random order, with all of their rows, until
    a tenth of the rows is reached. Raises `InputError` if there is only one source."""
    sizes = Counter(sources)
    if len(sizes) < 2:
        raise InputError("all rows have the same source, so none can be held out; use data with several sources")
    names = sorted(sizes)
    random.Random(0).shuffle(names)
    enough, chosen, rows = _HELD_OUT * sizes.total(), {names[0]}, sizes[names[0]]
    for name in names[1:-1]:
        if rows + sizes[name] / 2 > enough:
            break
        chosen.add(name)
        rows += sizes[name]
    return [source in chosen for source in sources]


def write_training_folder(
    folder: Path,
    method: Method,
    rows: Sequence[TrainingRow],
    held: Sequence[bool],
    card: ModelCard,
    signature: Signature,
    *,
    greedy: bool = True,
) -> list[Path]:
    """Write ``train.jsonl``, ``validation.jsonl``, ``METHOD.yaml``, ``METHOD-lora.yaml``, and the output folders
    ``model`` and ``lora``, each with an ``hparams.yaml``. Returns the data and configuration files.

    Args:
        folder: the training folder; created if missing.
        method: the TRL command.
        rows: the data set.
        held: whether each row is for validation.
        card: the model to train.
        signature: the signature of the rows, written to the first line of the configurations.
        greedy: whether the trained model decodes greedily, as a model that has learnt MBR decisions.

    Raises:
        EngineError: the weights cannot be downloaded, or the adapter cannot be merged into them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, validation in (("train", False), ("validation", True)):
        path = folder / f"{name}.jsonl"
        with whole_file(path) as file:
            for row, is_held in zip(rows, held, strict=True):
                if is_held == validation:
                    file.write(json_line(dict(row.content)))
        written.append(path)
    base, revision = _base(card)
    for result, suffix, launch in (("model", "", " --accelerate_config zero3"), ("lora", "-lora", "")):
        path, output = folder / f"{method}{suffix}.yaml", folder / result
        values = {"model_name_or_path": base, "dataset_name": str(folder), "output_dir": str(output)}
        values |= {"model_revision": revision} if revision else {}
        text = f"# {signature}\n# trl {method} --config {path}{launch}\n"
        for line in (_RECIPES / path.name).read_text(encoding="utf-8").splitlines():
            key = line.partition(":")[0]
            text += f"{key}: {json.dumps(values[key], ensure_ascii=False)}\n" if key in values else f"{line}\n"
        write_whole(path, text)
        _write_card(output, card, base if suffix else None, greedy)
        written.append(path)
    return written


def _base(card: ModelCard) -> tuple[str, str | None]:
    """The hub id and revision of the weights to train, or their folder; for a model with an adapter, the folder with
    the merged weights."""
    from mbr_esd_metric.generation.embedded import with_weights
    from mbr_esd_metric.generation.pretrained import merged_folder

    options = with_weights(card.engine_options)
    return (options.model, options.revision) if card.adapter is None else (str(merged_folder(options)), None)


def _write_card(folder: Path, card: ModelCard, base: str | None, greedy: bool) -> None:
    """Write the ``hparams.yaml`` of a trained model: an adapter of `base`, or full weights if `base` is None."""
    import yaml

    from mbr_esd_metric.metric.model_folder import CLASS_IDENTIFIER

    folder.mkdir(exist_ok=True)
    hparams: dict[str, Any] = {"class_identifier": CLASS_IDENTIFIER}
    if base is not None:
        hparams |= {"model": card.model if card.adapter is None else base, "adapter": "."}
    hparams |= {"rule": "greedy", "n": 1} if greedy else {"n": card.n}
    options, defaults = settings(card), settings(ModelCard(""))
    hparams |= {name: options[name] for name in _INHERITED if options[name] != defaults[name]}
    prompt = Path(card.prompt).expanduser()
    if card.prompt not in built_in("json") and prompt.is_file():  # a model folder is self-contained
        (folder / "prompt.txt").write_bytes(prompt.read_bytes())
        hparams["prompt"] = "prompt.txt"
    write_whole(folder / "hparams.yaml", yaml.safe_dump(hparams, sort_keys=False))
