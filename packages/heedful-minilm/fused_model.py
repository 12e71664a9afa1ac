"""all-MiniLM-L6-v2 as an ONNX graph of fused operators with 8-bit weights, from its published 32-bit weights.

Weights are quantised in blocks of `BLOCK` inputs, symmetrically, and the operator quantises its own input a row and a
block at a time. A text's vector therefore hardly depends on what else is in its batch, which it does where one scale
serves a whole tensor. Only exactly rounded operations are used (no sums), so that every machine writes the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

BLOCK = 64
LAYERS, HEADS, WIDTH = 6, 12, 384
OPSET, IR_VERSION = 17, 8
FUSED = "com.microsoft"
EPSILON = 1e-12
INT8_ACTIVATIONS = 4
"""The `accuracy_level` at which inputs are quantised as well."""

Array = NDArray[Any]
Weights = Mapping[str, NDArray[np.float32]]


def read_safetensors(content: bytes) -> dict[str, NDArray[np.float32]]:
    """The 32-bit tensors of a safetensors file, by name."""
    start = 8 + int.from_bytes(content[:8], "little")
    tensors: dict[str, NDArray[np.float32]] = {}
    for name, about in json.loads(content[8:start]).items():
        if about.get("dtype") == "F32":
            first, last = about["data_offsets"]
            tensors[name] = np.frombuffer(content[start + first : start + last], "<f4").reshape(about["shape"])
    return tensors


def quantised(rows: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Integers from -127 to 127 and the scale of each run along the last axis; their product is about `rows`."""
    scales = (np.abs(rows).max(axis=-1, keepdims=True) / np.float32(127)).astype(np.float32)
    safe = np.where(scales == 0, np.float32(1), scales)
    return np.rint(rows / safe).astype(np.int8), scales


def fused_model(weights: Weights) -> bytes:
    """The serialised model: `input_ids` and `attention_mask` to the states of the last layer."""
    serialised: bytes = _Graph(weights).model().SerializeToString(deterministic=True)
    return serialised


class _Graph:
    """Collects the nodes and their constants."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []

    def model(self) -> ModelProto:
        states = self._embeddings()
        for layer in range(LAYERS):
            states = self._layer(f"encoder.layer.{layer}.", states)
        self._nodes[-1].output[0] = "last_hidden_state"
        shape = ["batch", "length"]
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in ("input_ids", "attention_mask")
        ]
        output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*shape, WIDTH])
        graph = helper.make_graph(self._nodes, "all-MiniLM-L6-v2", inputs, [output], self._constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(FUSED, 1)]
        changed = "all-MiniLM-L6-v2, changed: operators fused, weights quantised to 8 bits."
        return helper.make_model(
            graph,
            opset_imports=opsets,
            ir_version=IR_VERSION,
            producer_name="heedful-minilm",
            doc_string=f"{changed} Apache-2.0. See MODEL_CARD.md.",
        )

    def _constant(self, name: str, value: Array) -> str:
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def _weight(self, name: str) -> str:
        return self._constant(name, self._weights[name])

    def _node(self, kind: str, inputs: list[str], output: str, *, domain: str = "", **attributes: Any) -> str:
        self._nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))
        return output

    def _embeddings(self) -> str:
        """Word and position; the one kind of token that is used is added to the positions."""
        prefix = "embeddings."
        integers, scales = quantised(self._weights[f"{prefix}word_embeddings.weight"])
        words = self._node("Gather", [self._constant("words", integers), "input_ids"], "words.integers")
        words = self._node("Cast", [words], "words.floats", to=TensorProto.FLOAT)
        scale = self._node("Gather", [self._constant("words.scales", scales), "input_ids"], "words.scale")
        words = self._node("Mul", [words, scale], "words.states")
        kinds = self._weights[f"{prefix}token_type_embeddings.weight"]
        table = self._constant("positions", self._weights[f"{prefix}position_embeddings.weight"] + kinds[0])
        length = self._node("Shape", ["input_ids"], "length", start=1, end=2)
        positions = self._node("Slice", [table, self._constant("zero", np.array([0])), length], "positions.states")
        states = self._node("Add", [words, positions], "embedded")
        self._node("Cast", ["attention_mask"], "mask", to=TensorProto.INT32)
        normal = [self._weight(f"{prefix}LayerNorm.{part}") for part in ("weight", "bias")]
        return self._node("LayerNormalization", [states, *normal], "embeddings", epsilon=EPSILON)

    def _layer(self, prefix: str, states: str) -> str:
        attention = f"{prefix}attention."
        parts = [f"{attention}self.{name}" for name in ("query", "key", "value")]
        joined = np.concatenate([self._weights[f"{part}.weight"] for part in parts])
        bias = self._constant(
            f"{attention}self.bias", np.concatenate([self._weights[f"{part}.bias"] for part in parts])
        )
        together = self._product(f"{attention}self", states, joined, bias)
        sizes = self._constant(f"{attention}self.sizes", np.array([WIDTH] * 3))
        self._nodes.append(helper.make_node("Split", [together, sizes], parts, axis=2))
        attended = self._node(
            "MultiHeadAttention", [*parts, "", "mask"], f"{attention}states", domain=FUSED, num_heads=HEADS
        )
        states = self._added(f"{attention}output.", attended, states)
        inner = f"{prefix}intermediate.dense"
        product = self._product(inner, states, self._weights[f"{inner}.weight"])
        active = self._node("BiasGelu", [product, self._weight(f"{inner}.bias")], f"{inner}.active", domain=FUSED)
        return self._added(f"{prefix}output.", active, states)

    def _added(self, prefix: str, states: str, residual: str) -> str:
        """A dense layer, with what went in before added to it and the sum normalised."""
        product = self._product(f"{prefix}dense", states, self._weights[f"{prefix}dense.weight"])
        given = [self._weight(f"{prefix}{name}") for name in ("LayerNorm.weight", "LayerNorm.bias", "dense.bias")]
        return self._node(
            "SkipLayerNormalization", [product, residual, *given], f"{prefix}states", domain=FUSED, epsilon=EPSILON
        )

    def _product(self, name: str, states: str, weight: NDArray[np.float32], bias: str | None = None) -> str:
        outputs, inputs = weight.shape
        integers, scales = quantised(weight.reshape(outputs, inputs // BLOCK, BLOCK))
        # The operator takes unsigned bytes, whose zero is 128.
        unsigned = (integers.astype(np.int16) + 128).astype(np.uint8)
        given = [states, self._constant(f"{name}.integers", unsigned), self._constant(f"{name}.scales", scales[..., 0])]
        return self._node(
            "MatMulNBits",
            [*given, "", "", bias] if bias else given,
            f"{name}.product",
            domain=FUSED,
            K=inputs,
            N=outputs,
            bits=8,
            block_size=BLOCK,
            accuracy_level=INT8_ACTIVATIONS,
        )
