"""The main job from end to end, on a help desk's questions that were written for this project."""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any, Literal

from maskmatch.classifier import MaskMatcher
from maskmatch.data import Examples, load_examples
from maskmatch.errors import MaskMatchError
from maskmatch.saving import check_target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NEW_LABEL = {
    "gift vouchers": "The customer wants to buy, send, redeem or check a gift voucher, or to give bike hire "
    "to somebody as a present."
}

Part = Literal["train", "test", "new_label"]


def demo_rows(part: Part) -> Examples:
    """The questions of an invented bicycle rental and repair chain, with their intents."""
    with as_file(files("maskmatch.demo") / f"{part}.jsonl") as path:
        return load_examples(path)


def _check_folder(folder: Path) -> None:
    """Refuse to write among files that are not an earlier demo's."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "model" / "maskmatch.json").is_file():
        raise MaskMatchError(f"{folder} holds other files; choose an empty folder for the demo.")


def _copy_rows(folder: Path) -> Path:
    """Copy the questions, so that they can be trained on and looked at."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train.jsonl", "test.jsonl", "new_label.jsonl"):
        scratch = folder / f".{name}.writing"
        scratch.write_bytes((files("maskmatch.demo") / name).read_bytes())
        scratch.replace(folder / name)
    return folder


@dataclass(frozen=True)
class DemoResult:
    """What the demo found."""

    zero_shot: float
    trained: float
    new_label: float
    """The share of questions about the added label that are recognised, without training."""
    seconds: float
    model: str
    report: str


def run_demo(folder: Path, seed: int = 0, say: Callable[[str], Any] = print) -> DemoResult:
    """Classify by names alone, train, evaluate, add a label, save.

    Args:
        folder: Where the model and the report go.
        seed: The training's seed.
        say: What to do with each line of the story.
    """
    started = time.perf_counter()
    model, page = folder / "model", folder / "report"
    _check_folder(folder)  # before the work, not after it
    check_target(model)
    train, test, unseen = demo_rows("train"), demo_rows("test"), demo_rows("new_label")
    assert train.labels is not None
    names = list(dict.fromkeys(train.labels))
    matcher = MaskMatcher.from_pretrained(labels=names, task="intent")
    say(f"A help desk's questions, {len(names)} intents, the encoder {matcher.encoder.source}.\n")

    zero_shot = matcher.evaluate(test.texts, test.labels).accuracy
    say(f"1. Label names alone, nothing trained: {zero_shot:.0%} of {len(test)} test questions are right.")

    say(f"2. Training on {len(train)} questions, {len(train) // len(names)} an intent …")
    matcher.fit(train.texts, train.labels, seed=seed)
    report = matcher.evaluate(test.texts, test.labels, data="the demo's test questions")
    assert matcher.training_ is not None
    say(f"   After {matcher.training_.seconds:.0f} s of training: {report.accuracy:.0%} are right.")
    question = test.texts[0]
    say(f"   For example: {question}")
    for label, probability in matcher.top_k([question], 3)[0]:
        say(f"      {probability:5.1%}  {label}")

    name = next(iter(NEW_LABEL))
    matcher.add_labels(NEW_LABEL)
    found = matcher.predict(unseen.texts)
    right = sum(label == name for label in found)
    say(f"3. A new label, {name!r}, added by name and description, nothing trained:")
    say(f"   {right} of {len(unseen)} questions about it are recognised, for example: {unseen.texts[0]}")

    matcher.save_pretrained(model)
    report.save(page)
    data = _copy_rows(folder / "data")
    say(f"4. Saved: the classifier in {model}, the report in {page / 'report.html'}, the questions in {data}.")
    say(f'\nGo on with:  maskmatch predict {model} --text "Can I bring the bike back tomorrow instead?"')
    seconds = time.perf_counter() - started
    return DemoResult(
        zero_shot,
        report.accuracy,
        right / len(unseen),
        round(seconds, 1),
        str(model),
        str(page / "report.html"),
    )
