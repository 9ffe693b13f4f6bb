"""Examples of labels: texts that move a label's vector towards themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from maskmatch import Label, LabelSet, MaskMatcher, MaskMatchError
from maskmatch.labels import ExampleText
from maskmatch.labels.centroids import (
    EXAMPLES_FOR_HALF,
    LABELS_FOR_HALF,
    MAX_WEIGHT,
    NO_CENTROIDS,
    TEXTS_IN_ALL,
    TEXTS_PER_LABEL,
    Centroids,
    rows_per_label,
    split_examples,
)
from toy_data import A_LITTLE, LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EXAMPLES = [Label("refund", examples=tuple(TEXTS[:3])), "card lost", Label("exchange rate", phrases=("rate",))]


def random_vectors(count: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(count, 1, 4)).astype(np.float32)


def close(one: np.ndarray, other: np.ndarray) -> None:
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


class TestMoved:
    def test_a_name_moves_towards_the_mean_of_its_examples_and_no_further(self) -> None:
        labels = LabelSet.of([Label("a", examples=("x", "y")), Label("b", phrases=("c",))])
        vectors = np.array([[3.0, 0, 0], [0, 2, 0], [0, 0, 5], [1, 1, 1], [1, 0, 1]], np.float32)[:, None]  # a x y b c
        names, centres = split_examples(vectors, labels)
        close(names, vectors[[0, 3, 4]])
        assert centres.ids == ("a",)
        moved = centres.shift(names, ["a", "b", "b"])[:, 0]
        share = MAX_WEIGHT * 2 / (2 + EXAMPLES_FOR_HALF)
        towards = np.array([1 - share, share * 0.5**0.5, share * 0.5**0.5])
        close(moved[0], 3 * towards / np.linalg.norm(towards))
        close(np.linalg.norm(moved, axis=1), np.linalg.norm(names[:, 0], axis=1))

    def test_labels_without_texts_go_along_with_what_the_others_have_in_common(self) -> None:
        gap = np.array([0.0, 0, 0, 1], np.float32)  # texts lie in a direction in which no name does
        names = np.eye(4, dtype=np.float32)[:3][:, None]  # (3, 1, 4)
        turns = np.arange(100) % 2
        many = Centroids.of(range(100), names[turns] + gap, np.arange(100), [0.5] * 100)
        moved = many.shift(names[[*turns.tolist(), 2]], [*range(100), "new"])[:, 0]
        assert moved[-1, 3] > 0.3
        assert abs(float(moved[-1, 3]) - float(moved[0, 3])) < 0.1
        alone = many.renamed({0: "a"}).shift(names, ["a", "b", "new"])[:, 0]
        move = 0.5 * (many.vectors[0, 0] - names[0, 0])
        along = names[2, 0] + move / (1 + LABELS_FOR_HALF)
        close(alone[2], along / np.linalg.norm(along))

    def test_a_label_with_many_phrases_does_not_decide_what_is_common(self) -> None:
        names = np.eye(4, dtype=np.float32)[:, None]
        centres = Centroids.of(["a", "b"], np.eye(4, dtype=np.float32)[[2, 3]][:, None], np.array([0, 1]), [0.5, 0.5])
        once = centres.shift(names[[0, 1, 2]], ["a", "b", "new"])[-1]
        often = centres.shift(names[[0, 0, 0, 1, 2]], ["a", "a", "a", "b", "new"])[-1]
        close(once, often)

    def test_nothing_moves_without_texts(self) -> None:
        names = random_vectors(3)
        before = names.copy()
        centres = Centroids.of(["d"], random_vectors(1), np.array([0]), [0.5])
        assert centres.shift(names, ["a", "b", "c"]) is names
        centres.shift(names, ["a", "b", "d"])
        close(names, before)  # what is kept elsewhere is left alone

    def test_texts_of_a_label_from_two_sides_are_taken_together(self) -> None:
        axes = np.eye(3, dtype=np.float32)[:, None]
        first = Centroids.of(["a", "b"], axes[:2], np.array([0, 1]), [0.5, 0.4])
        second = Centroids.of(["b", "c"], axes[[2, 2]], np.array([0, 1]), [0.4, 0.2])
        both = first.merged(second)
        assert both.ids == ("a", "b", "c")
        assert both.weights.tolist() == [0.5, 0.4, 0.2]
        close(both.vectors[1, 0], np.array([0, 0.5**0.5, 0.5**0.5]))
        assert first.merged(NO_CENTROIDS) is first
        assert NO_CENTROIDS.merged(first) is first

    def test_with_very_many_labels_few_texts_of_each_are_read(self) -> None:
        rows = rows_per_label(np.repeat(np.arange(TEXTS_IN_ALL), 3))
        assert len(rows) == TEXTS_IN_ALL
        assert all(len(own) == 1 for own in rows.values())

    def test_of_many_texts_some_are_read_from_all_over_the_data(self) -> None:
        rows = rows_per_label(np.array([0] * 1000 + [1] * 3))
        assert rows[1].tolist() == [1000, 1001, 1002]
        assert len(rows[0]) == TEXTS_PER_LABEL
        assert (rows[0][0], rows[0][-1]) == (0, 999)
        assert len(set(rows[0].tolist())) == TEXTS_PER_LABEL

    def test_labels_read_their_texts_then_their_examples(self) -> None:
        label = Label("a", description="b", phrases=("c",), examples=("d", "d", "e  f"))
        assert label.texts == ("a: b", "c")
        assert label.parts == ("a: b", "c", ExampleText("d"), ExampleText("e  f"))
        assert repr(Label("a")) == "Label(id='a', name='a', description='', phrases=(), words=())"
        assert repr(label).endswith("words=(), examples=('d', 'e  f'))")
        with pytest.raises(MaskMatchError, match="blank example"):
            Label("a", examples=(" ",))


class TestClassifier:
    def test_examples_change_the_label_they_belong_to(self, matcher: MaskMatcher, tiny: Callable[[str], Path]) -> None:
        with_examples = MaskMatcher.from_pretrained(tiny("bert"), EXAMPLES)
        plain = MaskMatcher.from_pretrained(tiny("bert"), LabelSet.of(EXAMPLES).without_examples)
        ours, theirs = (each.pipeline.scores(each.pipeline.tokenize(TEXTS)) for each in (with_examples, plain))
        changes = np.abs(ours - theirs).mean(axis=0)
        assert changes[0] > 2 * changes[1:].max()

    def test_they_are_saved(self, tiny: Callable[[str], Path], tmp_path: Path) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), EXAMPLES)
        before = matcher.predict_proba(TEXTS)
        loaded = MaskMatcher.from_pretrained(matcher.save_pretrained(tmp_path / "m"))
        assert loaded.labels == matcher.labels
        assert np.allclose(loaded.predict_proba(TEXTS), before, atol=1e-6)
        other = MaskMatcher.from_pretrained(tmp_path / "m", prompt="{text} So {mask}.")
        fresh = MaskMatcher.from_pretrained(tiny("bert"), EXAMPLES, prompt="{text} So {mask}.")
        assert np.allclose(other.predict_proba(TEXTS), fresh.predict_proba(TEXTS), atol=1e-6)

    def test_training_does_without_them(self, tiny: Callable[[str], Path]) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), EXAMPLES).fit(TEXTS, TRUTH, **A_LITTLE)
        plain = MaskMatcher.from_pretrained(tiny("bert"), LabelSet.of(EXAMPLES).without_examples)
        assert np.allclose(matcher.predict_proba(TEXTS), plain.fit(TEXTS, TRUTH, **A_LITTLE).predict_proba(TEXTS))
        assert not any(label.examples for label in matcher.labels.labels)

    def test_refusals(self, tiny: Callable[[str], Path]) -> None:
        two = MaskMatcher.from_pretrained(tiny("bert"), EXAMPLES, prompt="{text} {mask} or {mask}")
        with pytest.raises(MaskMatchError, match="same number of masks"):
            two.predict(TEXTS)
        mean = MaskMatcher.from_pretrained(tiny("bert"), EXAMPLES, method="semantic-matching")
        assert set(mean.predict(TEXTS)) <= set(LABELS)


class TestTrainingTexts:
    """After training, label vectors lie between what is read of their names and where their training texts lie."""

    @pytest.fixture
    def trained(self, tiny: Callable[[str], Path]) -> MaskMatcher:
        return MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, TRUTH, **A_LITTLE)

    @pytest.fixture
    def by_name(self, tiny: Callable[[str], Path]) -> MaskMatcher:
        return MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, TRUTH, **A_LITTLE, example_share=0)

    def test_label_vectors_move_towards_them(self, trained: MaskMatcher, by_name: MaskMatcher) -> None:
        texts = trained.text_states(TEXTS)
        assert np.allclose(texts, by_name.text_states(TEXTS), atol=1e-5)  # the weights are the same
        for place, label in enumerate(trained.labels):
            own = texts[[truth == label for truth in TRUTH]][:, 0]
            centre = (own / np.linalg.norm(own, axis=1, keepdims=True)).sum(axis=0)
            moved, name = (_label_vectors(each)[place] for each in (trained, by_name))
            assert _cosine(moved, centre) > _cosine(name, centre)
            assert _cosine(moved, name) > 0

    def test_their_number_a_label_decides_on_the_steps(self, tiny: Callable[[str], Path]) -> None:
        texts, truth = [*TEXTS[:8]] * 4, [*TRUTH[:8]] * 4  # of two labels; the third has none
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(texts, truth, batch_size=32)
        assert matcher.training_ is not None
        assert len(set(truth)) == 2
        assert matcher.training_.steps == 50  # the most epochs, of one step each: 40 * 16 / 10 would be more

    def test_a_share_of_nothing_is_the_name_alone(self, by_name: MaskMatcher) -> None:
        assert np.allclose(_label_vectors(by_name), by_name.phrase_states(LABELS)[:, 0], atol=1e-5)

    def test_they_outlive_saving_and_their_texts_are_not_saved(self, trained: MaskMatcher, tmp_path: Path) -> None:
        folder = trained.save_pretrained(tmp_path / "m")
        loaded = MaskMatcher.from_pretrained(folder)
        assert np.allclose(loaded.predict_proba(TEXTS), trained.predict_proba(TEXTS), atol=1e-6)
        written = (folder / "maskmatch.json").read_text(encoding="utf-8")
        assert not any(text in written for text in TEXTS)

    def test_renaming_keeps_them_and_removing_drops_them(self, trained: MaskMatcher) -> None:
        before = trained.bank.centroids
        trained.rename_label(LABELS[0], "something else")
        after = trained.bank.centroids
        assert after.ids == ("something else", *before.ids[1:])
        torch.testing.assert_close(after.vectors, before.vectors)
        trained.remove_labels(["something else"])
        assert set(trained.bank.centroids.ids) == set(LABELS[1:])
        trained.add_labels(["something else"])
        assert "something else" not in trained.bank.centroids.ids
        assert set(trained.predict(TEXTS)) <= set(trained.labels)

    def test_other_labels_under_old_ids_do_not_inherit_them(self, trained: MaskMatcher, tmp_path: Path) -> None:
        folder = trained.save_pretrained(tmp_path / "m")
        other = MaskMatcher.from_pretrained(folder, labels={LABELS[0]: "", LABELS[1]: ""})
        assert set(other.bank.centroids.ids) == set(LABELS[:2])
        renamed = [Label(LABELS[0], name="weather"), Label(LABELS[1])]
        assert MaskMatcher.from_pretrained(folder, labels=renamed).bank.centroids.ids == (LABELS[1],)
        assert trained.bank.centroids_of(LabelSet.of(renamed)).ids == (LABELS[1],)

    def test_examples_given_later_count_beside_them(self, trained: MaskMatcher, tmp_path: Path) -> None:
        folder = trained.save_pretrained(tmp_path / "m")
        labels = LabelSet.of([Label(LABELS[0], examples=(TEXTS[-1],)), *LABELS[1:]])
        with_example = MaskMatcher.from_pretrained(folder, labels=labels)
        own = with_example.text_states([TEXTS[-1]])[0, 0]
        moved, before = (_label_vectors(each)[0] for each in (with_example, trained))
        assert _cosine(moved, own) > _cosine(before, own)

    def test_a_refused_training_leaves_them(self, trained: MaskMatcher) -> None:
        before = trained.predict_proba(TEXTS)
        with pytest.raises(MaskMatchError):
            trained.fit(TEXTS, TRUTH, arguments={"no_such_argument": 1})
        assert np.allclose(trained.predict_proba(TEXTS), before)

    def test_another_prompt_does_without_them(
        self, trained: MaskMatcher, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        folder = trained.save_pretrained(tmp_path / "m")
        assert len(MaskMatcher.from_pretrained(folder, search="exact").bank.centroids) == len(LABELS)
        for changed in ({"prompt": "{text} So {mask}."}, {"multi_label": True}):
            caplog.clear()
            assert not len(MaskMatcher.from_pretrained(folder, **changed).bank.centroids)
            assert "centroids of training texts cannot be used" in caplog.text

    def test_weights_changed_by_hand_do_without_them(
        self, trained: MaskMatcher, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        folder = trained.save_pretrained(tmp_path / "m")
        weights = load_file(folder / "model.safetensors")
        save_file({name: tensor * 1.01 for name, tensor in weights.items()}, folder / "model.safetensors")
        assert not len(MaskMatcher.from_pretrained(folder, verify=False).bank.centroids)
        assert "changed by hand" in caplog.text

    def test_dev_data_decides_whether_they_are_used(
        self, tiny: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dev = (TEXTS, TRUTH)
        helped = MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, TRUTH, dev=dev, **A_LITTLE)
        plain = MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(
            TEXTS, TRUTH, dev=dev, **A_LITTLE, example_share=0
        )
        assert helped.training_ is not None
        assert plain.training_ is not None
        assert helped.training_.dev["score"] >= plain.training_.dev["score"]
        assert helped.training_.dev["score"] == pytest.approx(helped.evaluate(TEXTS, TRUTH).accuracy)
        # Centroids that point away from the texts do harm on dev, and are dropped.
        found = Centroids.of
        monkeypatch.setattr(
            Centroids, "of", lambda ids, vectors, owners, *_: found(ids, -vectors, owners, [1.0] * len(ids))
        )
        harmed = MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, TRUTH, dev=dev, **A_LITTLE)
        assert not len(harmed.bank.centroids)
        assert harmed.training_ is not None
        assert harmed.training_.config["example_share"] == 0

    def test_where_they_cannot_move_labels(self, tiny: Callable[[str], Path]) -> None:
        fine = MaskMatcher.from_pretrained(tiny("bert"), LABELS, method="fine-tuning")
        with pytest.raises(MaskMatchError, match="example_share needs a method"):
            fine.fit(TEXTS, TRUTH, **A_LITTLE, example_share=0.5)
        assert not len(fine.fit(TEXTS, TRUTH, **A_LITTLE).bank.centroids)
        several = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        assert not len(several.fit(TEXTS, [[label] for label in TRUTH], **A_LITTLE).bank.centroids)
        masks = MaskMatcher.from_pretrained(tiny("bert"), LABELS, prompt="{text} {mask} or {mask}")
        assert not len(masks.fit(TEXTS, TRUTH, **A_LITTLE).bank.centroids)


def _label_vectors(matcher: MaskMatcher) -> np.ndarray:
    assert matcher.labels is not None
    return matcher.bank.vectors()[:, 0]


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
