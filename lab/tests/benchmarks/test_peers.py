"""The peers that run in the project's own environment do their work, on a tiny encoder and in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from maskmatch_lab.benchmarks.peers import bare_loop, cross_encoder, ours, sentence_encoder, word_counts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXTS = ["my card is lost", "where is my refund", "the card is gone", "refund please"]
LABELS = ["card lost", "refund", "card lost", "refund"]
NAMES = ["card lost", "refund"]
WORDS = ["card", "lost", "refund", "please"]


@pytest.fixture
def model(tiny: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("maskmatch.config.training.FEW_STEPS", 4)
    monkeypatch.setattr(bare_loop, "STEPS", {"head": 4, "names": 4})
    return str(tiny("bert"))


@pytest.mark.parametrize(
    ("train", "options"),
    [
        (ours.Training, {"share": 0.5}),
        (bare_loop.Training, {"way": "head"}),
        (bare_loop.Training, {"way": "names"}),
        (word_counts.Training, {}),
    ],
)
def test_training_then_predicting(train: Callable[..., Any], options: dict[str, Any], model: str) -> None:
    work = train(texts=TEXTS, labels=LABELS, names=NAMES, model=model, seed=1, **options)
    work.run()
    assert set(work.predict(TEXTS)) <= set(NAMES)


def test_a_share_of_the_epochs_is_a_share_of_the_steps(model: str) -> None:
    whole, half = (
        ours.Training(texts=TEXTS, labels=LABELS, names=NAMES, model=model, share=share).run()["steps"]
        for share in (1.0, 0.5)
    )
    assert whole == 2 * half


@pytest.mark.parametrize(
    ("step", "options"),
    [
        (ours.Step, {"label_encoding": "full"}),
        (ours.Step, {"label_encoding": "sampled"}),
        (bare_loop.Step, {"way": "head"}),
        (bare_loop.Step, {"way": "names"}),
    ],
)
def test_steps_can_be_repeated(step: Callable[..., Any], options: dict[str, Any], model: str) -> None:
    work = step(texts=TEXTS, words=WORDS, labels=3, model=model, **options)
    work.run()
    work.run()


def test_the_operations_of_a_step_are_counted_and_grow_with_the_labels(model: str) -> None:
    few, more = (
        ours.Operations(texts=TEXTS, words=WORDS, labels=labels, model=model, label_encoding="full").run()["operations"]
        for labels in (2, 40)
    )
    assert 0 < few < more


def test_matrix_products_tell_their_operations() -> None:
    assert bare_loop.MatrixProducts(size=8, times=2).run() == {"operations": 2 * 2 * 8**3}


def test_labels_beyond_those_that_are_read_have_mixed_vectors(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "READ_NAMES", 5)
    monkeypatch.setattr(sentence_encoder, "READ_NAMES", 5)
    settings = {"texts": TEXTS, "words": WORDS, "labels": 30, "model": model, "mixed": True}
    ours.Step(**settings, label_encoding="sampled").run()
    for kind in (ours.Prediction, sentence_encoder.Prediction):
        work = kind(**settings)
        work.run()
        assert len(work.predict(TEXTS)) == len(TEXTS)


@pytest.mark.parametrize("kind", [ours, sentence_encoder, cross_encoder, word_counts, bare_loop])
def test_predicting_among_names(kind: Any, model: str) -> None:
    kind.Prediction(texts=TEXTS, names=NAMES, model=model).run()


def test_an_export_is_written_and_predicts(model: str, tmp_path: Path) -> None:
    folder = str(tmp_path / "export")
    assert "parity" in ours.Export(folder=folder, names=NAMES, model=model).run()
    work = ours.Prediction(texts=TEXTS, runtime="onnx", folder=folder)
    work.run()
    assert set(work.predict(TEXTS)) <= set(NAMES)
