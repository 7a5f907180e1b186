"""Encoder for any token classifier of transformers, also on GPUs and in bfloat16."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.e5 import PADDING, SPECIAL, WORDS, E5File, Tokenization
from mbr_esd_metric.generation.encoder import WEIGHTS, Encoder, Matrix, Tokens, embedded_file_of, embeddings_of
from mbr_esd_metric.generation.engine import EngineOptions
from mbr_esd_metric.generation.pretrained import TORCH, bf16_works, loading, placement, wait_passively

#: The name of the word embeddings in BERT models of transformers.
WORDS_OF_BERT = "bert.embeddings.word_embeddings.weight"
#: Input of the model -> attribute of `Tokens`. The attention mask is 1 for each token.
_INPUTS = {"input_ids": "numbers", "token_type_ids": "types"}
_MASK = "attention_mask"
#: The number of tokens in a forward pass, including padding.
_BATCH = 512


class TorchEncoder(Encoder):
    """The encoder of a model folder or a hub model; uses `model`, `revision`, `dtype` and `device`."""

    def __init__(self, options: EngineOptions) -> None:
        wait_passively()
        import torch

        model, self._tokenizer = _loaded(options)
        if not (isinstance(self._tokenizer, Tokenization) or self._tokenizer.is_fast):
            raise EngineError(f"the tokenizer of {options.model} gives no token offsets; save a fast tokenizer")
        dtype = options.dtype
        if dtype == "auto":
            dtype = "bfloat16" if bf16_works(model.device.type) else "float32"
        self._model = model.to(getattr(torch, dtype)).eval()
        config = model.config
        self.config = config.to_dict() | {"id2label": dict(config.id2label)}
        offset = 2 if config.model_type in ("roberta", "xlm-roberta", "camembert") else 0
        self.longest = config.max_position_embeddings - offset
        if isinstance(self._tokenizer, Tokenization):
            self._inputs, self._padding = [*_INPUTS, _MASK], SPECIAL.index(PADDING)
        else:
            known = self._tokenizer.model_input_names
            self._inputs = [name for name in (*_INPUTS, _MASK) if name in known]
            self._padding = self._tokenizer.pad_token_id or 0

    def tokens(self, pairs: Sequence[tuple[str, str]]) -> list[Tokens]:
        if isinstance(self._tokenizer, Tokenization):
            encoded = self._tokenizer.encoded(pairs)
        else:
            sides = [[pair[side] for pair in pairs] for side in (0, 1)]
            encoded = [(one.ids, one) for one in self._tokenizer(*sides, verbose=False).encodings]
        return [Tokens(numbers, one.type_ids, one.sequence_ids, one.offsets) for numbers, one in encoded]

    def logits(self, pairs: Sequence[Tokens]) -> Iterator[Matrix]:
        import torch

        logits: list[Any] = [None] * len(pairs)
        order = sorted(range(len(pairs)), key=lambda i: len(pairs[i]), reverse=True)
        batches = []
        while order:
            count = max(1, _BATCH // len(pairs[order[0]]))
            batches.append(order[:count])
            order = order[count:]
        with TORCH:
            threads = torch.get_num_threads()
            # On CPUs, each core processes its own batch: threads that share a batch wait for each other.
            workers = threads if self._model.device.type == "cpu" else 1
            try:
                with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                    results = pool.map(self._forward, [[pairs[i] for i in batch] for batch in batches])
                    for batch, values in zip(batches, results, strict=True):
                        for i, of_pair in zip(batch, values, strict=True):
                            logits[i] = of_pair
            finally:
                torch.set_num_threads(threads)  # the default of new threads
        yield from logits

    def _forward(self, pairs: Sequence[Tokens]) -> list[Matrix]:
        """The logits of one batch, which is sorted by descending length."""
        import torch

        inputs = {name: torch.zeros(len(pairs), len(pairs[0]), dtype=torch.long) for name in self._inputs}
        inputs["input_ids"] += self._padding
        for row, tokens in enumerate(pairs):
            for name, values in inputs.items():
                values[row, : len(tokens)] = 1 if name == _MASK else torch.tensor(getattr(tokens, _INPUTS[name]))
        with torch.inference_mode():
            output = self._model(**{name: values.to(self._model.device) for name, values in inputs.items()})
        numbers = output.logits.float().cpu().numpy()
        return [values[: len(tokens)] for tokens, values in zip(pairs, numbers, strict=True)]


def _loaded(options: EngineOptions) -> tuple[Any, Any]:
    """The model and its tokenizer.

    Folders of this package have matrices in 8 bits (each row of NAME is multiplied by its factor in NAME.scale), and
    use the word embeddings and the tokenizer of an embedded model.
    """
    import torch
    import transformers

    with loading(options):
        config = transformers.AutoConfig.from_pretrained(options.model, revision=options.revision)
        if embeddings_of(config.to_dict()) is None:
            auto = transformers.AutoModelForTokenClassification
            model = auto.from_pretrained(options.model, revision=options.revision, **placement(options.device))
            return model, transformers.AutoTokenizer.from_pretrained(options.model, revision=options.revision)
        weights = Path(options.model) / WEIGHTS
        e5 = embedded_file_of(weights.parent, config.to_dict())
        model, info = getattr(transformers, config.architectures[0]).from_pretrained(
            None,
            config=config,
            state_dict=_state(weights, e5),
            dtype=torch.float32,  # by default, transformers 5 rounds to float16, the type in the configuration
            output_loading_info=True,
            **placement(options.device),
        )
        if missing := sorted(info["missing_keys"]):
            raise EngineError(f"{weights} has no {missing[0]}; download the folder again")
        return model, Tokenization(e5)


def _state(weights: Path, e5: E5File) -> dict[str, Any]:
    """The weights, dequantized, with the word embeddings."""
    import torch
    from safetensors.torch import load_file

    state: dict[str, Any] = load_file(weights)
    for scale in [name for name in state if name.endswith(".scale")]:
        name = scale.removesuffix(".scale")
        state[name] = state[name].float() * state.pop(scale).float()[:, None]
    state[WORDS_OF_BERT] = torch.from_numpy(e5.tensor(WORDS)).view(-1, e5.width)
    return state
