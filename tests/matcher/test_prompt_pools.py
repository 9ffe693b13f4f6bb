"""Pools of prompts, whose vectors are averaged, and vectors that are freed of what their prompt says by itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from maskmatch import ExportedMatcher, LabelSet, MaskMatcher, MaskMatchError, export
from maskmatch.prompts.batches import PaddedBatch
from maskmatch.training.data import training_data
from toy_data import A_LITTLE, LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from maskmatch.config.training import LabelEncoding

POOL = ["{text} It is about {mask}.", "Topic: {mask}. {text}"]
LABEL_POOL = ["{label} is {mask}.", "{mask}: {label}", "{label} means {mask}."]


def _vectors(matcher: MaskMatcher) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The vectors of the toy texts and of the labels, as they are read."""
    prediction = matcher.pipeline
    assert matcher.labels is not None
    labels = matcher.bank.vectors()
    return prediction.all_vectors(prediction.tokenize(TEXTS)), labels


def test_a_pool_is_the_mean_of_its_prompts(tiny: Callable[[str], Path]) -> None:
    pooled = _vectors(MaskMatcher.from_pretrained(tiny("bert"), LABELS, prompt=POOL, label_prompt=LABEL_POOL))
    singles = [_vectors(MaskMatcher.from_pretrained(tiny("bert"), LABELS, prompt=each))[0] for each in POOL]
    labels = [_vectors(MaskMatcher.from_pretrained(tiny("bert"), LABELS, label_prompt=each))[1] for each in LABEL_POOL]
    np.testing.assert_allclose(pooled[0], np.mean(singles, axis=0), atol=1e-5)
    np.testing.assert_allclose(pooled[1], np.mean(labels, axis=0), atol=1e-5)
    alone = MaskMatcher.from_pretrained(tiny("bert"), LABELS, prompt=POOL[:1])
    np.testing.assert_allclose(_vectors(alone)[0], singles[0], atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [{"prompt": POOL, "label_prompt": LABEL_POOL}, {"debias": "both"}, {"prompt": POOL, "debias": "inputs"}],
    ids=["pools", "debias", "pool and debias"],
)
def test_training_scores_as_prediction_does_and_saving_keeps_it(
    options: dict[str, Any], tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, **options)
    labels = matcher.labels
    assert labels is not None
    data = training_data(matcher.bank, TEXTS, TRUTH)
    with torch.no_grad():
        scores = matcher.model(**data.batch(range(len(TEXTS))))["scores"]
    np.testing.assert_allclose(scores.numpy(), matcher.pipeline.scores(data.texts), atol=1e-4)
    before = matcher.predict_proba(TEXTS)
    matcher.fit(TEXTS, TRUTH, **A_LITTLE)
    trained = matcher.predict_proba(TEXTS)
    assert not np.allclose(before, trained)
    loaded = MaskMatcher.from_pretrained(matcher.save_pretrained(tmp_path / "model"))
    np.testing.assert_allclose(loaded.predict_proba(TEXTS), trained, atol=1e-5)
    assert loaded.config == matcher.config
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert ("the mean of `" in card) == ("prompt" in options)
    assert ("empty prompt" in card) == ("debias" in options)


def test_the_empty_prompt_is_the_origin(tiny: Callable[[str], Path]) -> None:
    plain, freed = (MaskMatcher.from_pretrained(tiny("bert"), LABELS, debias=each) for each in (None, "both"))
    model = freed.model
    assert model.input_origin is not None
    assert model.label_origin is not None
    for found, usual, origin in zip(
        _vectors(freed), _vectors(plain), (model.input_origin, model.label_origin), strict=True
    ):
        np.testing.assert_allclose(found, usual - origin.numpy(), atol=1e-5)
    inputs = MaskMatcher.from_pretrained(tiny("bert"), LABELS, debias="inputs")
    np.testing.assert_allclose(_vectors(inputs)[1], _vectors(plain)[1], atol=1e-6)
    # It stays as it was before training, so that training and prediction take away the same.
    freed.fit(TEXTS, TRUTH, epochs=1)
    origin = freed.model.input_origin
    assert origin is not None
    torch.testing.assert_close(origin, model.input_origin)


def test_another_prompt_has_another_origin(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    folder = MaskMatcher.from_pretrained(tiny("bert"), LABELS, debias="both").save_pretrained(tmp_path / "model")
    same, other = MaskMatcher.from_pretrained(folder), MaskMatcher.from_pretrained(folder, prompt=POOL[1])
    first, second = (matcher.model.input_origin for matcher in (same, other))
    assert first is not None
    assert second is not None
    assert not torch.allclose(first, second)
    usual = MaskMatcher.from_pretrained(folder, debias="none")
    assert usual.model.input_origin is None


def test_folders_from_before_load(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    folder = MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(tmp_path / "model")
    data = json.loads((folder / "maskmatch.json").read_text(encoding="utf-8"))
    assert isinstance(data["config"]["prompt"], str)
    del data["sha256"], data["config"]["debias"]
    (folder / "maskmatch.json").write_text(json.dumps(data), encoding="utf-8")
    assert MaskMatcher.from_pretrained(folder).config.debias == "none"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prompt": []}, "pool of prompts is empty"),
        ({"prompt": ["{text} {mask}", "{text} {mask} {mask}"]}, "number of masks"),
        (
            {"prompt": ["{text} {mask}", "{text_b} {mask}"], "task": "nli"},
            "do not have the same fields and number of masks",
        ),
        ({"prompt": ["{text} {mask}", "{text}"]}, "has no mask"),
        ({"debias": "all"}, "choose one of none, inputs, labels, both"),
        ({"debias": "labels", "method": "fine-tuning"}, "reads no label prompt"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], words: str, tiny: Callable[[str], Path]) -> None:
    with pytest.raises(MaskMatchError, match=words):
        MaskMatcher.from_pretrained(tiny("bert"), LABELS, **options)


def test_examples_go_with_neither(tiny: Callable[[str], Path]) -> None:
    labels = LabelSet.of({name: {"examples": [f"a {name}"]} for name in LABELS})
    for options in ({"prompt": POOL}, {"label_prompt": LABEL_POOL}, {"debias": "both"}):
        with pytest.raises(MaskMatchError, match="do not go with a pool of prompts or debiased"):
            MaskMatcher.from_pretrained(tiny("bert"), labels, **options).predict(TEXTS)


def test_a_pool_of_label_prompts_is_read_whole(tiny: Callable[[str], Path]) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, label_prompt=LABEL_POOL)
    with pytest.raises(MaskMatchError, match="single label prompt"):
        matcher.fit(TEXTS, TRUTH, label_encoding="sampled", epochs=1)
    matcher.fit(TEXTS, TRUTH, hold=0.5, epochs=1)


@pytest.mark.parametrize("debias", ["none", "both"])
def test_an_export_joins_the_prompts_of_a_pool(tiny: Callable[[str], Path], tmp_path: Path, debias: Any) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, prompt=POOL, label_prompt=LABEL_POOL, debias=debias)
    assert export(matcher, tmp_path / "export").is_close
    exported = ExportedMatcher.from_pretrained(tmp_path / "export")
    np.testing.assert_allclose(exported.predict_proba(TEXTS), matcher.predict_proba(TEXTS), atol=2e-5)
    told = json.loads((tmp_path / "export" / "export.json").read_text(encoding="utf-8"))
    del told["sha256"]
    (tmp_path / "export" / "export.json").write_text(json.dumps({**told, "format": 1}), encoding="utf-8")
    with pytest.raises(MaskMatchError, match="a pool of prompts in an older form; export the classifier again"):
        ExportedMatcher.from_pretrained(tmp_path / "export")


SEEING = ["{text} {label} is {mask}.", "{label}: {text} {mask}"]


@pytest.mark.parametrize(
    ("prompts", "label_prompts"), [(POOL, SEEING), (POOL, SEEING[:1]), (POOL[:1], SEEING)], ids=["2/2", "2/1", "1/2"]
)
def test_labels_that_see_the_text_are_exported_if_both_are_read_in_as_many_prompts(
    tiny: Callable[[str], Path], tmp_path: Path, prompts: list[str], label_prompts: list[str]
) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, prompt=prompts, label_prompt=label_prompts)
    if len(prompts) != len(label_prompts):
        with pytest.raises(MaskMatchError, match="numbers of input prompts and label prompts differ"):
            export(matcher, tmp_path / "export")
        return
    export(matcher, tmp_path / "export")
    exported = ExportedMatcher.from_pretrained(tmp_path / "export")
    np.testing.assert_allclose(exported.predict_proba(TEXTS), matcher.predict_proba(TEXTS), atol=2e-5)


def test_labels_may_be_sampled_while_texts_are_read_in_a_pool(tiny: Callable[[str], Path]) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, prompt=POOL)
    assert matcher.labels is not None
    losses = []
    encodings: tuple[LabelEncoding, ...] = ("full", "sampled")
    for encoding in encodings:
        data = training_data(matcher.bank, TEXTS, TRUTH, label_encoding=encoding)
        losses.append(matcher.model(**data.batch(range(4)))["loss"].item())
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)


def test_a_batch_of_a_pool_holds_all_texts_in_one_prompt_and_then_in_the_next(tiny: Callable[[str], Path]) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, prompt=["{text} {mask}", "{mask} so it is: {text}."])
    prompts = matcher.pipeline.tokenize(TEXTS)
    rows = np.array([2, 0])
    batch = PaddedBatch.of(prompts, rows, pad_id=0)
    expected = [part.input_ids[row] for part in (prompts, *prompts.others) for row in rows]
    assert [ids[mask == 1].tolist() for ids, mask in zip(batch.input_ids, batch.attention_mask, strict=True)] == [
        ids.tolist() for ids in expected
    ]
    assert prompts.lengths.tolist() == [len(ids) for ids in prompts.others[0].input_ids]
