"""Encoders for `engine=tagger`: tokenization of text pairs, and logits of each token and label. `OnnxEncoder` runs the
small model with ONNX Runtime; `torch_encoder` runs any token classifier with transformers."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from mbr_esd_metric.cores import available_cores
from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.e5 import E5File, Tokenization
from mbr_esd_metric.generation.embedded import EMBEDDED, embedded_weights

#: The section of this package in a model's ``config.json``.
SECTION = "mbr_esd_metric"
#: The ONNX graph, and the weights, which the graph and torch share.
GRAPH, WEIGHTS = "model.onnx", "model.safetensors"

#: A matrix of numbers.
Matrix: TypeAlias = "np.ndarray[tuple[int, int], np.dtype[Any]]"


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a text pair.

    Attributes:
        numbers: the token ids.
        types: the token type ids.
        sides: the text of each token: 0 for the first, 1 for the second, None for special tokens.
        offsets: the start and end of each token in its text.
    """

    numbers: Sequence[int]
    types: Sequence[int]
    sides: Sequence[int | None]
    offsets: Sequence[tuple[int, int]]

    def __len__(self) -> int:
        return len(self.numbers)


class Encoder(ABC):
    """A loaded model with its tokenizer.

    Attributes:
        config: the content of ``config.json``.
        longest: the maximum number of input tokens.
    """

    config: Mapping[str, Any]
    longest: int

    @abstractmethod
    def tokens(self, pairs: Sequence[tuple[str, str]]) -> list[Tokens]:
        """The tokens of each pair of texts."""

    @abstractmethod
    def logits(self, pairs: Sequence[Tokens]) -> Iterator[Matrix]:
        """The logits of each pair, in order, shape (tokens, labels), with labels in the order of the configuration."""


class OnnxEncoder(Encoder):
    """The encoder of a folder with ``model.onnx``, in float32 on the CPU, with the word embeddings and the vocabulary
    of an embedded model. Each core processes one pair at a time, without padding, so that logits do not depend on other
    pairs."""

    def __init__(self, folder: Path) -> None:
        self.config = folder_config(folder)
        self.longest = self.config["max_position_embeddings"]
        self._e5 = embedded_file_of(folder, self.config)
        self._tokenization = Tokenization(self._e5)
        self._session = _session(folder)

    def tokens(self, pairs: Sequence[tuple[str, str]]) -> list[Tokens]:
        return [
            Tokens(numbers, encoding.type_ids, encoding.sequence_ids, encoding.offsets)
            for numbers, encoding in self._tokenization.encoded(pairs)
        ]

    def logits(self, pairs: Sequence[Tokens]) -> Iterator[Matrix]:
        with ThreadPoolExecutor(processors()) as pool:
            yield from pool.map(self._logits, pairs)

    def _logits(self, tokens: Tokens) -> Matrix:
        inputs = {
            "inputs_embeds": self._e5.embeddings(tokens.numbers),
            "token_type_ids": np.asarray(tokens.types, np.int64),
        }
        values: Matrix = self._session.run(None, inputs)[0]
        return values


def _session(folder: Path) -> Any:
    """The ONNX Runtime session for the graph of a folder. 8-bit matrices are converted to float32 when it is
    created."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    try:
        return onnxruntime.InferenceSession(str(folder / GRAPH), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's errors have no common base
        reason = " ".join(str(error).split())[:300]
        raise EngineError(f"cannot load {folder / GRAPH}: {reason}; download the folder again") from error


def folder_config(folder: Path) -> dict[str, Any]:
    """The content of ``config.json`` in a folder; empty if the file is missing or invalid."""
    try:
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def embeddings_of(config: Mapping[str, Any]) -> str | None:
    """The embedded model whose embeddings and vocabulary a model uses; None if it has its own."""
    return (config.get(SECTION) or {}).get("embeddings")


def embedded_file_of(folder: Path, config: Mapping[str, Any]) -> E5File:
    """The embeddings and the vocabulary that a model takes from an embedded model, which is downloaded once. Raises
    `EngineError` if the embedded model is unknown, or the folder has no weights."""
    base = embeddings_of(config)
    if base is None or base not in EMBEDDED:
        raise EngineError(
            f"{folder} uses the embeddings of {base!r}, which this version does not support; update the package"
        )
    if not (folder / WEIGHTS).is_file():
        raise EngineError(f"{folder} has no {WEIGHTS}; download the folder again")
    return E5File.read(embedded_weights(base) / Path(EMBEDDED[base].file).name)


def processors() -> int:
    """The number of cores that this process may use; ``OMP_NUM_THREADS`` limits it."""
    cores = available_cores()
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(cores, int(limit))) if limit.isdigit() else cores
