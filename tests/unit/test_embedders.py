"""What every embedder must hold to, and where each of them says that it can't be used."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from heedful import Invalid, Unavailable
from heedful.providers.configured import embedder_from
from heedful.providers.embedding import (
    KEPT,
    Embedder,
    FastEmbedder,
    OnnxEmbedder,
    RecentVectors,
    Vectors,
    bundled,
    from_folder,
)
from heedful.testing import WordEmbedder

TEXTS = ["Who is the CEO?", "The cat sat on the mat.", "a", "Grüße aus Köln, 東京", "word " * 600]


def tiny_model(folder: Path, *, pooled: bool = False, vague: bool = False) -> Path:
    """A model of eight dimensions: each token has a fixed row of a table. A vague one can't say how wide it is."""
    folder.mkdir(parents=True, exist_ok=True)
    table = np.random.default_rng(1).standard_normal((10, 8), np.float32)
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "length"])
    shape = ["batch", 8] if pooled else ["batch", "length", "width" if vague else 8]
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, shape)
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["states" if pooled or vague else "out"])]
    if pooled:
        nodes.append(helper.make_node("ReduceMax", ["states"], ["out"], axes=[1], keepdims=0))
    if vague:
        nodes.append(helper.make_node("Shape", ["input_ids"], ["length"], start=1))
        nodes.append(helper.make_node("Slice", ["states", "zero", "length", "two"], ["out"]))
    numbers = {"table": table, "zero": np.array([0]), "two": np.array([2])}
    constants = [numpy_helper.from_array(value, name) for name, value in numbers.items()]
    graph = helper.make_graph(nodes, "tiny", [ids], [out], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(folder / "model.onnx"))
    vocabulary = {"[UNK]": 0, "alpha": 1, "beta": 2, "gamma": 3, "delta": 4}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def copy_of_bundled(folder: Path) -> Path:
    source = bundled()
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx" / "model.onnx").symlink_to(source._model)
    shutil.copy(source._tokenizer_file, folder / "tokenizer.json")
    return folder


MAKERS: dict[str, Callable[[Path], Embedder]] = {
    "bundled": lambda folder: embedder_from("bundled"),
    "fast": lambda folder: embedder_from("fast"),
    "folder": lambda folder: embedder_from(str(copy_of_bundled(folder / "minilm"))),
    "tiny": lambda folder: embedder_from(str(tiny_model(folder / "tiny"))),
    "tiny pooled": lambda folder: embedder_from(str(tiny_model(folder / "tiny-pooled", pooled=True))),
    "words": lambda folder: WordEmbedder(),
    "recent": lambda folder: RecentVectors(WordEmbedder()),
}


@pytest.fixture(scope="module", params=MAKERS)
def embedder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    return MAKERS[request.param](tmp_path_factory.mktemp("models"))


@pytest.mark.slow
def test_one_unit_vector_for_each_text_in_order(embedder: Embedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dimensions)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)
    for text, vector in zip(TEXTS, vectors, strict=True):
        np.testing.assert_allclose(embedder.embed([text])[0], vector, atol=2e-2)


def test_no_texts_are_no_vectors(embedder: Embedder) -> None:
    assert embedder.embed([]).shape == (0, embedder.dimensions)


def test_the_same_text_gives_the_same_vector(embedder: Embedder) -> None:
    np.testing.assert_array_equal(embedder.embed(TEXTS[:2]), embedder.embed(TEXTS[:2]))


def test_many_texts_are_embedded_as_each_of_them(embedder: Embedder) -> None:
    texts = [f"alpha beta number {number} " * (number % 7 + 1) for number in range(100)]
    vectors = embedder.embed(texts)
    assert vectors.shape == (100, embedder.dimensions)
    np.testing.assert_allclose(vectors[57], embedder.embed([texts[57]])[0], atol=2e-2)


@pytest.mark.parametrize("text", ["🙂", "?", "\u200b", "-", "\n"])
def test_a_text_without_words_has_a_finite_vector(embedder: Embedder, text: str) -> None:
    vectors = embedder.embed([text, "alpha"])
    assert np.isfinite(vectors).all()


def test_an_embedder_has_a_name_and_a_calibration(embedder: Embedder) -> None:
    assert embedder.name
    floor, same = embedder.calibration
    assert -1 <= floor < same < 1


class CountingEmbedder(WordEmbedder):
    """Counts the texts that it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.texts = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts += len(texts)
        return super().embed(texts)


class TestRecentVectors:
    def test_a_text_that_comes_again_is_embedded_once(self) -> None:
        counting = CountingEmbedder()
        recent = RecentVectors(counting)
        first = recent.embed(["alpha beta"])
        np.testing.assert_array_equal(recent.embed(["alpha beta"]), first)
        assert counting.texts == 1
        recent.embed(["alpha Beta"])
        assert counting.texts == 2

    def test_changing_a_vector_changes_none_that_is_kept(self) -> None:
        recent = RecentVectors(WordEmbedder())
        kept = recent.embed(["alpha"]).copy()
        recent.embed(["alpha"])[0, 0] = 7.0
        np.testing.assert_array_equal(recent.embed(["alpha"]), kept)

    def test_so_many_are_kept_and_no_more(self) -> None:
        counting = CountingEmbedder()
        recent = RecentVectors(counting)
        for number in range(KEPT + 1):
            recent.embed([f"text {number}"])
        recent.embed([f"text {KEPT}"])
        assert counting.texts == KEPT + 1
        recent.embed(["text 0"])
        assert counting.texts == KEPT + 2


def test_the_name_is_the_same_each_time(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "mine")
    assert from_folder(folder).name == from_folder(folder).name
    assert embedder_from("bundled").name == embedder_from("bundled").name


def test_another_model_has_another_name(tmp_path: Path) -> None:
    one = from_folder(tiny_model(tmp_path / "one" / "model"))
    other = from_folder(tiny_model(tmp_path / "other" / "model", pooled=True))
    assert one.name != other.name


def test_another_tokenizer_makes_another_name(tmp_path: Path) -> None:
    one = from_folder(tiny_model(tmp_path / "one" / "model"))
    folder = tiny_model(tmp_path / "other" / "model")
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "alpha": 4, "beta": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    other = from_folder(folder)
    assert not np.allclose(one.embed(["alpha"]), other.embed(["alpha"]))
    assert one.name != other.name


def test_the_tiny_model_means_what_its_table_says(tmp_path: Path) -> None:
    model = from_folder(tiny_model(tmp_path / "tiny"))
    table = np.random.default_rng(1).standard_normal((10, 8), np.float32)
    mean = (table[1] + table[2]) / 2
    np.testing.assert_allclose(model.embed(["alpha beta", "gamma"])[0], mean / np.linalg.norm(mean), atol=1e-5)


def test_a_copy_of_the_bundled_model_gives_its_vectors(tmp_path: Path) -> None:
    copied = from_folder(copy_of_bundled(tmp_path / "minilm"))
    np.testing.assert_allclose(copied.embed(TEXTS[:2]), bundled().embed(TEXTS[:2]), atol=1e-5)


@pytest.mark.parametrize("missing", ["tokenizer.json", "model.onnx"])
def test_a_folder_that_lacks_a_file_says_which(tmp_path: Path, missing: str) -> None:
    folder = tiny_model(tmp_path / "tiny")
    (folder / missing).unlink()
    with pytest.raises(Unavailable, match="tokenizer.json" if missing == "tokenizer.json" else ".onnx") as caught:
        embedder_from(str(folder))
    assert caught.value.code == "model_missing"
    assert caught.value.remedy


@pytest.mark.parametrize("broken", ["tokenizer.json", "model.onnx"])
def test_a_folder_with_a_broken_file_is_unusable(tmp_path: Path, broken: str) -> None:
    folder = tiny_model(tmp_path / "tiny")
    (folder / broken).write_bytes(b"not a model")
    with pytest.raises(Unavailable, match="tiny"):
        embedder_from(str(folder)).embed(["alpha"])


def test_a_model_that_does_not_say_how_wide_it_is_is_unusable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="dimensions of its output") as caught:
        embedder_from(str(tiny_model(tmp_path / "tiny", vague=True)))
    assert caught.value.code == "model_unusable"


def test_files_are_loaded_at_the_first_use(tmp_path: Path) -> None:
    lazy = OnnxEmbedder(tmp_path / "no.onnx", tmp_path / "no.json", name="lazy", dimensions=8)
    assert lazy.embed([]).shape == (0, 8)


@pytest.mark.parametrize("spec", ["nonsense", "/no/such/folder", "http://localhost:1/v1"])
def test_an_embedding_that_nobody_knows_is_refused(spec: str) -> None:
    with pytest.raises(Invalid) as caught:
        embedder_from(spec)
    assert caught.value.field == "embedding"
    assert caught.value.value == spec
    assert caught.value.remedy


def test_the_fast_tier_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Unavailable) as caught:
        FastEmbedder()
    assert (
        caught.value.remedy
        == 'Run: pip install "heedful[fast]", or in a clone of the repository: pip install ".[fast]"'
    )


def test_words_in_common_are_similarity() -> None:
    near, same, far = WordEmbedder().embed(["alpha beta gamma", "gamma Alpha, beta!", "delta"])
    assert float(near @ same) == pytest.approx(1.0, abs=1e-6)
    assert float(near @ far) < 0.6
    assert WordEmbedder(16).dimensions == 16
