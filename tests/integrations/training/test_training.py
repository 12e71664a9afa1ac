"""Training data as trainers read them: `datasets`, TRL and Sentence Transformers, with tiny models."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset, load_dataset
from loop import run_examples
from sentence_transformers import SentenceTransformer
from sentence_transformers.cross_encoder import CrossEncoder, CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.losses import ListNetLoss
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer
from trl.data_utils import is_conversational, maybe_apply_chat_template

import heedful
from heedful import Heedful

TEMPLATE = "{% for message in messages %}<{{ message.role }}> {{ message.content }} <end> {% endfor %}"
FORMATS = ("kto", "dpo", "sft", "triplets", "text2sql", "evals")


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Heedful]:
    """Twenty questions, each with a right and a wrong answer, and facts that helped and that didn't."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEEDFUL_AUTO_IMPROVE", "false")
    with heedful.open("desk.db", worker=False) as opened:
        for number in range(20):
            question = f"What is the price of item{number} in shop{number}?"
            facts = opened.remember([f"Item{number} costs {number} euros.", f"Shop{number} opens at nine."]).fact_ids
            recall = opened.recall(question, top_k=50)
            opened.signal_recall(recall.recall_id, helpful=facts[:1], not_helpful=facts[1:], author="ann")
            for answer, score in ((f"It costs {number} euros.", 5), ("Nobody knows.", 1)):
                entry = opened.sessions.add_entry("desk", question, answer, recall_id=recall.recall_id, used=facts[:1])
                opened.sessions.add_feedback("desk", entry.qa_id, None, score, author="ann")
        with closing(sqlite3.connect("shop.sqlite")) as shop:
            shop.execute("CREATE TABLE sales (year INTEGER, price REAL)")
        opened.connectors.create("shop", f"sqlite:///{tmp_path / 'shop.sqlite'}")
        for number in range(5):
            opened.golden_examples.create(
                f"Sales in {2020 + number}?", f"SELECT price FROM sales WHERE year = {2020 + number}"
            )
        yield opened


@pytest.fixture
def load(memory: Heedful) -> Callable[[Any], Dataset]:
    def loaded(format: Any) -> Dataset:
        lines = memory.insight.export_training(f"{format}.jsonl", format, overwrite=True).data.lines
        dataset = load_dataset("json", data_files=f"{format}.jsonl", split="train", cache_dir="cache")
        assert len(dataset) == lines
        return dataset

    return loaded


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerFast:
    """Knows the words of these tests, and has a chat template."""
    special = ["<pad>", "<unk>", "<end>", "<user>", "<assistant>", "[CLS]", "[SEP]"]
    words = [*special, *"What is the price of in shop costs It euros Nobody knows opens at nine . ?".split()]  # noqa: SIM905
    numbered = [f"{name}{number}" for name in ("item", "shop", "Item", "Shop", "") for number in range(20)]
    made = Tokenizer(models.WordLevel({word: place for place, word in enumerate([*words, *numbered])}, "<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    named = {
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "eos_token": "<end>",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
    }
    whole = PreTrainedTokenizerFast(tokenizer_object=made, additional_special_tokens=["<user>", "<assistant>"], **named)
    whole.chat_template = TEMPLATE
    return whole


@pytest.fixture
def model(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> LlamaForCausalLM:
    """In a folder, from which trainers read it again as the one to compare with."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    ends = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id, "bos_token_id": None}
    config = LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=128, **sizes, **ends)
    LlamaForCausalLM(config).save_pretrained(tmp_path / "model")
    return LlamaForCausalLM.from_pretrained(tmp_path / "model")


@pytest.fixture
def embedder(tokenizer: PreTrainedTokenizerFast) -> SentenceTransformer:
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer.backend_tokenizer, embedding_dim=16)], device="cpu")


def options(**more: Any) -> dict[str, Any]:
    return {"output_dir": "out", "max_steps": 2, "report_to": "none", "use_cpu": True, "save_strategy": "no", **more}


def weights(trained: torch.nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten().clone() for parameter in trained.parameters()])


@pytest.mark.parametrize("format", FORMATS)
def test_datasets_loads_every_line_with_its_fields(load: Callable[[Any], Dataset], format: str) -> None:
    lines = load(format)
    place = "connector" if format == "text2sql" else "dataset"
    assert {"agreement", "votes", "need", "split", place, "id"} <= set(lines.column_names)
    needs = {
        side: set(lines.filter(lambda line, side=side: line["split"] == side)["need"]) for side in ("train", "test")
    }
    assert needs["train"].isdisjoint(needs["test"])
    assert lines.unique("id") == list(lines["id"])


@pytest.mark.parametrize("format", ["kto", "dpo", "sft"])
def test_trl_formats_the_messages(
    load: Callable[[Any], Dataset], tokenizer: PreTrainedTokenizerFast, format: str
) -> None:
    first = load(format)[0]
    keys = {"kto": ("prompt", "completion", "label"), "dpo": ("prompt", "chosen", "rejected"), "sft": ("messages",)}
    line = {key: first[key] for key in keys[format]}
    assert is_conversational(line)
    formatted = maybe_apply_chat_template(line, tokenizer)
    text = formatted["text"] if format == "sft" else formatted["prompt"]
    assert text.startswith("<user> What is the price of")
    if format == "dpo":
        assert ("costs" in formatted["chosen"], "Nobody" in formatted["rejected"]) == (True, True)
    if format == "kto":
        assert formatted["label"] == ("costs" in formatted["completion"])


def test_trl_trains_on_preferences_and_on_answers(
    load: Callable[[Any], Dataset], tokenizer: PreTrainedTokenizerFast, model: LlamaForCausalLM
) -> None:
    for trainer_type, config_type, format in ((DPOTrainer, DPOConfig, "dpo"), (SFTTrainer, SFTConfig, "sft")):
        before = weights(model)
        settings = config_type(**options(bf16=False, per_device_train_batch_size=4, learning_rate=0.01))
        trainer = trainer_type(model=model, args=settings, train_dataset=load(format), processing_class=tokenizer)
        loss = trainer.train().training_loss
        assert loss > 0
        assert not torch.equal(weights(model), before)


def test_trl_trains_on_labels(
    load: Callable[[Any], Dataset], tokenizer: PreTrainedTokenizerFast, model: LlamaForCausalLM
) -> None:
    try:
        from trl import KTOConfig, KTOTrainer
    except ImportError:
        from trl.experimental.kto import KTOConfig, KTOTrainer
    before = weights(model)
    settings = KTOConfig(**options(bf16=False, per_device_train_batch_size=4, learning_rate=0.01))
    trainer = KTOTrainer(model=model, args=settings, train_dataset=load("kto"), processing_class=tokenizer)
    assert trainer.train().training_loss > 0
    assert not torch.equal(weights(model), before)


def test_a_reranker_trains_on_facts_that_helped_and_facts_that_did_not(
    load: Callable[[Any], Dataset], tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(tokenizer), num_labels=1, max_position_embeddings=128, **sizes)
    BertForSequenceClassification(config).save_pretrained(tmp_path / "bert")
    tokenizer.save_pretrained(tmp_path / "bert")
    reranker = CrossEncoder(str(tmp_path / "bert"), device="cpu")
    lines = load("triplets").map(
        lambda line: {
            "docs": [line["positive"], *line["negatives"]],
            "labels": [1.0] + [0.0] * len(line["negatives"]),
        }
    )
    assert all(len(docs) == 2 for docs in lines["docs"])
    before = weights(reranker)
    CrossEncoderTrainer(
        model=reranker,
        args=CrossEncoderTrainingArguments(**options(learning_rate=0.01)),
        train_dataset=lines.select_columns(["query", "docs", "labels"]),
        loss=ListNetLoss(reranker),
    ).train()
    assert not torch.equal(weights(reranker), before)


def test_the_examples_of_the_page_run(
    memory: Heedful,
    tokenizer: PreTrainedTokenizerFast,
    model: LlamaForCausalLM,
    embedder: SentenceTransformer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    memory.close()
    before = weights(embedder)
    run_examples("trainers", {"model": model, "tokenizer": tokenizer, "embedder": embedder})
    assert not torch.equal(weights(embedder), before)
    page = (Path(__file__).parents[3] / "docs/integrations/trainers.md").read_text(encoding="utf-8")
    printed = capsys.readouterr().out
    for expected in re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        assert expected in printed
