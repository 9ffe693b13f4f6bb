"""What leaves a project: predictions, marks, labels, the classifier, a report, and the commands that repeat it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from maskmatch.config.tasks import find_task
from maskmatch.data.tables import write_table
from maskmatch.errors import MaskMatchError
from maskmatch.evaluation import evaluate_predictions
from maskmatch.labels.files import save_labels as write_labels
from maskmatch.workbench.browse import other_columns
from maskmatch.workbench.project import NAMES_ALONE, described
from maskmatch.workbench.queue import judging_marks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from maskmatch.evaluation import EvaluationReport
    from maskmatch.labels import LabelSet
    from maskmatch.workbench.project import Project

NEW, AGAIN = "new-texts.csv", "classifier-again"
COLUMNS = ("label", "probability", "mark", "who")
TRAINING, TEST, LABELS, CLASSIFIER = "training.csv", "test.csv", "labels.json", "classifier"


def save_predictions(project: Project, path: Path) -> Path:
    """Write all texts with their columns, predictions and marks; the ending of the file says the format."""
    labels = project.labels
    project.engine.wait()
    predictions = project.engine.predictions(labels)
    if len(predictions) < project.store.count:
        raise MaskMatchError("The texts are still being encoded; wait until all have predictions.")
    names = {label.key: label.outside().id for label in labels.labels}
    marks = {mark.text: mark for mark in project.store.marks()}
    columns: dict[str, None] = {}
    for part in project.store.all_rows():
        for _, row in part:
            columns.update(dict.fromkeys(row))
    prefix, taken = "", set(map(str.casefold, columns))
    while any(f"{prefix}{name}" in taken for name in COLUMNS):
        prefix += "predicted_"

    def rows() -> Iterator[dict[str, Any]]:
        number = 0
        for part in project.store.all_rows():
            for _, row in part[: max(0, len(predictions) - number)]:  # texts may have been added since
                mark = marks.get(number)
                cells = {
                    "label": names[int(predictions.keys[number])],
                    "probability": round(float(predictions.probabilities[number]), 6),
                    "mark": None if mark is None else "|".join(str(names[key]) for key in mark.labels),
                    "who": None if mark is None else mark.who,
                }
                yield {**row, **{f"{prefix}{name}": cell for name, cell in cells.items()}}
                number += 1

    return write_table(path, [*columns, *(f"{prefix}{name}" for name in COLUMNS)], rows())


def save_training_rows(project: Project, path: Path) -> Path:
    """Write the marked texts that training uses: those of one label that are not held back."""
    held = project.held_back()
    return _save_rows(project, path, {text: key for text, key in project.truth().items() if text not in held})


def save_test_rows(project: Project, path: Path) -> Path:
    """Write the marked texts that judge the classifier: a random sample that it has not learnt from."""
    return _save_rows(project, path, _judging(project))


def report(project: Project) -> EvaluationReport:
    """How good the predictions are on the marks of a random sample that the classifier has not learnt from."""
    labels, truth = project.labels, _judging(project)
    rows = list(truth)
    predictions = project.engine.predictions(labels)
    return evaluate_predictions(
        project.store.texts(rows),
        [labels.names[key] for key in truth.values()],
        [labels.names[key] for key in predictions.keys[rows].tolist()],
        labels=list(labels.names.values()),
        confidence=predictions.probabilities[rows],
        model=described(project.run, project.kind),
        data="marks of a random sample",
        usual_metric=find_task(project.task).metric,
    )


def save_report(project: Project, folder: Path) -> Path:
    """Write the report; returns its page."""
    report(project).save(folder)
    return folder / "report.html"


def save_labels(project: Project, path: Path) -> Path:
    """Write the labels to a label file."""
    return write_labels(project.labels.outside(), path)


def save_classifier(project: Project, folder: Path, *, int8: bool = False) -> Path:
    """Save the classifier that predicts, with the labels as they are now; as an int8 export, if asked for."""
    from maskmatch import MaskMatcher, export

    labels, run = project.labels, project.run
    if run == NAMES_ALONE:
        matcher = MaskMatcher.from_pretrained(project.model, labels.outside(), task=project.task, verbose=False)
    else:
        matcher = MaskMatcher.from_pretrained(str(project.folder_of(run)), verbose=False)
        matcher.edit_labels(**edits_to(matcher.bank.known_labels, labels.inside()))
        matcher.edit_labels(rename={label.key: label.outside() for label in labels.labels})
    if int8:
        export(matcher, folder, int8=True)
        return folder
    return matcher.save_pretrained(folder)


def commands(project: Project, folder: Path) -> list[tuple[str, str]]:
    """The commands that repeat what the project has come to, each with what it does; they read files of a folder."""

    def quoted(name: str) -> str:
        return shlex.quote(str(folder / name))

    options = f"--labels {quoted(LABELS)} --task {project.task}"
    if project.model is not None:
        options = f"--model {shlex.quote(project.model)} {options}"
    found = []
    if project.kind == "names":
        found.append(("Classify texts by the labels", f"maskmatch classify {NEW} {options} -o predictions.csv"))
    elif project.kind == "adapt":
        adapt = f"maskmatch classify {NEW} {options} --adapt -o predictions.csv"
        found.append(("Learn from unmarked texts, and classify them", adapt))
    else:
        found.append(("Train it again", f"maskmatch train {quoted(TRAINING)} {options} -o {quoted(AGAIN)}"))
    classifier = quoted(CLASSIFIER)
    return [
        *found,
        ("Measure its accuracy", f"maskmatch evaluate {classifier} {quoted(TEST)}"),
        ("Classify other texts", f"maskmatch predict {classifier} {NEW} -o predictions.csv"),
        ("Serve it over HTTP", f"maskmatch serve {quoted(f'{CLASSIFIER}-int8')}"),
    ]


def edits_to(own: LabelSet, wanted: LabelSet) -> dict[str, Any]:
    """The edits that make one label set of another; labels with the same id are the same."""
    return {
        "add": [label for label in wanted.labels if label.id not in own] or None,
        "remove": [id_ for id_ in own if id_ not in wanted],
        "change": [label for label in wanted.labels if label.id in own and label != own.label(label.id)] or None,
    }


def _judging(project: Project) -> dict[int, int]:
    """The label of each text of the random sample that the classifier has not learnt from."""
    found = {mark.text: mark.labels[0] for mark in judging_marks(project) if len(mark.labels) == 1}
    if not found:
        raise MaskMatchError("No text that was drawn at random is marked yet; mark some on the page Mark.")
    return found


def _save_rows(project: Project, path: Path, truth: dict[int, int]) -> Path:
    """Write texts with their labels."""
    if not truth:
        raise MaskMatchError("No text is marked with one label yet; mark some on the page Mark.")
    names = {label.key: label.outside().id for label in project.labels.labels}
    rows, field = [], find_task(project.task).fields[0]
    for text, (content, columns) in zip(truth, project.store.rows(list(truth)), strict=True):
        fields = content if isinstance(content, dict) else {field: content}
        kept = {name: value for name, value in other_columns(content, columns).items() if name.casefold() != "label"}
        rows.append({**kept, **fields, "label": names[truth[text]]})
    columns = dict.fromkeys(name for row in rows for name in row)
    return write_table(path, [*(name for name in columns if name != "label"), "label"], rows)
