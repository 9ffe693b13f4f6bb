"""The demo: zero-shot, adapt, train, evaluate, add a label and save, on help-desk questions of this project."""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any, Literal

from maskmatch.data import Examples, load_examples
from maskmatch.errors import MaskMatchError
from maskmatch.labels import LabelSet
from maskmatch.matcher import MaskMatcher
from maskmatch.storage.layout import check_target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from maskmatch.evaluation import EvaluationReport

    Log = Callable[[str], Any]

NEW_LABEL = {
    "gift vouchers": "The customer wants to buy, send, redeem or check a gift voucher, or to give bike hire "
    "to somebody as a present."
}

Part = Literal["train", "test", "new_label"]


def demo_rows(part: Part) -> Examples:
    """Load the questions to an invented bicycle rental and repair chain, with their intents."""
    with as_file(files("maskmatch.demo") / f"{part}.jsonl") as path:
        return load_examples(path)


def questions() -> tuple[list[dict[str, Any]], LabelSet]:
    """All questions without their intents, and the intents, for the workbench."""
    train, test = demo_rows("train"), demo_rows("test")
    rows = [{"text": text} for text in (*train.texts, *test.texts)]
    return rows, LabelSet.of(sorted(set(train.labels or ())))


@dataclass(frozen=True)
class DemoResult:
    """The result of the demo.

    Attributes:
        zero_shot: The test accuracy with label names alone.
        adapted: The test accuracy after adapting to all questions without their labels, before training.
        trained: The test accuracy after training.
        new_label: The share of questions about the added label that are classified correctly, without training.
        seconds: The duration of the demo.
        model: The folder of the saved classifier.
        report: The web page of the evaluation report.
    """

    zero_shot: float
    adapted: float
    trained: float
    new_label: float
    seconds: float
    model: str
    report: str


def run_demo(folder: Path, seed: int = 0, log: Log = print) -> DemoResult:
    """Classify by label names only, adapt to unlabelled questions, train, evaluate, add a label, and save.

    Args:
        folder: The folder for the model, the report and the data.
        seed: The seed of the training.
        log: Receives each line of progress.
    """
    started = time.perf_counter()
    model, page = folder / "model", folder / "report"
    _check_folder(folder)  # fail before the work, not after it
    check_target(model)
    train, test = demo_rows("train"), demo_rows("test")
    assert train.labels is not None
    names = list(dict.fromkeys(train.labels))
    matcher = MaskMatcher.from_pretrained(labels=names, task="intent")
    log(f"Help-desk questions with {len(names)} intents; the encoder is {matcher.encoder.source}.\n")

    zero_shot = matcher.evaluate(test.texts, test.labels).accuracy
    log(f"1. Label names only, no training: {zero_shot:.0%} accuracy on {len(test)} test questions.")
    adapted = _adapt(matcher, train, test, log)
    report = _train(matcher, train, test, seed, log)
    new_label = _add_label(matcher, log)

    matcher.save_pretrained(model)
    report.save(page)
    data = _copy_rows(folder / "data")
    log(f"5. Saved: the classifier in {model}, the report in {page / 'report.html'}, the questions in {data}.")
    log(f'\nNext:  maskmatch predict {model} --text "Can I bring the bike back tomorrow instead?"')
    seconds = round(time.perf_counter() - started, 1)
    return DemoResult(zero_shot, adapted, report.accuracy, new_label, seconds, str(model), str(page / "report.html"))


def _adapt(matcher: MaskMatcher, train: Examples, test: Examples, log: Log) -> float:
    """Adapt to all questions, without their labels; return the test accuracy."""
    questions = [*train.texts, *test.texts]
    accuracy = matcher.adapt(questions).evaluate(test.texts, test.labels).accuracy
    assert matcher.adaptation_ is not None
    did = "Adapted" if matcher.adaptation_.adapted else "Not adapted"
    log(f"2. {did} to all {len(questions)} questions, without their labels, no training: {accuracy:.0%} accuracy.")
    return accuracy


def _train(matcher: MaskMatcher, train: Examples, test: Examples, seed: int, log: Log) -> EvaluationReport:
    """Train and evaluate; return the report."""
    assert train.labels is not None
    log(f"3. Training on {len(train)} questions, {len(train) // len(set(train.labels))} per intent …")
    matcher.fit(train.texts, train.labels, seed=seed)
    report = matcher.evaluate(test.texts, test.labels, data="the demo's test questions")
    assert matcher.training_ is not None
    log(f"   After {matcher.training_.seconds:.0f} s of training: {report.accuracy:.0%} accuracy.")
    question = test.texts[0]
    log(f"   For example: {question}")
    for label, probability in matcher.top_k([question], 3)[0]:
        log(f"      {probability:5.1%}  {label}")
    return report


def _add_label(matcher: MaskMatcher, log: Log) -> float:
    """Add a label by name and description; return the accuracy on questions about it."""
    questions = demo_rows("new_label").texts
    name = next(iter(NEW_LABEL))
    matcher.add_labels(NEW_LABEL)
    correct = matcher.predict(questions).count(name)
    log(f"4. A new label, {name!r}, added by name and description, without training:")
    log(f"   {correct} of {len(questions)} questions about it are classified correctly, for example: {questions[0]}")
    return correct / len(questions)


def _check_folder(folder: Path) -> None:
    """Raise if the folder has files that are not from an earlier demo."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "model" / "maskmatch.json").is_file():
        raise MaskMatchError(f"{folder} has other files in it; choose an empty folder for the demo.")


def _copy_rows(folder: Path) -> Path:
    """Copy the questions into a folder, so that the user can read them and train on them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train.jsonl", "test.jsonl", "new_label.jsonl"):
        scratch = folder / f".{name}.writing"
        scratch.write_bytes((files("maskmatch.demo") / name).read_bytes())
        scratch.replace(folder / name)
    return folder
