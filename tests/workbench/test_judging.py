"""What helps people to judge: effects of edits, the estimate of the accuracy, the map."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskmatch.workbench import edits
from maskmatch.workbench.queue import estimate
from maskmatch.workbench.store import Mark
from workbench.conftest import WHO, keys_of

if TYPE_CHECKING:
    from maskmatch.workbench.project import Project


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
