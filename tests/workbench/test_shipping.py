"""What leaves a project: predictions, marks, labels, the classifier, a report, and commands that repeat it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from maskmatch import ExportedMatcher, MaskMatcher, MaskMatchError
from maskmatch.data import read_rows
from maskmatch.labels.files import load_labels
from maskmatch.workbench import shipping
from maskmatch.workbench.records import Mark
from toy_data import LABELS, TRUTH
from workbench_tools import ROWS, WHO, keys_of, mark_all

if TYPE_CHECKING:
    from cli_tools import Run
    from maskmatch.workbench.project import Project


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_what_is_shipped(project: Project, ending: str) -> None:
    mark_all(project, range(2))
    path = shipping.save_predictions(project, project.folder / f"predictions.{ending}")
    rows = [row.fields for row in read_rows(path)]
    found = project.engine.predictions(project.labels)
    names = project.labels.names
    assert [str(row["id"]) for row in rows] == [str(row["id"]) for row in ROWS]
    assert [row["label"] for row in rows] == [names[key] for key in found.keys.tolist()]
    assert [row["mark"] or None for row in rows[:3]] == [TRUTH[0], TRUTH[1], None]
    labels = load_labels(shipping.save_labels(project, project.folder / "labels.json"))
    assert list(labels) == LABELS
    if ending == "csv":
        folder = shipping.save_classifier(project, project.folder / "int8", int8=True)
        assert list(ExportedMatcher.from_pretrained(folder, verbose=False).labels or ()) == LABELS


def test_no_column_is_overwritten(project: Project) -> None:
    project.import_rows([{"text": "shipped before", "label": "own", "predicted_label": "also own"}])
    project.engine.wait(60)
    *_, last = read_rows(shipping.save_predictions(project, project.folder / "predictions.csv"))
    assert (last.fields["label"], last.fields["predicted_label"]) == ("own", "also own")
    assert last.fields["predicted_predicted_label"] in LABELS


def test_the_commands_repeat_what_the_project_has_come_to(project: Project, run: Run) -> None:
    folder = project.folder / "shipped"
    with pytest.raises(MaskMatchError, match="No text that was drawn at random is marked yet"):
        shipping.save_test_rows(project, folder / "test.csv")
    mark_all(project, range(24))
    keys = keys_of(project)
    drawn = [text for text in project.store.drawn() if text >= 24][:8]
    project.store.mark([Mark(t, WHO, (keys[TRUTH[t % len(TRUTH)]],), "random") for t in drawn], "marked", who=WHO)
    project.train(WHO).wait()
    (done,) = project.store.runs()
    project.choose(done["id"])
    project.engine.wait(60)
    shipping.save_labels(project, folder / "labels.json")
    training = [row.fields for row in read_rows(shipping.save_training_rows(project, folder / "training.csv"))]
    test = [row.fields for row in read_rows(shipping.save_test_rows(project, folder / "test.csv"))]
    assert len(training) == done["figures"]["marks"]
    assert not {str(row["text"]) for row in training} & {str(row["text"]) for row in test}
    found = shipping.report(project)
    assert found.rows == len(test)
    page = shipping.save_report(project, folder / "report")
    assert "1: trained on marks" in page.read_text("utf-8")
    titles, commands = zip(*shipping.commands(project, folder), strict=True)
    assert titles == ("Train it again", "Measure its accuracy", "Classify other texts", "Serve it over HTTP")
    shipping.save_classifier(project, folder / "classifier")
    train, judge = (run(*shlex.split(command)[1:]) for command in commands[:2])
    assert (train.code, judge.code) == (0, 0), train.err + judge.err
    again = MaskMatcher.from_pretrained(folder / "classifier-again", verbose=False)
    shipped = MaskMatcher.from_pretrained(folder / "classifier", verbose=False)
    texts = [str(row["text"]) for row in ROWS]
    assert again.predict(texts) == shipped.predict(texts)
    assert f"{found.accuracy:.3f}" in judge.out
