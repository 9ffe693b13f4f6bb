"""Novelty: texts that no label fits are further from all labels."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from maskmatch import ExportedMatcher, MaskMatcher, MaskMatchError
from maskmatch.labels.scope import Scope
from maskmatch.storage.export.exporter import export
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli_tools import Run

    Tiny = Callable[..., Path]

INSIDE = [
    "I still have not got my money back for the shoes",
    "when will you pay me back what I was charged twice",
    "the cash machine kept my card",
    "my card is stuck in the ATM at the station",
    "how many dollars do I get for a pound",
    "what do you charge for changing euros",
]
OUTSIDE = [
    "the violin concerto begins with a slow movement",
    "boil the potatoes for twenty minutes",
    "penguins cannot fly but swim very well",
    "the treaty was signed in 1648",
    "my knee hurts when I run",
    "who directed that film about the submarine",
]
NAMES = ["refund not received", "card swallowed by a cash machine", "exchange rate"]


@pytest.fixture(scope="module")
def default() -> MaskMatcher:
    return MaskMatcher.from_pretrained(labels=NAMES, task="intent", verbose=False)


def auroc(matcher: MaskMatcher | ExportedMatcher) -> float:
    truth = np.repeat([0, 1], [len(INSIDE), len(OUTSIDE)])
    return float(roc_auc_score(truth, matcher.novelty([*INSIDE, *OUTSIDE])))


def test_names_alone_tell_texts_out_of_scope(default: MaskMatcher) -> None:
    assert auroc(default) > 0.95


def test_a_label_that_is_added_makes_its_texts_less_novel(default: MaskMatcher) -> None:
    import copy

    matcher = copy.copy(default)
    before = default.novelty(["boil the potatoes for twenty minutes"])[0]
    wide = MaskMatcher.from_pretrained(labels=[*NAMES, "cooking"], task="intent", verbose=False)
    assert wide.novelty(["boil the potatoes for twenty minutes"])[0] < before
    del matcher


def test_it_does_not_depend_on_the_batch(default: MaskMatcher) -> None:
    together = default.novelty([*INSIDE, *OUTSIDE])
    alone = [default.novelty([text])[0] for text in [*INSIDE, *OUTSIDE]]
    np.testing.assert_allclose(together, alone, atol=1e-4)
    assert default.novelty([]).shape == (0,)


class TestAfterTraining:
    @pytest.fixture
    def trained(self, tiny: Tiny) -> MaskMatcher:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)
        return matcher.fit(TEXTS, TRUTH, epochs=2, calibrate=False)

    def test_it_is_the_distance_from_the_nearest_labels_texts(self, trained: MaskMatcher) -> None:
        scope = trained.pipeline.scope
        assert scope is not None
        assert scope.means is not None
        vectors = trained.pipeline.scorer.prepare(trained.text_states(TEXTS))
        precision = scope.whitening.T @ scope.whitening
        by_hand = [min(float((row - mean) @ precision @ (row - mean)) for mean in scope.means) for row in vectors]
        np.testing.assert_allclose(trained.novelty(TEXTS), by_hand, rtol=1e-2, atol=1e-2)

    def test_it_is_saved_and_exported(self, trained: MaskMatcher, tmp_path: Path) -> None:
        before = trained.novelty(TEXTS)
        loaded = MaskMatcher.from_pretrained(trained.save_pretrained(tmp_path / "model"), verbose=False)
        np.testing.assert_allclose(loaded.novelty(TEXTS), before, rtol=1e-3, atol=1e-3)
        export(trained, tmp_path / "export")
        exported = ExportedMatcher.from_pretrained(tmp_path / "export", verbose=False)
        np.testing.assert_allclose(exported.novelty(TEXTS), before, rtol=2e-2, atol=2e-2)

    def test_it_follows_label_edits(self, trained: MaskMatcher) -> None:
        trained.add_labels(["something new"]).remove_labels([LABELS[0]])
        assert np.isfinite(trained.novelty(TEXTS)).all()
        assert trained.pipeline.scope is not None
        assert trained.pipeline.scope.means is not None
        assert len(trained.pipeline.scope.means) == len(LABELS)

    def test_texts_out_of_scope_become_more_novel(self, tiny: Tiny) -> None:
        others = [f"penguins number {number} swim in cold water" for number in range(12)]
        plain, taught = (MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False) for _ in range(2))
        plain.fit(TEXTS, TRUTH, epochs=1, calibrate=False)
        rows = [*TEXTS, *others], [*TRUTH, *([None] * 6), *([""] * 6)]
        taught.fit(*rows, epochs=1, calibrate=False, out_of_scope_rows=True)
        np.testing.assert_array_equal(plain.text_states(TEXTS), taught.text_states(TEXTS))  # they are not trained on
        new = [f"penguins number {number} swim in cold water" for number in range(20, 30)]
        truth = np.repeat([0, 1], [len(TEXTS), len(new)])
        before, after = (roc_auc_score(truth, each.novelty([*TEXTS, *new])) for each in (plain, taught))
        assert after >= before
        assert taught.training_ is not None
        assert taught.training_.texts == len(TEXTS)

    def test_an_empty_label_is_an_error_unless_it_is_said(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)
        with pytest.raises(MaskMatchError):
            matcher.fit(TEXTS, [None, *TRUTH[1:]], epochs=1)


def test_a_damaged_scope_is_an_error() -> None:
    with pytest.raises(ValueError, match="square"):
        Scope.from_arrays({"whitening": np.zeros((2, 3), np.float32)})
    with pytest.raises(ValueError, match="fit"):
        Scope.from_arrays({"whitening": np.eye(3, dtype=np.float32), "outside": np.zeros(2, np.float32)})


def test_too_few_texts_have_no_scope() -> None:
    vectors = np.eye(3, dtype=np.float32)
    assert Scope.of(vectors, np.arange(3), vectors) is None


def test_exports_of_names_alone(default: MaskMatcher, tmp_path: Path) -> None:
    export(default, tmp_path / "export")
    exported = ExportedMatcher.from_pretrained(tmp_path / "export", verbose=False)
    np.testing.assert_allclose(exported.novelty(INSIDE), default.novelty(INSIDE), atol=5e-3)
    assert auroc(exported) > 0.95


def test_the_commands(run: Run, tiny: Tiny, tmp_path: Path) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)
    folder = matcher.save_pretrained(tmp_path / "model")
    answer = json.loads(run("predict", folder, "--text", TEXTS[0], "--novelty").out)
    assert answer["novelty"] == pytest.approx(matcher.novelty(TEXTS[:1])[0], abs=1e-4)
    assert "novelty" not in json.loads(run("predict", folder, "--text", TEXTS[0]).out)
    data = tmp_path / "train.csv"
    rows = "".join(f'"{text}",{label}\n' for text, label in zip(TEXTS, TRUTH, strict=True))
    data.write_text(f'text,label\n{rows}"penguins swim",\n"it rains",\n')
    train = ("train", data, "-o", tmp_path / "new", "--model", tiny("bert"), "--epochs", "1", "--no-calibrate")
    refused = run(*train)
    assert refused.code == 1
    assert "label" in refused.err
    done = run(*train, "--out-of-scope-rows")
    assert done.code == 0, done.err
    assert "2 rows have no label" in done.err
