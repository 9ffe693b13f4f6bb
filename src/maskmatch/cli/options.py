"""Options that several commands share, alone and in groups, and how results are printed."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskmatch.cli.groups import Options, SettingsOf
from maskmatch.config.matcher import LongTexts, SearchKind, classifier_options
from maskmatch.data.formats import Format as FileFormat
from maskmatch.errors import MaskMatchError, MissingPackageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.data import Examples
    from maskmatch.labels import LabelSet, LabelsLike
    from maskmatch.matcher import MaskMatcher
    from maskmatch.prediction.predictor import Predictor
    from maskmatch.storage.export.matcher import ExportedMatcher


READING, TRAINING, CLASSIFIER = "Reading rows", "Training", "Classifier"
SavedFolder = Annotated[str, typer.Argument(metavar="FOLDER", help="The folder of a saved classifier, or its hub id.")]
PredictingFolder = Annotated[
    str | None, typer.Argument(metavar="FOLDER", help="The folder of a saved classifier or of an export, or a hub id.")
]
LabelledFile = Annotated[
    str, typer.Argument(metavar="FILE", help="Labelled rows: CSV, TSV, JSON, JSONL or Parquet, also gzipped.")
]
CHUNK_SIZE = 2048
"""How many texts are read at once."""

OF_EXPORTS = ("threshold", "abstain", "search", "long_texts")
"""The settings that can be changed in an export."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
SelfTraining = Annotated[
    bool,
    typer.Option(
        "--self-training",
        help="Also train on confident unlabelled texts, for some minutes. Give dev rows, which decide if it is used.",
    ),
]
Seed = Annotated[int, typer.Option(help="Same seed, same result.")]
TaskName = Annotated[str | None, typer.Option(help="The task preset; `maskmatch tasks` lists them.")]
ModelName = Annotated[str | None, typer.Option("--model", help="A folder or hub id; default: the embedded encoder.")]
Device = Annotated[
    str | None, typer.Option(help="Where to compute, e.g. cpu or cuda:1; default: a GPU if there is one.")
]
Threshold = Annotated[
    float | None,
    typer.Option(help="With several labels per text: the probability from which a label applies.", min=0.0, max=1.0),
]
Abstain = Annotated[
    float | None,
    typer.Option(help="Below this probability of the best label, the answer is none.", min=0.0, max=1.0),
]
NoneLabel = Annotated[
    str | None, typer.Option(help="What to answer instead of null where the probability is below --abstain.")
]
Novelty = Annotated[
    bool, typer.Option("--novelty", help="Also print how far a text is from all labels; higher is further.")
]
Search = Annotated[
    SearchKind | None,
    typer.Option(help="How the nearest labels are found; approximate (extra: index) is for very many labels."),
]
LongTextsOption = Annotated[
    LongTexts | None,
    typer.Option(
        "--long-texts",
        help="Cut texts that are longer than the encoder reads, or read them in windows, which takes longer. Default: "
        "as in the classifier.",
    ),
]


Verify = Annotated[
    bool, typer.Option("--verify/--no-verify", help="Check that all files of a saved folder are as they were saved.")
]


class PhraseSourceName(str, Enum):
    """Where phrases and examples come from; an option that may be given several times cannot be a literal."""

    vocabulary = "vocabulary"
    training_words = "training-words"
    texts = "texts"
    words = "words"


PhraseSources = Annotated[
    list[PhraseSourceName] | None,
    typer.Option("--source", help="A source; may be given several times. Default: those that a file is given for."),
]
BatchSize = Annotated[int, typer.Option(help="Texts per batch.", min=1)]
TopK = Annotated[int, typer.Option("--top-k", "-k", help="How many labels to list per text.", min=1)]
TextField = Annotated[str | None, typer.Option(help="The column of the text.", rich_help_panel=READING)]
LabelField = Annotated[str | None, typer.Option(help="The column of the label.", rich_help_panel=READING)]
Field = Annotated[
    list[str] | None,
    typer.Option("--field", metavar="FIELD=COLUMN", help="The column of another field.", rich_help_panel=READING),
]
LabelSeparator = Annotated[
    str | None,
    typer.Option(
        help="What separates several labels in a cell, such as | or ;. none: a cell is one label. Default: with "
        "several labels per text, | where it is clear. JSON lists are read, too.",
        rich_help_panel=READING,
    ),
]
Encoding = Annotated[str, typer.Option(help="The encoding of the file.", rich_help_panel=READING)]
Format = Annotated[
    FileFormat | None,
    typer.Option(help="The format, if the file's name does not say it.", rich_help_panel=READING),
]
SkipBadRows = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Skip rows that cannot be used.", rich_help_panel=READING)
]


@contextmanager
def wrong_usage(option: str | None = None) -> Iterator[None]:
    """Errors in here are wrong usage: a value that an option cannot have."""
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
    label_separator: LabelSeparator = None

    def check_separator(self, multi_label: bool | None) -> None:
        """Raise for a separator of labels where a text has one label."""
        if multi_label is False and self.label_separator not in (None, "none"):
            raise typer.BadParameter(
                "it separates several labels of a text, and with --no-multi-label a text has one.",
                param_hint="--label-separator",
            )

    def without_labels(self) -> Reading:
        """How rows whose labels do not matter are read from a file."""
        return Reading(self.text_field, self.field, self.encoding, self.format, self.skip_bad_rows)

    def options(self) -> dict[str, Any]:
        """The options of ``load_examples``."""
        return {**super().options(), "label_field": self.label_field, "label_separator": self.label_separator}


@dataclass(frozen=True)
class Classifier:
    """Which classifier to make or load."""

    model: ModelName = None
    device: Device = None
    verify: Verify = True
    settings: Annotated[Options, SettingsOf(classifier_options, panel=CLASSIFIER, optional=True)] = field(
        default_factory=dict
    )

    def load(self, labels: LabelsLike | None, **more: Any) -> MaskMatcher:
        """The classifier; ``more`` are other options of ``from_pretrained``, which take precedence."""
        from maskmatch.matcher import MaskMatcher

        options = {"model": self.model, "device": self.device, "verify": self.verify, **self.settings, **more}
        return MaskMatcher.from_pretrained(labels=labels, **options)

    def load_export(self, labels: LabelsLike) -> ExportedMatcher:
        """The export with other labels; it reads them without torch."""
        from maskmatch import ExportedMatcher

        assert self.model is not None
        fixed = [f"--{name.replace('_', '-')}" for name in self.settings if name not in OF_EXPORTS]
        if fixed or self.device not in (None, "cpu"):
            raise MaskMatchError(
                f"{self.model} is an export, which was made with its own settings and computes on the CPU; leave "
                f"{', '.join(fixed) or '--device'} out."
            )
        settings: dict[str, Any] = dict(self.settings)
        return ExportedMatcher.from_pretrained(self.model, labels, verify=self.verify, **settings)

    def load_default_export(self, labels: LabelsLike) -> ExportedMatcher | None:
        """The embedded default as a cached int8 export, which starts without torch; None if it does not fit.

        It has the prompts of a task, and no other settings.
        """
        from importlib.util import find_spec

        from maskmatch import ExportedMatcher
        from maskmatch.config.matcher import DEFAULT_TASK

        task = self.settings.get("task") or DEFAULT_TASK
        known = {*OF_EXPORTS, "task"}
        if self.model is not None or self.device is not None or not known >= set(self.settings):
            return None
        if find_spec("onnxruntime") is None or os.path.exists("/dev/nvidia0"):
            return None  # a GPU is faster
        from maskmatch.serving.default_export import default_export, default_export_folder

        if find_spec("onnx") is None and find_spec("torch") is not None and not is_export(default_export_folder(task)):
            return None  # it cannot be made here
        try:
            folder = default_export(
                task, making=lambda: note("The first time, the default is exported to start faster from now on.")
            )
        except MissingPackageError:
            raise  # the default itself cannot be loaded either
        except (OSError, MaskMatchError) as error:  # the cache cannot be written
            note(f"The default could not be cached, so it starts slowly: {error}")
            return None
        settings: dict[str, Any] = {name: value for name, value in self.settings.items() if name != "task"}
        return ExportedMatcher.from_pretrained(folder, labels, **settings)

    def untrained_method(self) -> str | None:
        """The method to use without training, if it is not that of the task or the saved classifier.

        A method that compares the sides of a pair must learn what their distance means. Untrained, a pair is read as a
        whole.
        """
        from maskmatch.config.methods import find_method
        from maskmatch.config.tasks import find_task
        from maskmatch.model.encoder import find_model
        from maskmatch.storage.layout import is_saved

        method, task = self.settings.get("method"), self.settings.get("task")
        pairs = task is not None and find_method(find_task(task).method).reads_pairs
        if method is not None or not pairs or is_saved(find_model(self.model)[0]):
            return method
        return "mask-matching"


@dataclass(frozen=True)
class Texts:
    """The texts to classify."""

    file: Annotated[str | None, typer.Argument(metavar="FILE", help="A file of texts, or - for standard input.")] = None
    text: Annotated[list[str] | None, typer.Option(help="A text; may be given several times.")] = None

    def chunks(self, fields: tuple[str, ...], reading: Reading, *, keep_rows: bool = False) -> Iterator[Examples]:
        """The texts, chunk by chunk: from --text, a file, or standard input. The first chunk is read at once."""
        chunks = self._chunks(fields, reading, keep_rows)
        first = next(chunks, None)  # a missing file or column is reported before anything is loaded
        return chain([] if first is None else [first], chunks)

    def check(self, fields: tuple[str, ...], reading: Reading) -> None:
        """Read a file as a whole, so that a bad row is reported before hours of work, not after them."""
        if is_file(self.file) and not reading.skip_bad_rows:
            for _ in self._chunks(fields, reading, False):
                pass

    def _chunks(self, fields: tuple[str, ...], reading: Reading, keep_rows: bool) -> Iterator[Examples]:
        from maskmatch.data import iter_examples

        how = {"want_label": False, "chunk_size": CHUNK_SIZE, "keep_rows": keep_rows, **reading.options()}

        if self.file is not None and self.text:
            raise typer.BadParameter("give texts with --text or in a file, not both.", param_hint="FILE")
        if self.text:
            yield _given_texts(self.text, reading.skip_bad_rows)
            return
        if self.file is None and sys.stdin.isatty():
            raise typer.BadParameter("give a file, - for standard input, or --text.", param_hint="FILE")
        for chunk in iter_examples(self.file or "-", fields, **how):
            report_skipped(chunk.skipped, self.file or "standard input")
            yield chunk


def config_of(model: str | None, settings: Options) -> MatcherConfig:
    """The config of a classifier, found without loading it, so that files can be checked first.

    Args:
        model: The folder of a saved classifier, of an export or of an encoder, a hub id, or None.
        settings: Settings of the classifier that the user gave.
    """
    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.files import recover
    from maskmatch.storage.layout import read_config

    saved = None
    if model is not None:
        folder = Path(model).expanduser()
        recover(folder)
        if not os.path.exists(folder):  # an id on the hub, or the name of an embedded encoder
            from maskmatch.model.encoder import find_model

            folder, _ = find_model(model)
        saved = read_config(folder)
    with wrong_usage():
        return MatcherConfig.make(**{"max_length": 512, **settings}) if saved is None else saved.changed(settings)


def label_names(source: str) -> LabelSet:
    """The labels of ``--labels``: names, a label file, ``-`` for standard input, or the folder of a classifier."""
    from maskmatch.labels.files import load_labels
    from maskmatch.storage.layout import CONFIG_FILE, read_labels

    folder = os.path.expanduser(source)
    if os.path.isfile(os.path.join(folder, CONFIG_FILE)):
        return read_labels(Path(folder))
    return load_labels(source)


def names_labels(source: str) -> bool:
    """Whether a word of the command line names labels, in a list or a file, rather than a classifier."""
    if os.path.isdir(os.path.expanduser(source)):
        return False
    listed = any(mark in source for mark in ",[{\n\t")
    return source == "-" or listed or os.path.isfile(os.path.expanduser(source))


def predictor_or_names(
    source: str, classifier: Classifier, *, named: bool | None = None
) -> tuple[MatcherConfig, Callable[[], Predictor]]:
    """The config of a classifier, and how it is loaded: a saved one, an export, or one for label names.

    Args:
        source: A folder, a hub id, label names, or a file of labels.
        classifier: The settings of a new classifier, or other settings for a saved one.
        named: Whether the source is label names; None: find out.
    """
    if names_labels(source) if named is None else named:
        labels = label_names(source)
        config = config_of(classifier.model, classifier.settings)
        if named and len(labels) < 2 and not config.multi_label:
            raise typer.BadParameter(
                f"{next(iter(labels))!r} is the only label; give at least two names, separated by commas.",
                param_hint="--labels",
            )
        if classifier.model is not None and is_export(classifier.model):
            return config, lambda: classifier.load_export(labels)
        return config, lambda: classifier.load(labels, method=classifier.untrained_method())
    saved_classifier(source)
    if classifier.model is not None:
        raise typer.BadParameter(f"{source} is a classifier already; leave it out.", param_hint="--model")
    if is_export(source):
        wrong = sorted(set(classifier.settings) - set(OF_EXPORTS))
        if wrong:
            raise typer.BadParameter(
                "an export has this setting built in.", param_hint=f"--{wrong[0].replace('_', '-')}"
            )
        settings = {name: classifier.settings.get(name) for name in OF_EXPORTS}
        return config_of(source, {}), lambda: load_predictor(
            source, device=classifier.device, verify=classifier.verify, **settings
        )
    return config_of(source, classifier.settings), lambda: classifier.load(None, model=source)


def load_rows(
    source: str | Path, fields: tuple[str, ...], reading: LabelledReading, *, multi_label: bool = False, **more: Any
) -> Examples:
    """Labelled rows of a file; skipped rows are reported on standard error. ``more`` goes to ``load_examples``."""
    from maskmatch.data import load_examples

    examples = load_examples(source, fields, multi_label=multi_label, **reading.options(), **more)
    report_skipped(examples.skipped, str(source))
    return examples


def _given_texts(texts: list[str], skip_bad_rows: bool) -> Examples:
    """The texts of --text; blank ones are treated like blank rows of a file."""
    from maskmatch.data import Examples, Row, TableRows, blank_message, is_blank

    blank = [f"--text number {number}: {blank_message()}" for number, text in enumerate(texts, 1) if is_blank(text)]
    if blank and not skip_bad_rows:
        raise MaskMatchError(f"{blank[0]}; give some words, or leave it out with --skip-bad-rows.")
    if len(blank) == len(texts):
        raise MaskMatchError(f"No text is left, as {blank[0]}; give some words.")
    report_skipped(blank, "--text")
    rows = [row for row, text in enumerate(texts) if not is_blank(text)]
    given = [Row({"text": text}, f"--text number {number}") for number, text in enumerate(texts, 1)]
    table = TableRows(given, [f"{row.where}: {blank_message()}" if is_blank(row.fields) else None for row in given])
    return Examples([texts[row] for row in rows], row_numbers=rows, table=table)


def report_skipped(skipped: list[str], source: str) -> None:
    """Report skipped rows on standard error."""
    for reason in skipped[:5]:
        note(f"skipped: {reason}")
    if len(skipped) > 5:
        more = len(skipped) - 5
        note(f"skipped: {more} more {'row' if more == 1 else 'rows'} of {source}")


def note(message: str) -> None:
    """Write a line to standard error; standard output is for results."""
    typer.echo(message, err=True)


def print_json(data: Any, indent: int | None = 2) -> None:
    """Print a result as JSON."""
    typer.echo(json.dumps(data, ensure_ascii=False, indent=indent, default=str))


def print_result(result: Any, as_json: bool) -> None:
    """Print a result that has a text and a JSON form."""
    if as_json:
        print_json(result.to_dict())
    else:
        typer.echo(str(result))


def check_page(output: Path | None) -> None:
    """Raise for a file to write a web page to that is not named like one."""
    if output is not None and output.suffix.lower() != ".html":
        raise typer.BadParameter(f"{output} does not end in .html.", param_hint="--output")


def is_file(source: str | None) -> bool:
    """Whether a source of texts is a file, which can be read again."""
    return source is not None and source != "-" and os.path.isfile(os.path.expanduser(source))


def saved_classifier(folder: str) -> Path | str:
    """A folder or hub id; MaskMatchError if it is a folder without a saved classifier."""
    path = Path(folder).expanduser()
    if path.exists() and not (path / "maskmatch.json").exists() and not is_export(folder):
        raise MaskMatchError(f"{folder} is not a saved classifier (maskmatch.json is missing).")
    return folder


def folder_path(source: str) -> Path:
    """A folder by its name; no folder if the name is too long for one, as a list of label names may be."""
    path = os.path.expanduser(source)
    return Path(path) if os.path.isdir(path) else Path(os.devnull)


def is_export(folder: str | Path) -> bool:
    """Whether a folder holds an export; nothing is imported for it."""
    # Path.exists fails where a list of label names is too long for a file's name.
    return os.path.exists(os.path.join(os.path.expanduser(folder), "export.json"))


def holds_classifier(folder: Path) -> bool:
    """Whether a folder holds a saved classifier, or an export."""
    return is_export(folder) or (folder / "maskmatch.json").exists()


def refuse_export(folder: str) -> None:
    """Raise for an export where a command needs torch."""
    if is_export(folder):
        raise MaskMatchError(
            f"{folder} is an export, and this needs the classifier that it was made from; give that folder."
        )


def load_predictor(
    folder: str,
    *,
    threshold: float | None,
    device: str | None,
    abstain: float | None = None,
    search: SearchKind | None = None,
    long_texts: LongTexts | None = None,
    verify: bool = True,
) -> Predictor:
    """Load a saved classifier, or an export, which needs no torch."""
    saved_classifier(folder)
    settings: dict[str, Any] = {
        "threshold": threshold,
        "abstain": abstain,
        "search": search,
        "long_texts": long_texts,
    }
    if not is_export(folder):
        from maskmatch import MaskMatcher

        return MaskMatcher.from_pretrained(folder, device=device, verify=verify, **settings)
    if device not in (None, "cpu"):
        raise MaskMatchError(f"The device {device!r} cannot be used: an export computes on the CPU.")
    from maskmatch import ExportedMatcher

    return ExportedMatcher.from_pretrained(folder, verify=verify, **settings)


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
