"""A model folder with a LoRA adapter merged into its weights, for engines that are slow with adapters."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from mbr_esd_metric.generation.cache import made_folder
from mbr_esd_metric.generation.engine import EngineOptions
from mbr_esd_metric.generation.model_files import model_identity


def merged_folder(options: EngineOptions) -> Path:
    """The folder of `model` with `adapter` merged in, as engine=transformers merges it; it is kept in the cache folder.

    Raises:
        EngineError: the model or the adapter cannot be loaded, or the cache folder cannot be written.
        MissingDependencyError: peft is not installed.
    """

    def make(folder: Path) -> None:
        from mbr_esd_metric.generation.pretrained import load_merged

        model, tokenizer = load_merged(options)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)

    key = hashlib.sha256(json.dumps(model_identity(options), sort_keys=True).encode()).hexdigest()[:16]
    return made_folder(f"merged-{key}", make, f"{2 * options.weights_gb:.1f} GB")
