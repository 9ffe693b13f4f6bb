"""ArrowPredictor: Arrow in, Arrow out. What engines for many machines have in common; it imports none of them.

A row that cannot be used gets its reason in the column "error" and fails no other row.
"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.config.matcher import check_threshold
from maskmatch.data import guess_columns, iter_examples
from maskmatch.data.rows import check_unique_columns, clashes
from maskmatch.errors import MaskMatchError
from maskmatch.prediction.answers import check_count, json_answers
from maskmatch.prediction.predictor import CHUNK_SIZE
from maskmatch.progress import showing_progress
from maskmatch.storage.layout import EXPORT_FILE, folder_hash, read_config

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from maskmatch.config.matcher import LongTexts, MatcherConfig, SearchKind
    from maskmatch.prediction.editing import EditablePredictor
    from maskmatch.prompts import TokenizedPrompts

LOADING = ("threshold", "abstain", "search", "long_texts", "verify")
"""The options that a classifier is loaded with."""

UNREADABLE = (ValueError, OverflowError, NotImplementedError)
"""What Arrow raises for a value that Python cannot hold, such as a date after the year 9999 or broken UTF-8."""

INSTALL = 'pyarrow is not installed; install it with pip install "maskmatch[parquet]".'


@dataclass(frozen=True)
class AnswerOptions:
    """What is asked of each row, and how it is computed.

    Attributes:
        top_k: How many labels to list.
        threshold: With several labels per text: the probability from which a label applies; None: the classifier's.
        abstain: With one label per text: below this probability of the best label the answer is ``none_label``; None:
            the classifier's own setting.
        none_label: The answer for such texts.
        novelty: Whether to add how far each text is from all labels.
        text_field: The column of the text, if it is not obvious.
        named: The columns of other fields, by field, if they are not obvious.
        prefix: The names of answer columns start with it.
        search: How the nearest labels are found; None: the classifier's own setting.
        long_texts: What to do with long texts; None: the classifier's own setting.
        batch_size: Texts per batch.
        threads: How many threads compute, in a process that does nothing else; None: those of the process.
        verify: Whether to check that all files of the folder are as they were saved.
        model_hash: What :func:`model_hash` must give on this machine; None: anything.
    """

    top_k: int = 3
    threshold: float | None = None
    abstain: float | None = None
    none_label: str | None = None
    novelty: bool = False
    text_field: str | None = None
    named: dict[str, str] = field(default_factory=dict)
    prefix: str = ""
    search: SearchKind | None = None
    long_texts: LongTexts | None = None
    batch_size: int = 32
    threads: int | None = None
    verify: bool = True
    model_hash: str | None = None

    def __post_init__(self) -> None:
        check_count(self.top_k, "top_k")
        check_count(self.batch_size, "batch_size")
        if self.threads is not None:
            check_count(self.threads, "threads")
        for name in ("threshold", "abstain"):
            if getattr(self, name) is not None:
                check_threshold(getattr(self, name), name)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> AnswerOptions:
        """Options by their names; MaskMatchError for one that there is not."""
        known = {each.name for each in fields(cls)}
        wrong = next((name for name in options if name not in known), None)
        if wrong is not None:
            raise MaskMatchError(f"There is no option {wrong!r}; the options are {', '.join(sorted(known))}.")
        return cls(**options)

    def columns(self, names: Sequence[str], config: MatcherConfig) -> dict[str, str]:
        """The columns that hold the classifier's fields, by field; raise if they, or those of answers, are wrong."""
        answers = answer_fields(multi_label=config.multi_label, novelty=self.novelty, prefix=self.prefix)
        check_free(names, answers)
        named = dict(self.named)
        if self.text_field is not None:
            named.setdefault("text" if "text" in config.fields else config.fields[0], self.text_field)
        return guess_columns(list(names), config.fields, named=named, want_label=False).fields

    def changing_answers(self) -> dict[str, Any]:
        """The options that change answers, as plain JSON."""
        others = {"batch_size", "threads", "verify", "model_hash"}
        return {name: value for name, value in asdict(self).items() if name not in others}


def model_hash(folder: str | Path) -> str:
    """What identifies a saved classifier or an export on this machine; MaskMatchError if there is none."""
    found = folder_hash(Path(folder).expanduser())
    if found is None:
        raise MaskMatchError(
            f"{folder} is not the folder of a saved classifier or an export on this machine; give a folder that all "
            "machines can read."
        )
    return found


def config_in(folder: str | Path) -> MatcherConfig:
    """The config of the classifier or export in a folder."""
    model_hash(folder)  # raises if there is none
    config = read_config(Path(folder).expanduser())
    assert config is not None
    return config


def answer_fields(*, multi_label: bool, novelty: bool, prefix: str = "") -> list[pa.Field]:
    """The columns that answers have, with their types."""
    import pyarrow as pa

    text, number = pa.string(), pa.float64()
    one = [("labels", pa.list_(text))] if multi_label else [("label", text), ("probability", number)]
    far = [("novelty", number)] if novelty else []
    ranked = ("top_k", pa.list_(pa.struct([("label", text), ("probability", number)])))
    columns = [*one, ranked, *far, ("error", text), ("model", text), ("label_set", text)]
    return [pa.field(f"{prefix}{name}", kind) for name, kind in columns]


def check_free(columns: Sequence[str], answers: Sequence[pa.Field]) -> None:
    """Raise if rows have a column already that is named like one of the answers', whatever its case."""
    taken = clashes(columns, [each.name for each in answers])
    if taken:
        raise MaskMatchError(
            f"The rows have a column {taken[0]!r} already; give the columns of answers a prefix, for example "
            "--prefix predicted_ (prefix= in Python)."
        )


class ArrowPredictor:
    """Classifies the rows of Arrow tables with a saved classifier or an export.

    Args:
        folder: The folder of a saved classifier or of an export.
        **options: The fields of :class:`AnswerOptions`.
    """

    def __init__(self, folder: str | Path, **options: Any) -> None:
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise MaskMatchError(INSTALL) from error
        self.options = AnswerOptions.of(options)
        self._columns: tuple[tuple[str, ...], dict[str, str]] = ((), {})
        self.model_hash = model_hash(folder)
        if self.options.model_hash not in (None, self.model_hash):
            raise MaskMatchError(f"{folder} has another classifier on this machine; give a folder that all share.")
        if self.options.threads is not None:
            use_threads(self.options.threads)
        self.predictor = _load(Path(folder).expanduser(), self.options)
        self.pipeline = self.predictor.pipeline  # with the labels of the folder, from now on
        self.label_set = self.pipeline.labels.digest
        self.least = self.pipeline.least_threshold() if self.pipeline.config.multi_label else None

    @property
    def fields(self) -> list[pa.Field]:
        """The columns of answers, with their types."""
        multi_label = self.pipeline.config.multi_label
        return answer_fields(multi_label=multi_label, novelty=self.options.novelty, prefix=self.options.prefix)

    def __call__(self, table: pa.Table) -> pa.Table:
        """The same rows in the same order, with the columns of answers after their own."""
        check_unique_columns(table.column_names, "the table")
        columns = self.columns(table.column_names)
        rows, problems = plain_rows(table.select(list(dict.fromkeys(columns.values()))))
        return self.joined(table, self.answers(rows, columns, problems))

    def columns(self, names: Sequence[str]) -> dict[str, str]:
        """The columns that hold the classifier's fields, by field."""
        if self._columns[0] != tuple(names):  # they are the same for most tables, and a guess warns once
            self._columns = tuple(names), self.options.columns(names, self.pipeline.config)
        return self._columns[1]

    def answers(
        self, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], problems: Mapping[int, str] | None = None
    ) -> list[dict[str, Any]]:
        """The answer for each row; for a row that cannot be used, a dict with its "error".

        Args:
            rows: The cells of each row, by column.
            columns: The columns of the classifier's fields, by field.
            problems: Why rows could not be read, by their place.
        """
        answers: list[dict[str, Any]] = []
        bad = problems or {}
        for start in range(0, len(rows), CHUNK_SIZE):  # the chunks of `maskmatch predict`: the same batches
            chunk = [dict(row) for row in rows[start : start + CHUNK_SIZE]]
            known = {place - start: reason for place, reason in bad.items() if start <= place < start + len(chunk)}
            answers += self._chunk(chunk, columns, known)
        return answers

    def _chunk(
        self, rows: list[dict[str, Any]], columns: Mapping[str, str], problems: Mapping[int, str]
    ) -> list[dict[str, Any]]:
        fields, options = self.pipeline.config.fields, self.options
        answers: list[dict[str, Any]] = [{"error": problems.get(place, "")} for place in range(len(rows))]
        cells = [{name: row.get(name) for name in columns.values()} for row in rows]
        (found,) = iter_examples(
            cells, fields, named=columns, want_label=False, skip_bad_rows=True, chunk_size=len(rows)
        )
        places = list(found.row_numbers or [])
        bad = sorted(set(range(len(rows))) - set(places))
        for place, reason in zip(bad, found.skipped, strict=True):
            answers[place]["error"] = problems.get(place) or reason.partition(": ")[2]
        texts = {place: text for place, text in zip(places, found.texts, strict=True) if place not in problems}
        readable, prompts = self._tokenized(texts, answers)
        if prompts is not None:
            with showing_progress(False):
                ranked = self.pipeline.answers(
                    prompts, options.top_k, options.batch_size, threshold=self.least, novelty=options.novelty
                )
            made = json_answers(self.pipeline, *ranked, options.top_k, none_label=options.none_label)
            for place, answer in zip(readable, made, strict=True):
                answers[place] = answer
        return answers

    def _tokenized(
        self, texts: Mapping[int, Any], answers: list[dict[str, Any]]
    ) -> tuple[list[int], TokenizedPrompts | None]:
        """The places of texts that can be read, and their prompts; the others get their error, each alone."""
        if not texts:
            return [], None
        try:
            return list(texts), self.pipeline.tokenize(list(texts.values()))
        except MaskMatchError:
            readable = dict(texts)
        for place, text in texts.items():
            try:
                self.pipeline.tokenize([text])
            except MaskMatchError as error:
                answers[place]["error"] = str(error).removeprefix("Text 0: ")
                del readable[place]
        return list(readable), self.pipeline.tokenize(list(readable.values())) if readable else None

    def joined(self, table: pa.Table, answers: Sequence[Mapping[str, Any]]) -> pa.Table:
        """A table with the columns of its answers."""
        import pyarrow as pa

        given = {"model": self.model_hash, "label_set": self.label_set}
        for each in self.fields:
            name = each.name.removeprefix(self.options.prefix)
            values = [_cell(name, answer) for answer in answers] if name not in given else [given[name]] * len(answers)
            table = table.append_column(each, pa.array(values, each.type))
        return table


def use_threads(threads: int) -> None:
    """Compute with this many threads in this process: the encoder, the tokenizer and the products of matrices.

    The tokenizer reads its number when it is first used, onnxruntime when a graph is loaded.
    """
    for name in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS"):
        os.environ[name] = str(threads)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)


def _load(folder: Path, options: AnswerOptions) -> EditablePredictor:
    """Load a classifier, or an export, which needs no torch."""
    import maskmatch

    exported = (folder / EXPORT_FILE).exists()
    kind: Any = maskmatch.ExportedMatcher if exported else maskmatch.MaskMatcher
    settings = {name: getattr(options, name) for name in LOADING}
    loaded: EditablePredictor = kind.from_pretrained(folder if exported else str(folder), verbose=False, **settings)
    return loaded


def plain_rows(table: pa.Table) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """The rows of a table as plain Python; and by their place, why rows have a value that Python cannot hold."""
    try:
        rows: list[dict[str, Any]] = table.to_pylist()
        return rows, {}
    except UNREADABLE:  # its row is bad, not all of them
        rows = [{} for _ in range(len(table))]
    problems: dict[int, str] = {}
    for name in table.column_names:
        for place, cell in enumerate(table.column(name)):
            rows[place][name], reason = _plain(cell)
            if reason is not None:
                problems.setdefault(place, f"column {name!r} cannot be read: {reason}")
    return rows, problems


def _plain(cell: pa.Scalar) -> tuple[Any, str | None]:
    """A value as plain Python, or None and the reason; a string that is not valid UTF-8 gets surrogates."""
    try:
        return cell.as_py(), None
    except UNREADABLE as error:
        if isinstance(error, UnicodeDecodeError) and hasattr(cell, "as_buffer"):  # no list of strings
            return cell.as_buffer().to_pybytes().decode(errors="surrogateescape"), None
        return None, (str(error).partition("\n")[0] or type(error).__name__).rstrip(".")


def _cell(name: str, answer: Mapping[str, Any]) -> Any:
    """The value of an answer in one column; labels are strings, whatever their ids are."""
    value = answer.get(name)
    if value is None:
        return None
    if name == "label":
        return str(value)
    if name == "labels":
        return [str(label) for label in value]
    if name == "top_k":
        return [{**each, "label": str(each["label"])} for each in value]
    return value
