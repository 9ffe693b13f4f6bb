"""What helps people to judge: effects of edits, the estimate of the accuracy, the map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from maskmatch import MaskMatcher, MaskMatchError
from maskmatch.workbench import edits, shipping
from maskmatch.workbench.browse import Filter, find, shown
from maskmatch.workbench.engine import NONE
from maskmatch.workbench.learning import ENOUGH_TO_JUDGE
from maskmatch.workbench.project import Project
from maskmatch.workbench.queue import estimate, suggest
from maskmatch.workbench.records import Mark
from maskmatch.workbench.store import Store
from workbench_tools import BOTH, WHO, keys_of, mark_all

if TYPE_CHECKING:
    from pathlib import Path


def test_an_edit_shows_what_the_label_check_says_and_which_confusions_change(project: Project) -> None:
    labels, keys = project.labels, keys_of(project)
    generic = edits.change(labels, keys["refund"], name="other")
    found = project.engine.preview(labels, generic.labels, {})
    assert found.findings == ('"other" names no content, so no text is near it.',)
    assert found.confusions == {}
    same = edits.move(labels, keys["refund"], 1)
    assert project.engine.preview(labels, same.labels, {}).findings == (), "no name has changed"
    before = project.engine.predictions(labels).keys
    after = project.engine.predictions(generic.labels).keys
    truth = dict.fromkeys(range(120), keys["refund"])
    changed = project.engine.preview(labels, generic.labels, truth).confusions
    wrong = [key for key in keys.values() if key != keys["refund"]]
    expected = {
        (keys["refund"], key): (int((before == key).sum()), int((after == key).sum()))
        for key in wrong
        if (before == key).sum() != (after == key).sum()
    }
    assert expected
    assert changed == expected


def test_accuracy_is_estimated_on_a_random_sample_that_was_not_learnt_from(project: Project) -> None:
    order = project.store.drawn()
    right = project.engine.predictions(project.labels).keys

    def mark(texts: list[int], reason: str) -> None:
        project.store.mark([Mark(text, WHO, (int(right[text]),), reason) for text in texts], "marked", who=WHO)

    mark([order[1], order[50]], "chosen")
    assert estimate(project) is None, "nothing was drawn"
    mark([order[0], order[2]], "random")
    found = estimate(project)
    assert found is not None
    assert found.count == 3, "the text between two that were drawn belongs to the sample"
    run = project.store.start_run("train", WHO)
    project.store.finish_run(run, "done", {"texts": [order[0]]}, "run-1")
    project.store.set("run", run)
    found = estimate(project)
    assert found is not None
    assert found.count == 2, "less the text that it was trained on"


def test_while_texts_are_encoded_the_sample_is_of_all_texts(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    order = project.store.drawn()
    monkeypatch.setattr(project.engine, "_count", 5)
    monkeypatch.setattr(project.engine, "_cached", (None, NONE))
    marked = []
    while len(marked) < 30:
        found = suggest(project, WHO)
        assert found is not None
        if found.reason == "random":
            marked.append(found.text)
        project.store.mark([Mark(found.text, WHO, (), found.reason)], "marked", who=WHO)
    assert marked == [text for text in order if text in marked]
    assert set(order[:25]) <= set(marked) | set(range(5))


def test_equal_accuracy_is_not_worse_and_texts_need_not_be_encoded(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark_all(project, range(30), reason="random")
    held = sorted(project.held_back())
    assert len(held) >= ENOUGH_TO_JUDGE
    keys = project.engine.predictions(project.labels).keys[held]
    names = list(project.labels.names)
    wrong = {text: names[names.index(int(key)) - 1] for text, key in zip(held[:4], keys[:4], strict=True)}
    marks = {**{text: int(key) for text, key in zip(held, keys, strict=True)}, **wrong}
    project.store.mark([Mark(text, WHO, (key,), "random") for text, key in marks.items()], "marked", who=WHO)
    monkeypatch.setattr(MaskMatcher, "fit", lambda self, *_, **__: self)  # the same classifier again
    monkeypatch.setattr(project.engine, "_count", 5)
    monkeypatch.setattr(project.engine, "_cached", (None, NONE))
    project.train(WHO).wait()
    (run,) = project.store.runs()
    right = round((len(held) - 4) / len(held), 4)
    assert run["figures"]["accuracy"] == run["figures"]["accuracy before"] == right, run
    assert run["figures"]["better"]


def test_texts_and_labels_on_the_map(project: Project) -> None:
    found = project.map()
    assert found is not None
    texts, layout = found
    assert sorted(texts) == list(range(120))
    assert layout.places["pca"].shape == (120, 2)
    spread = layout.places["pca"].var(axis=0)
    assert spread[0] >= spread[1]
    layout.wait(120)
    assert layout.ready, "UMAP is installed for tests"
    assert layout.places["umap"].shape == (120, 2)
    again = project.map()
    assert again is not None
    assert again[1] is layout
    project.import_rows([{"text": "one more"}])
    project.engine.wait(60)
    more = project.map()
    assert more is not None
    assert len(more[0]) == 121
    more[1].stop()
    assert more[1].failed


def test_names_that_are_taken_are_refused(project: Project) -> None:
    labels, keys = project.labels, keys_of(project)
    with pytest.raises(MaskMatchError, match=r"(?i)another label is already called “card lost”"):
        edits.change(labels, keys["refund"], name="Card lost")
    with pytest.raises(MaskMatchError, match="“card lost” is the name of another label"):
        edits.change(labels, keys["refund"], name="refund", phrases=("card lost",))


def test_search_finds_other_columns(project: Project) -> None:
    rows = [{"ticket": "T-77", "text": "is it open on monday"}, {"ticket": "T-78", "text": "when do you open"}]
    project.import_rows(rows)
    assert find(project, Filter(words="t-77")).tolist() == [120]
    assert shown(project, [120])[0].others == {"ticket": "T-77"}


@BOTH
def test_a_label_of_chosen_texts_is_one_change(project: Project) -> None:
    labels, store = project.labels, project.store
    edit = edits.add(labels, store.new_key(), name="parcel")
    key = edit.labels.labels[-1].key
    marks = [Mark(text, WHO, (key,), "circled") for text in range(3)]
    store.set_labels(edit.labels.labels, edit.what, who=WHO, expected=labels.version, marks=marks)
    assert [mark.text for mark in store.marks()] == [0, 1, 2]
    undone = store.undo(WHO, "labels")
    assert undone is not None
    assert store.marks() == []
    assert project.labels.labels == labels.labels


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_a_database_on_a_server_has_one_workbench(project: Project, database: str) -> None:
    with pytest.raises(MaskMatchError, match="This database is open in another workbench; close that first"):
        Store(database)
    project.close()
    Store(database).close()


def test_an_export_cannot_be_the_model(project: Project, tmp_path: Path) -> None:
    folder = shipping.save_classifier(project, tmp_path / "int8", int8=True)
    with pytest.raises(MaskMatchError, match="is an export, which cannot be trained; give the classifier"):
        Project(tmp_path / "other", model=str(folder))
