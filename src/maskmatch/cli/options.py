"""Options that several commands share, alone and in groups, and how results are printed."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskmatch import choices
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from maskmatch.classifier import MaskMatcher
    from maskmatch.data import Examples
    from maskmatch.labels import LabelsLike
    from maskmatch.predictor import Predictor


READING, TRAINING = "Reading rows", "Training"
SavedFolder = Annotated[str, typer.Argument(help="The folder of a saved classifier, or its hub id.")]
PredictingFolder = Annotated[str, typer.Argument(help="The folder of a saved classifier or of an export, or a hub id.")]
LabelledFile = Annotated[str, typer.Argument(help="Labelled rows: CSV, TSV, JSON, JSONL or Parquet, also gzipped.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Seed = Annotated[int, typer.Option(help="Same seed, same result.")]
TaskName = Annotated[
    str | None,
    typer.Option(help="The task preset, as `maskmatch tasks` lists them; topic, or the saved classifier's own."),
]
MethodName = Annotated[
    str | None,
    typer.Option(help="A method; left out, the task's (mostly mask-matching) or the saved classifier's own."),
]
InputPrompt = Annotated[
    list[str] | None,
    typer.Option(
        "--prompt",
        help="An input prompt, e.g. '{text} It is about {mask}.'; several are averaged, or are sides of a pair.",
    ),
]
LabelPrompt = Annotated[
    list[str] | None, typer.Option(help="A label prompt, e.g. '{label} is {mask}.'; several are averaged.")
]
Masks = Annotated[
    choices.MaskJoin | None,
    typer.Option(help="How several masks are compared: their mean, one behind the other, or each with its best."),
]
PhraseJoins = Annotated[
    choices.PhraseJoin | None, typer.Option(help="How the scores of a label's several phrases become one.")
]
Debiased = Annotated[
    choices.Debias | None,
    typer.Option(help="Take the empty prompt's state from the vectors of inputs, labels or both."),
]
ModelName = Annotated[str | None, typer.Option("--model", help="A folder or hub id; the embedded default if left out.")]
MaxLength = Annotated[int | None, typer.Option(help="The most tokens of a text; longer ones are shortened.")]
Device = Annotated[str | None, typer.Option(help="Where to compute, e.g. cpu or cuda:1; a GPU if there is one.")]
MultiLabel = Annotated[
    bool | None, typer.Option("--multi-label", help="A text may have several labels, or none.", show_default=False)
]
Threshold = Annotated[
    float | None,
    typer.Option(help="With several labels a text: from which probability on one applies.", min=0.0, max=1.0),
]
Search = Annotated[
    choices.SearchKind | None,
    typer.Option(help="How the best labels are found; approximate, with the extra index, is for very many labels."),
]


class PhraseSourceName(str, Enum):
    """Where phrases and examples come from; an option that may be given several times cannot be a literal."""

    vocabulary = "vocabulary"
    training_words = "training-words"
    texts = "texts"
    words = "words"


PhraseSources = Annotated[
    list[PhraseSourceName] | None,
    typer.Option("--source", help="A source; may be given several times. Left out: those that a file is given for."),
]
BatchSize = Annotated[int, typer.Option(help="Texts a batch.", min=1)]
TopK = Annotated[int, typer.Option("--top-k", "-k", help="How many labels to list for each text.", min=1)]
Epochs = Annotated[float | None, typer.Option(help="Passes over the rows.", rich_help_panel=TRAINING)]
StepSize = Annotated[int, typer.Option("--batch-size", help="Texts a step.", min=1, rich_help_panel=TRAINING)]
LearningRate = Annotated[float, typer.Option(help="The peak rate.", rich_help_panel=TRAINING)]
WhichLabels = Annotated[
    choices.LabelEncoding,
    typer.Option(
        "--label-encoding",
        help="Whether a step reads all labels, or those that matter to it.",
        rich_help_panel=TRAINING,
    ),
]
Checkpoints = Annotated[
    Path | None, typer.Option(help="A folder for checkpoints, to resume from.", rich_help_panel=TRAINING)
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.", rich_help_panel=TRAINING)]
TextField = Annotated[str | None, typer.Option(help="The column of the text.", rich_help_panel=READING)]
LabelField = Annotated[str | None, typer.Option(help="The column of the label.", rich_help_panel=READING)]
Field = Annotated[
    list[str] | None,
    typer.Option("--field", metavar="FIELD=COLUMN", help="The column of another field.", rich_help_panel=READING),
]
Encoding = Annotated[str, typer.Option(help="The encoding of the file.", rich_help_panel=READING)]
Format = Annotated[
    choices.Format | None,
    typer.Option(help="The format, if the file's name does not tell.", rich_help_panel=READING),
]
SkipBadRows = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Leave out rows that cannot be used.", rich_help_panel=READING)
]


@contextmanager
def wrong_usage(option: str | None = None) -> Iterator[None]:
    """What is refused in here is wrong usage: a value that an option cannot have."""
    try:
        yield
    except MaskMatchError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


@dataclass(frozen=True)
class Reading:
    """How rows are read from a file."""

    text_field: TextField = None
    field: Field = None
    encoding: Encoding = "utf-8"
    format: Format = None
    skip_bad_rows: SkipBadRows = False

    def __post_init__(self) -> None:
        for pair in self.field or []:
            name, equals, column = pair.partition("=")
            if not (equals and name and column):
                raise typer.BadParameter(f"{pair!r} is not FIELD=COLUMN.", param_hint="--field")

    @property
    def named(self) -> dict[str, str]:
        """The columns of other fields than the text, by field."""
        return {name: column for name, _, column in (pair.partition("=") for pair in self.field or [])}

    def options(self) -> dict[str, Any]:
        """The options of ``load_examples``."""
        return {
            "text_field": self.text_field,
            "named": self.named,
            "encoding": self.encoding,
            "format": self.format,
            "skip_bad_rows": self.skip_bad_rows,
        }


@dataclass(frozen=True)
class LabelledReading(Reading):
    """How rows with labels are read from a file."""

    label_field: LabelField = None

    def options(self) -> dict[str, Any]:
        """The options of ``load_examples``."""
        return {**super().options(), "label_field": self.label_field}


@dataclass(frozen=True)
class Classifier:
    """Which classifier to make or load."""

    task: TaskName = None
    method: MethodName = None
    model: ModelName = None
    prompt: InputPrompt = None
    label_prompt: LabelPrompt = None
    masks: Masks = None
    phrase_join: PhraseJoins = None
    debias: Debiased = None
    max_length: MaxLength = None
    multi_label: MultiLabel = None
    threshold: Threshold = None
    device: Device = None

    def load(self, labels: LabelsLike | None, **more: Any) -> MaskMatcher:
        """The classifier; ``more`` are other options of ``from_pretrained``, or take the place of its own."""
        from maskmatch.classifier import MaskMatcher

        prompts = {"prompt": self.prompt or None, "label_prompt": self.label_prompt or None}
        return MaskMatcher.from_pretrained(labels=labels, **{**vars(self), **prompts, **more})

    def untrained_method(self) -> str | None:
        """The method by which to read without training, if it is not to be the task's or the saved classifier's own.

        A method that compares the sides of a pair has to learn what their distance says. Before, a pair is read as a
        whole.
        """
        from maskmatch.encoder import find_model
        from maskmatch.methods import find_method
        from maskmatch.saving import is_saved
        from maskmatch.tasks import find_task

        pairs = self.task is not None and find_method(find_task(self.task).method).reads_pairs
        if self.method is not None or not pairs or is_saved(find_model(self.model)[0]):
            return self.method
        return "mask-matching"


@dataclass(frozen=True)
class Texts:
    """The texts to classify."""

    file: Annotated[str | None, typer.Argument(help="A file of texts, or - for standard input.")] = None
    text: Annotated[list[str] | None, typer.Option(help="A text; may be given several times.")] = None

    def chunks(self, fields: tuple[str, ...], reading: Reading) -> Iterator[Examples]:
        """The texts, a chunk at a time: from --text, a file, or standard input."""
        from maskmatch.data import iter_examples

        if self.file is not None and self.text:
            raise typer.BadParameter("give texts with --text or in a file, not both.", param_hint="FILE")
        if self.text:
            yield _given_texts(self.text, reading.skip_bad_rows)
            return
        if self.file is None and sys.stdin.isatty():
            raise typer.BadParameter("give a file, - for standard input, or --text.", param_hint="FILE")
        for chunk in iter_examples(self.file or "-", fields, want_label=False, chunk_size=2048, **reading.options()):
            tell_skipped(chunk.skipped, self.file or "standard input")
            yield chunk


def load_rows(source: str | Path, fields: tuple[str, ...], reading: LabelledReading) -> Examples:
    """Labelled rows of a file; what was left out is told on standard error."""
    from maskmatch.data import load_examples

    examples = load_examples(source, fields, **reading.options())
    tell_skipped(examples.skipped, str(source))
    return examples


def _given_texts(texts: list[str], skip_bad_rows: bool) -> Examples:
    """The texts of --text; blank ones are treated like blank rows of a file."""
    from maskmatch.data import Examples

    blank = [f"--text number {number}: the text is blank" for number, text in enumerate(texts, 1) if not text.strip()]
    if blank and not skip_bad_rows:
        raise MaskMatchError(f"{blank[0]}; give some words, or leave it out with --skip-bad-rows.")
    if len(blank) == len(texts):
        raise MaskMatchError(f"No text is left, as {blank[0]}; give some words.")
    tell_skipped(blank, "--text")
    rows = [row for row, text in enumerate(texts) if text.strip()]
    return Examples([texts[row] for row in rows], row_numbers=rows)


def tell_skipped(skipped: list[str], source: str) -> None:
    """Say on standard error which rows were left out."""
    for reason in skipped[:5]:
        tell(f"left out: {reason}")
    if len(skipped) > 5:
        tell(f"left out: {len(skipped) - 5} more rows of {source}")


def tell(message: str) -> None:
    """A line for the person at the terminal; standard output is for results."""
    typer.echo(message, err=True)


def print_json(data: Any, indent: int | None = 2) -> None:
    """Print a result as JSON."""
    typer.echo(json.dumps(data, ensure_ascii=False, indent=indent, default=str))


def saved_classifier(folder: str) -> Path | str:
    """A folder or hub id that should hold a saved classifier."""
    path = Path(folder).expanduser()
    if path.exists() and not (path / "maskmatch.json").exists() and not is_export(folder):
        raise MaskMatchError(f"{folder} holds no saved classifier (maskmatch.json is missing).")
    return folder


def is_export(folder: str) -> bool:
    """Whether a folder holds an export; nothing is imported to tell."""
    # Path.exists fails where a list of label names is too long for a file's name.
    return os.path.exists(os.path.join(os.path.expanduser(folder), "export.json"))


def refuse_export(folder: str) -> None:
    """Say where the labels of an export are to be looked for: it cannot read names any more."""
    if is_export(folder):
        raise MaskMatchError(
            f"{folder} is an export, which reads no names any more; its labels are looked at, checked and edited in "
            "the folder of the classifier that it was made from."
        )


def load_predictor(
    folder: str, *, threshold: float | None, device: str | None, search: choices.SearchKind | None = None
) -> Predictor:
    """What predicts from a folder: a saved classifier, or an export, which needs no torch."""
    saved_classifier(folder)
    if not is_export(folder):
        from maskmatch import MaskMatcher

        return MaskMatcher.from_pretrained(folder, threshold=threshold, search=search, device=device)
    if device not in (None, "cpu"):
        raise MaskMatchError(f"The device {device!r} cannot be used: an export computes on the CPU.")
    from maskmatch import ExportedMatcher

    return ExportedMatcher.from_pretrained(folder, threshold=threshold, search=search)


def print_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a table that fits the terminal; in a pipe, columns are separated by tabs."""
    if not sys.stdout.isatty():
        for row in [header, *rows]:
            typer.echo("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*header, box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)
