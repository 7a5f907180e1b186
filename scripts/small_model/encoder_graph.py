"""Writes ``model.onnx``: the graph of a BERT token classifier, with the tensors in ``model.safetensors`` in the same
folder.

ONNX supports tensors in external files; here, each is a byte range of ``model.safetensors``: matrices in 8 bits, which
`DequantizeLinear` multiplies by the scale of each row, and everything else in float16. ONNX Runtime converts both to
float32 when it loads the graph.

The inputs are those of one text pair without padding: ``inputs_embeds`` (tokens, width), the word embeddings, and
``token_type_ids`` (tokens,). The output ``logits`` is (tokens, labels).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: The first operator set of ONNX with Gelu, and the corresponding version of the file format.
_OPSET, _IR = 20, 9
_WEIGHTS = "model.safetensors"


class _Graph:
    """Collects nodes and tensors. The output of a node has the name of the node."""

    def __init__(self, weights: Path) -> None:
        import onnx

        self._onnx = onnx
        with weights.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            self._tensors: dict[str, Any] = json.loads(file.read(length))
        self._begin = 8 + length
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}

    def node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(self._onnx.helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def numbers(self, name: str, values: Any, kind: str = "INT64") -> str:
        """Add a small tensor, which is stored in the graph itself."""
        shape = [len(values)] if isinstance(values, list) else []
        flat = values if isinstance(values, list) else [values]
        self.initializers[name] = self._onnx.helper.make_tensor(
            name, getattr(self._onnx.TensorProto, kind), shape, flat
        )
        return name

    def weight(self, name: str) -> str:
        """The tensor with this name, in float32."""
        self._outside(name)
        if f"{name}.scale" in self._tensors:
            self._outside(f"{name}.scale")
            return self.node("DequantizeLinear", [name, f"{name}.scale"], f"{name}.float", axis=0)
        return self.node("Cast", [name], f"{name}.float", to=self._onnx.TensorProto.FLOAT)

    def _outside(self, name: str) -> None:
        kinds = {"F32": "FLOAT", "F16": "FLOAT16", "I8": "INT8"}
        where = self._tensors[name]
        begin, end = where["data_offsets"]
        tensor = self._onnx.TensorProto(
            name=name,
            dims=where["shape"],
            data_type=getattr(self._onnx.TensorProto, kinds[where["dtype"]]),
            data_location=self._onnx.TensorProto.EXTERNAL,
        )
        for key, value in (("location", _WEIGHTS), ("offset", self._begin + begin), ("length", end - begin)):
            tensor.external_data.add(key=key, value=str(value))
        self.initializers[name] = tensor

    def linear(self, inputs: str, name: str) -> str:
        return self.node("Gemm", [inputs, self.weight(f"{name}.weight"), self.weight(f"{name}.bias")], name, transB=1)

    def normalised(self, inputs: str, name: str, epsilon: float) -> str:
        weights = [self.weight(f"{name}.weight"), self.weight(f"{name}.bias")]
        return self.node("LayerNormalization", [inputs, *weights], name, axis=-1, epsilon=epsilon)


def write_graph(folder: Path) -> None:
    """Write ``model.onnx`` for ``config.json`` and ``model.safetensors`` in a folder."""
    import onnx

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    graph = _Graph(folder / _WEIGHTS)
    _embedded(graph, config)
    state = "bert.embeddings.LayerNorm"
    graph.numbers("heads", [0, config["num_attention_heads"], -1])
    graph.numbers("joined", [0, -1])
    graph.numbers("root", (config["hidden_size"] / config["num_attention_heads"]) ** -0.5, "FLOAT")
    for number in range(config["num_hidden_layers"]):
        state = _layer(graph, config, f"bert.encoder.layer.{number}", state)
    graph.linear(state, "classifier")
    graph.nodes[-1].output[0] = "logits"
    make, float32, int64 = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes,
            "tagger",
            [
                make("inputs_embeds", float32, ["tokens", config["hidden_size"]]),
                make("token_type_ids", int64, ["tokens"]),
            ],
            [make("logits", float32, ["tokens", len(config["id2label"])])],
            list(graph.initializers.values()),
        ),
        opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
        ir_version=_IR,
    )
    (folder / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
    onnx.checker.check_model(str(folder / "model.onnx"), full_check=True)


def _embedded(graph: _Graph, config: Mapping[str, Any]) -> None:
    """Add the normalised sum of the word, position and type embeddings."""
    graph.node("Shape", ["token_type_ids"], "tokens")
    graph.numbers("first", [0])
    positions = graph.weight("bert.embeddings.position_embeddings.weight")
    graph.node("Slice", [positions, "first", "tokens", "first"], "positions")
    types = graph.weight("bert.embeddings.token_type_embeddings.weight")
    graph.node("Gather", [types, "token_type_ids"], "types")
    graph.node("Add", ["inputs_embeds", "types"], "words_and_types")
    graph.node("Add", ["words_and_types", "positions"], "embeddings")
    graph.normalised("embeddings", "bert.embeddings.LayerNorm", config["layer_norm_eps"])


def _layer(graph: _Graph, config: Mapping[str, Any], name: str, state: str) -> str:
    """Add attention and feed-forward layer, with residual connections and normalisation. Returns the output name."""
    heads = {}
    for part, axes in (("query", [1, 0, 2]), ("key", [1, 2, 0]), ("value", [1, 0, 2])):
        values = graph.linear(state, f"{name}.attention.self.{part}")
        split = graph.node("Reshape", [values, "heads"], f"{values}.split")
        heads[part] = graph.node("Transpose", [split], f"{values}.heads", perm=axes)
    query = graph.node("Mul", [heads["query"], "root"], f"{name}.scaled")
    scores = graph.node("MatMul", [query, heads["key"]], f"{name}.scores")
    shares = graph.node("Softmax", [scores], f"{name}.shares", axis=-1)
    mixed = graph.node("MatMul", [shares, heads["value"]], f"{name}.mixed")
    turned = graph.node("Transpose", [mixed], f"{name}.turned", perm=[1, 0, 2])
    joined = graph.node("Reshape", [turned, "joined"], f"{name}.joined")
    attended = graph.linear(joined, f"{name}.attention.output.dense")
    graph.node("Add", [attended, state], f"{name}.attended")
    epsilon = config["layer_norm_eps"]
    state = graph.normalised(f"{name}.attended", f"{name}.attention.output.LayerNorm", epsilon)
    inner = graph.linear(state, f"{name}.intermediate.dense")
    graph.node("Gelu", [inner], f"{name}.inner")
    outer = graph.linear(f"{name}.inner", f"{name}.output.dense")
    graph.node("Add", [outer, state], f"{name}.summed")
    return graph.normalised(f"{name}.summed", f"{name}.output.LayerNorm", epsilon)
