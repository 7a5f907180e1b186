"""Sizes of the miniature, with their settings of TRL and of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from miniature_data import CorpusSize


@dataclass(frozen=True)
class Size:
    """Numbers and settings of one size.

    Attributes:
        corpus: of the annotations.
        n: sizes of the candidate lists that rules are compared at.
        ted_n: candidates of a TED translation.
        pair_n: candidates of a translation that pairs are made of.
        max_tokens: longest answer.
        sft, dpo: settings of TRL that differ from those of its configuration file.
    """

    corpus: CorpusSize
    n: tuple[int, ...]
    ted_n: int
    pair_n: int
    max_tokens: int
    sft: Mapping[str, object]
    dpo: Mapping[str, object]


SIZES = {
    "ci": Size(
        CorpusSize(
            sft=(8, 16, 8),
            lengths=(120, 80, 80),
            characters=80,
            sources=2,
            systems=3,
            ted_sources=1,
            ted_systems=2,
            pair_segments=7,
        ),
        n=(4, 8),
        ted_n=4,
        pair_n=8,
        max_tokens=64,
        sft={
            "learning_rate": 2e-3,
            "warmup_steps": 2,
            "per_device_train_batch_size": 4,
            "num_train_epochs": 1,
            "eval_steps": 0.5,
            "save_steps": 0.5,
        },
        dpo={
            "learning_rate": 5e-4,
            "warmup_steps": 1,
            "per_device_train_batch_size": 2,
            "num_train_epochs": 3,
            "eval_steps": 0.5,
            "save_steps": 0.5,
        },
    ),
    "full": Size(
        CorpusSize(
            sft=(400, 880, 500),
            lengths=(350, 170, 150),
            characters=350,
            sources=20,
            systems=10,
            ted_sources=6,
            ted_systems=8,
            pair_segments=120,
        ),
        n=(16, 64),
        ted_n=16,
        pair_n=16,
        max_tokens=128,
        sft={"learning_rate": 1e-3, "per_device_train_batch_size": 8, "num_train_epochs": 1},
        dpo={
            "learning_rate": 2e-5,
            "warmup_steps": 4,
            "weight_decay": 0,
            "per_device_train_batch_size": 4,
            "gradient_accumulation_steps": 4,
            "num_train_epochs": 3,
            "eval_steps": 0.33,
            "save_steps": 0.33,
        },
    ),
}
#: What all sizes say to TRL on a processor.
TRAINED: Mapping[str, object] = {
    "use_cpu": "true",
    "optim": "adamw_torch",
    "lora_r": 8,
    "lora_alpha": 16,
    "load_in_4bit": "false",
    "gradient_checkpointing": "false",
    "gradient_accumulation_steps": 1,
    "disable_tqdm": "true",
    "logging_steps": 1,
}
#: Informative candidates: at temperature 2.0 this model seldom copies a span without a mistake, and a span that is not
#: in the translation is no span.
CARD: Mapping[str, Any] = {"n": 16, "temperature": 1.0, "grounded": True, "max_tokens": 192}
