"""Projects: what is in the database, what an edit changes, undo, training, and what leaves the project."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partialmethod
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from maskmatch import MaskMatcher, MaskMatchError
from maskmatch.labels import Label, LabelSet
from maskmatch.workbench import clusters, edits, shipping
from maskmatch.workbench.browse import Filter, find, shown
from maskmatch.workbench.clusters import uncovered
from maskmatch.workbench.curve import learning_curve
from maskmatch.workbench.learning import ENOUGH_TO_JUDGE, HELD_BACK
from maskmatch.workbench.project import Project
from maskmatch.workbench.queue import estimate, random_marks, similar_marked, suggest
from maskmatch.workbench.records import ChangedMeanwhileError, Mark, Undone
from toy_data import A_LITTLE, LABELS, TEXTS, TRUTH
from workbench_tools import BOTH, ROWS, WHO, keys_of, mark_all

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Tiny = Callable[[str], Path]


@BOTH
def test_predictions_are_those_of_the_classifier(project: Project, tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)
    expected = matcher.top_k([row["text"] for row in ROWS], 2)
    found = project.engine.predictions(project.labels)
    names = project.labels.names
    assert [names[key] for key in found.keys.tolist()] == [pairs[0][0] for pairs in expected]
    np.testing.assert_allclose(found.probabilities, [pairs[0][1] for pairs in expected], atol=1e-5)
    np.testing.assert_allclose(found.margins, [one[1] - two[1] for one, two in expected], atol=1e-5)


@BOTH
def test_a_preview_says_what_keeping_does(project: Project) -> None:
    labels, keys = project.labels, keys_of(project)
    before = project.engine.predictions(labels).keys
    mark_all(project, range(12))
    edit = edits.change(labels, keys["refund"], name="the parcel", description="about parcels")
    effect = project.engine.preview(labels, edit.labels, project.truth())
    assert project.labels == labels, "nothing is changed yet"
    project.store.set_labels(edit.labels.labels, edit.what, who=WHO, expected=labels.version)
    after = project.engine.predictions(project.labels).keys
    assert effect.changed == int((before != after).sum())
    assert {pair: texts.tolist() for pair, texts in effect.moves.items()} == {
        (old, new): np.flatnonzero((before == old) & (after == new)).tolist()
        for old in set(before.tolist())
        for new in set(after.tolist())
        if old != new and ((before == old) & (after == new)).any()
    }
    truth = project.truth()
    rows = np.array(list(truth))
    assert effect.right == (
        int((before[rows] == list(truth.values())).sum()),
        int((after[rows] == list(truth.values())).sum()),
        12,
    )


@BOTH
def test_undo_goes_back_step_by_step(project: Project) -> None:
    store, keys = project.store, keys_of(project)
    first = project.labels
    mark_all(project, range(3))
    edit = edits.merge(first, keys["refund"], keys["card lost"])
    store.set_labels(edit.labels.labels, edit.what, who=WHO, expected=first.version, moved=edit.moved)
    assert [label.name for label in project.labels.labels] == [name for name in LABELS if name != "refund"]
    assert project.labels.find(keys["card lost"]).phrases == ("refund",)
    assert {mark.labels for mark in store.marks() if TRUTH[mark.text] == "refund"} == {(keys["card lost"],)}
    second = project.labels
    removed = edits.add(second, store.new_key(), name="something else")
    store.set_labels(removed.labels.labels, removed.what, who=WHO, expected=second.version)
    assert store.undo(WHO, "labels") == Undone("added “something else”", ())
    assert project.labels.labels == second.labels
    undone = store.undo(WHO, "labels")
    assert undone is not None
    assert undone.what == "merged “refund” into “card lost”"
    assert project.labels.labels == first.labels
    assert {mark.labels for mark in store.marks() if TRUTH[mark.text] == "refund"} == {(keys["refund"],)}
    undone = store.undo(WHO, "marks")
    assert undone is not None
    assert [mark.text for mark in undone.marks] == [0, 1, 2]
    assert store.marks() == []
    assert store.undo(WHO, "labels") is None
    assert store.undo(WHO, "marks") is None
    assert [change.undone for change in store.changes("labels")] == [True, True, False]
    assert [change.undone for change in store.changes("marks")] == [True]


@BOTH
def test_undo_leaves_what_others_did_since(project: Project) -> None:
    store, labels = project.store, project.labels
    one, two, three = keys_of(project).values()
    store.mark([Mark(0, "bob", (one,))], "marked", who="bob")
    edit = edits.merge(labels, one, two)
    store.set_labels(edit.labels.labels, edit.what, who="ada", expected=labels.version, moved=edit.moved)
    store.mark([Mark(0, "bob", (three,))], "marked", who="bob")
    assert store.undo("ada", "labels") == Undone(edit.what, ())
    assert [mark.labels for mark in store.marks()] == [(three,)], "bob has marked it again since"
    assert store.undo("bob", "marks") is not None
    assert store.undo("bob", "marks") is not None
    assert store.marks() == []


@BOTH
def test_undo_brings_back_no_label_that_is_gone(project: Project) -> None:
    store, labels = project.store, project.labels
    one, two, three = keys_of(project).values()
    store.mark([Mark(0, "ada", (two,)), Mark(1, "ada", (two, three)), Mark(2, "ada", ())], "marked", who="ada")
    store.mark([Mark(text, "ada", (one,)) for text in range(3)], "marked", who="ada")
    edit = edits.remove(labels, two)
    store.set_labels(edit.labels.labels, edit.what, who="bob", expected=labels.version)
    assert store.undo("ada", "marks") is not None
    assert {mark.text: mark.labels for mark in store.marks()} == {1: (three,), 2: ()}


@BOTH
def test_two_people(project: Project) -> None:
    store, labels, keys = project.store, project.labels, keys_of(project)
    mine = edits.remove(labels, keys["refund"])
    store.set_labels(mine.labels.labels, mine.what, who="ada", expected=labels.version)
    theirs = edits.change(labels, keys["refund"], name="money back")
    with pytest.raises(ChangedMeanwhileError, match="Somebody has changed the labels meanwhile"):
        store.set_labels(theirs.labels.labels, theirs.what, who="bob", expected=labels.version)
    with pytest.raises(ChangedMeanwhileError, match="no longer there"):
        store.mark([Mark(0, "bob", (keys["refund"],))], "marked", who="bob")
    now = project.labels
    other = edits.move(now, now.labels[0].key, 1)
    store.set_labels(other.labels.labels, other.what, who="bob", expected=now.version)
    with pytest.raises(ChangedMeanwhileError, match="so this cannot be undone"):
        store.undo("ada", "labels")
    left = now.labels[0].key
    store.mark([Mark(0, "ada", (left,)), Mark(1, "ada", (left,))], "marked", who="ada")
    store.mark([Mark(0, "bob", ())], "marked", who="bob")
    assert find(project, Filter(marked="disagreement")).tolist() == [0]
    assert len(shown(project, [0])[0].marks) == 2
    undone = store.undo("bob", "marks")
    assert undone is not None
    assert [(mark.text, mark.who, mark.labels) for mark in undone.marks] == [(0, "bob", ())]
    assert [mark.who for mark in store.marks()] == ["ada", "ada"]


@BOTH
def test_filters(project: Project) -> None:
    predictions = project.engine.predictions(project.labels)
    key = int(predictions.keys[0])
    assert find(project, Filter()).tolist() == list(range(120))
    assert find(project, Filter(label=key)).tolist() == np.flatnonzero(predictions.keys == key).tolist()
    assert find(project, Filter(words="100%")).tolist() == []
    word = TEXTS[0].split()[0]
    expected = [row for row, each in enumerate(ROWS) if word.lower() in str(each["text"]).lower()]
    assert find(project, Filter(words=word.upper())).tolist() == expected
    least = float(np.median(predictions.probabilities))
    high = find(project, Filter(least=least)).tolist()
    assert high == np.flatnonzero(predictions.probabilities >= least).tolist()
    ordered = find(project, Filter(order="uncertain")).tolist()
    assert predictions.margins[ordered].tolist() == sorted(predictions.margins.tolist())
    far = find(project, Filter(order="novel"))
    novelty = project.engine.novelty(project.labels)
    assert novelty[far].tolist() == sorted(novelty.tolist(), reverse=True)
    mark_all(project, range(12))
    assert find(project, Filter(marked="marked")).tolist() == list(range(12))
    assert find(project, Filter(marked="unmarked")).tolist() == list(range(12, 120))
    names = project.labels.names
    wrong = [row for row in range(12) if names[int(predictions.keys[row])] != TRUTH[row]]
    assert find(project, Filter(marked="wrong")).tolist() == wrong


def test_the_queue_mixes_random_texts_with_those_that_teach_most(project: Project) -> None:
    keys = keys_of(project)
    reasons, texts = [], []
    for _ in range(20):
        found = suggest(project, WHO)
        assert found is not None
        reasons.append(found.reason)
        texts.append(found.text)
        project.store.mark(
            [Mark(found.text, WHO, (keys[TRUTH[found.text % len(TRUTH)]],), found.reason)], "marked", who=WHO
        )
    assert len(set(texts)) == 20
    assert reasons[::4] == ["random"] * 5
    assert {"uncertain", "rare"} <= set(reasons)
    drawn = [text for text, reason in zip(texts, reasons, strict=True) if reason == "random"]
    found = estimate(project)
    assert found is not None
    names, predictions = project.labels.names, project.engine.predictions(project.labels)
    right = sum(names[int(predictions.keys[text])] == TRUTH[text % len(TRUTH)] for text in drawn)
    assert (found.right, found.count) == (right, 5)
    assert found.interval.low <= found.right / found.count <= found.interval.high
    project.store.mark([Mark(row, WHO, ()) for row in range(120)], "marked", who=WHO)
    assert suggest(project, WHO) is None
    second = suggest(project, "bob")
    assert second is not None


def test_groups_of_texts_that_no_label_covers(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    assert uncovered(project) == [], "there are few texts"
    monkeypatch.setattr(clusters, "SHARE", 0.5)
    groups = uncovered(project)
    texts = [text for group in groups for text in group.texts]
    assert len(texts) == len(set(texts)) <= 60
    assert set(texts) <= set(np.argsort(-project.engine.novelty(project.labels))[:60].tolist())
    assert all(len(group.texts) >= clusters.LEAST_GROUP and group.words for group in groups)


def test_similar_marked_texts_come_first(project: Project) -> None:
    mark_all(project, range(12))
    vectors = project.engine.vectors.reshape(120, -1)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit[:12] @ unit[50]
    found = similar_marked(project, 50)
    assert [text for text, _ in found] == np.argsort(-cosines)[:3].tolist()
    np.testing.assert_allclose([cosine for _, cosine in found], np.sort(cosines)[::-1][:3], atol=1e-5)


@pytest.mark.parametrize(("name", "words"), [("", "needs a name"), ("card lost", "card lost")])
def test_wrong_edits_are_refused(project: Project, name: str, words: str) -> None:
    labels, keys = project.labels, keys_of(project)
    with pytest.raises(MaskMatchError, match=words):
        edits.change(labels, keys["refund"], name=name)
    two = replace(labels, labels=labels.labels[:2])
    with pytest.raises(MaskMatchError, match="at least two labels"):
        edits.remove(two, two.labels[0].key)
    with pytest.raises(MaskMatchError, match="into at least two"):
        edits.split(labels, keys["refund"], ["one"], [])


def test_training_is_used_if_it_is_better_and_kept_when_the_project_is_opened_again(
    project: Project, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark_all(project, range(36), reason="random")
    held = project.held_back()
    assert 36 / HELD_BACK - 8 < len(held) < 36 / HELD_BACK + 8
    training = project.train(WHO)
    with pytest.raises(MaskMatchError, match="being trained"):
        project.train(WHO)
    training.wait()
    (run,) = project.store.runs()
    assert run["state"] == "done", run
    assert run["figures"]["marks"] == 36 - len(held)
    assert run["figures"]["held back"] == len(held)
    figures = run["figures"]
    assert len(held) >= ENOUGH_TO_JUDGE
    assert figures["better"] == (figures["accuracy"] >= figures["accuracy before"])
    assert project.run == (run["id"] if figures["better"] else 0)
    project.choose(run["id"])
    project.engine.wait(60)
    found = project.engine.predictions(project.labels)
    labels, keys = project.labels, keys_of(project)
    edit = edits.change(labels, keys["refund"], name="money back")
    project.store.set_labels(edit.labels.labels, edit.what, who=WHO, expected=labels.version)
    folder = project.folder
    project.close()
    again = Project(folder, model=str(tiny("bert")))
    try:
        assert again.run == run["id"]
        assert again.engine.encoded == 120, "vectors are kept"
        assert again.labels.names[keys["refund"]] == "money back"
        assert len(again.engine.predictions(again.labels)) == len(found)
        path = shipping.save_classifier(again, folder / "saved")
        saved = MaskMatcher.from_pretrained(path, verbose=False)
        assert list(saved.bank.known_labels) == ["money back" if name == "refund" else name for name in LABELS]
        names = again.labels.names
        expected = [names[key] for key in again.engine.predictions(again.labels).keys.tolist()]
        assert saved.predict([row["text"] for row in ROWS]) == expected
    finally:
        again.close()


def test_with_few_marks_people_choose(project: Project) -> None:
    mark_all(project, range(12), reason="random")
    project.train(WHO).wait()
    (run,) = project.store.runs()
    count = run["figures"]["held back"]
    assert 0 < count < ENOUGH_TO_JUDGE
    assert "too few to choose it by itself" in run["figures"]["verdict"]
    assert "accuracy" not in run["figures"]
    assert 0 <= run["figures"]["right"] <= count
    assert project.run == 0


def test_a_classifier_that_is_gone_is_left(project: Project, tiny: Tiny) -> None:
    mark_all(project, range(12))
    project.train(WHO).wait()
    (run,) = project.store.runs()
    project.choose(run["id"])
    folder = project.folder
    project.close()
    shutil.rmtree(folder / "run-1")
    again = Project(folder, model=str(tiny("bert")))
    try:
        assert again.run == 0
        again.engine.wait(60)
        assert len(again.engine.predictions(again.labels)) == 120
    finally:
        again.close()


def test_adapting_needs_no_marks(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MaskMatcher, "adapt", partialmethod(MaskMatcher.adapt, force=True))
    project.train(WHO, "adapt").wait()
    (run,) = project.store.runs()
    assert (run["kind"], run["state"], run["figures"]["marks"]) == ("adapt", "done", 0)
    assert project.run == 0, "people choose while there are too few marks to judge it"
    project.choose(run["id"])
    project.engine.wait(60)
    assert len(project.engine.predictions(project.labels)) == 120


def test_texts_that_adapting_would_harm_are_left(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def left(self: MaskMatcher, texts: list[str]) -> None:
        self.adaptation_ = SimpleNamespace(adapted=False)  # type: ignore[assignment]

    monkeypatch.setattr(MaskMatcher, "adapt", left)
    project.train(WHO, "adapt").wait()
    (run,) = project.store.runs()
    assert run["state"] == "failed"
    assert "would probably do harm" in run["figures"]["error"]
    assert project.run == 0


def test_the_learning_curve(project: Project) -> None:
    mark_all(project, range(10))
    assert learning_curve(project) is None
    mark_all(project, range(60))
    found = learning_curve(project)
    assert found is not None
    assert found.marks == 60
    assert found.counts == sorted(found.counts)
    assert len(found.counts) == len(found.accuracies) >= 3
    assert all(0 <= each <= 1 for each in found.accuracies)
    assert 0 <= found.gain <= 1 - found.accuracies[-1] + 1e-9


def test_the_same_texts_are_added_once(project: Project, texts_file: Path) -> None:
    assert project.import_once(str(texts_file)) == 120
    assert project.import_once(str(texts_file)) is None
    assert project.import_once([{"text": "another one"}]) == 1
    assert project.store.count == 241
    order = {text: place for place, text in enumerate(project.store.drawn())}
    assert sum(order[text + 120] == order[text] + 1 for text in range(120)) < 20, "each import has its own draw"


def test_a_file_is_known_as_soon_as_its_texts_are_there(
    project: Project, texts_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project.engine, "encode_more", lambda: 1 / 0)  # stands for a kill after the texts were added
    with pytest.raises(ZeroDivisionError):
        project.import_once(str(texts_file))
    assert project.store.count == 240
    assert project.import_once(str(texts_file)) is None


@BOTH
def test_columns_of_any_kind_are_kept(project: Project) -> None:
    row = {"text": "nul\0 here", "on": date(2026, 2, 3), "price": Decimal("1.5"), "left": float("nan"), "raw": b"x"}
    assert project.import_rows([row]) == 1
    ((text, columns),) = project.store.rows([120])
    assert text == row["text"]
    assert columns == {"text": row["text"], "on": "2026-02-03", "price": "1.5", "left": None, "raw": "eA=="}
    assert find(project, Filter(words="nul here")).tolist() == [120]


def test_a_cancelled_training_leaves_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    mark_all(project, range(36))
    training = project.train(WHO)
    training.cancel()
    (run,) = project.store.runs()
    assert run["state"] == "cancelled"
    assert project.run == 0
    assert not list(project.folder.glob("run-*"))
    project.store.mark([Mark(row, WHO, ()) for row in range(36)], "marked", who=WHO)
    with pytest.raises(MaskMatchError, match="at least two labels"):
        project.train(WHO)


def test_mistakes_are_one_sentence(project: Project, tmp_path: Path, texts_file: Path) -> None:
    with pytest.raises(MaskMatchError, match="for the task topic; leave --task out"):
        Project(project.folder, task="intent")
    with pytest.raises(MaskMatchError, match="The database cannot be used"):
        Project(tmp_path / "other", database="nonsense://")
    bad = tmp_path / "bad.csv"
    bad.write_text("id,text\n1,fine\n2,\n")
    with pytest.raises(MaskMatchError, match=r"bad\.csv, line 3"):
        project.import_rows(str(bad))
    assert project.store.count == 120, "nothing of it is there"
    with pytest.raises(MaskMatchError, match="at least two labels"):
        project.start_labels(LabelSet.of(["only one"]))


def test_a_trained_classifier_predicts_as_it_does_elsewhere(tiny: Tiny, tmp_path: Path, texts_file: Path) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False).fit(TEXTS, TRUTH, **A_LITTLE)
    matcher.save_pretrained(tmp_path / "saved")
    project = Project(tmp_path / "project", model=str(tmp_path / "saved"))
    try:
        project.start_labels(LabelSet.of(LABELS))
        project.import_rows(str(texts_file))
        project.engine.wait(60)
        names = project.labels.names
        found = [names[key] for key in project.engine.predictions(project.labels).keys.tolist()]
        assert found == matcher.predict([row["text"] for row in ROWS])
    finally:
        project.close()


def test_a_rename_shows_its_effect_at_once_with_many_texts(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """100,000 texts: the engine's part of what a page waits for."""
    engine = project.engine
    many = np.random.default_rng(0).normal(size=(100_000, *engine.vectors.shape[1:])).astype(np.float32)
    monkeypatch.setattr(engine, "_vectors", many)
    monkeypatch.setattr(engine, "_count", len(many))
    monkeypatch.setattr(engine, "_cached", (None, engine._cached[1].__class__(*(np.zeros(0),) * 4)))  # noqa: SLF001
    labels, keys = project.labels, keys_of(project)
    engine.predictions(labels)
    started = time.perf_counter()
    engine.preview(labels, edits.change(labels, keys["refund"], name="parcel").labels, {})
    assert time.perf_counter() - started < 2


def test_examples_of_labels_are_kept(tiny: Tiny, tmp_path: Path) -> None:
    given = LabelSet.of([Label(7, LABELS[0], examples=(TEXTS[5], TEXTS[6])), *LABELS[1:]])
    matcher = MaskMatcher.from_pretrained(tiny("bert"), given, verbose=False)
    project = Project(tmp_path / "project", model=str(tiny("bert")))
    try:
        project.start_labels(given)
        project.import_rows([{"text": text} for text in TEXTS])
        project.engine.wait(60)
        found = project.engine.predictions(project.labels)
        np.testing.assert_allclose(found.probabilities, matcher.predict_proba(TEXTS).max(axis=1), atol=1e-5)
        assert project.labels.outside().label(7).examples == (TEXTS[5], TEXTS[6])
    finally:
        project.close()


def test_a_name_that_is_the_id_of_another_label_is_refused(tiny: Tiny, tmp_path: Path) -> None:
    project = Project(tmp_path / "project", model=str(tiny("bert")))
    try:
        labels = project.start_labels(LabelSet.of([Label("refund", "money back"), "card lost"]))
        with pytest.raises(MaskMatchError, match="refund"):
            edits.add(labels, project.store.new_key(), name="refund")
    finally:
        project.close()


def test_the_latest_mark_decides_and_a_drawn_text_stays_in_the_sample(project: Project) -> None:
    one, two, _ = keys_of(project).values()
    drawn = project.store.drawn()[0]
    project.store.mark([Mark(drawn, "ada", (one,), "random")], "marked", who="ada")
    project.store.mark([Mark(drawn, "ada", (two,), "chosen")], "marked", who="ada")
    assert set(random_marks(project)) == {drawn}
    assert project.truth() == {drawn: two}
    project.store.mark([Mark(drawn, "bob", (), "chosen")], "marked", who="bob")
    assert project.truth() == {}, "the latest mark says that no label fits"
    assert set(random_marks(project)) == {drawn}


def test_a_classifier_that_cannot_be_loaded_is_not_chosen(project: Project) -> None:
    run = project.store.start_run("train", WHO)
    project.store.finish_run(run, "done", {}, f"run-{run}")
    engine = project.engine
    with pytest.raises(Exception, match=f"run-{run}"):
        project.choose(run)
    assert project.run == 0
    assert project.engine is engine


def test_the_model_is_remembered(project: Project) -> None:
    folder, model = project.folder, project.model
    project.close()
    again = Project(folder)
    try:
        assert again.model == model
        assert again.engine.encoded == 120
    finally:
        again.close()


def test_a_project_is_open_once(project: Project) -> None:
    code = "import sys, pathlib; from maskmatch.workbench.project import Project; Project(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(project.folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "is open in another workbench; close that first" in done.stderr
