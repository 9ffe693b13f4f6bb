"""The folder of an export: a classifier that predicts without torch.

model.onnx            token ids, attention mask, mask positions → vectors of texts, and of label texts
tokenizer.json        the tokenizer, as the tokenizers library writes it
labels.safetensors    the vectors of label texts, and what texts have taught about labels
labels.faiss          an index over the label vectors, if there are so many that one is used
export.json           config, labels, special tokens, temperature and offset, parity with torch, versions
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.config.matcher import MatcherConfig
from maskmatch.errors import MaskMatchError
from maskmatch.labels import LabelSet, label_from_json, label_to_json
from maskmatch.labels.calibration import Calibration
from maskmatch.prediction.from_bank import LogitScale, background_vectors
from maskmatch.prediction.graph_bank import GraphBank
from maskmatch.prediction.index import LabelIndex, index_available
from maskmatch.prediction.runtimes import load_runtime, runtime_row
from maskmatch.prediction.search import ApproximateSearch, MeasuredIndex, SearchReport
from maskmatch.prompts import PromptTokenizer, Vocabulary
from maskmatch.storage.export.old_formats import old_pipeline
from maskmatch.storage.integrity import check_files, read_stable, revision, signed
from maskmatch.storage.layout import EXPORT_FILE, EXPORT_FORMAT, portable_name, probe, read_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from maskmatch.labels.bank import LabelBank
    from maskmatch.prediction.label_scorer import LabelScorer
    from maskmatch.prediction.pipeline import Pipeline

logger = logging.getLogger("maskmatch")

EDITABLE = 7
"""The first format whose labels can be edited."""

TOKENIZER_FILE = "tokenizer.json"
LABELS_FILE = "labels.safetensors"
INDEX_FILE = "labels.faiss"
BACKGROUND = "background"
PROBED = 1000
"""With how many labels a text is compared to find out whether an export works."""

FILES = (TOKENIZER_FILE, LABELS_FILE, EXPORT_FILE)
"""The files of every export, besides the graph of its runtime."""


def is_export(folder: Path) -> bool:
    """Whether a folder holds an export."""
    return (folder / EXPORT_FILE).exists()


@dataclass(frozen=True)
class Export:
    """What is known of an export besides its labels.

    Attributes:
        source: The classifier that was exported.
        int8: Whether its weights are quantised.
        parity: How much it differs from torch, as ``Parity.to_dict`` gives it; None before it was measured.
        notes: What a reader of its metrics should know.
        versions: The versions of the libraries that wrote it.
        fixed: Why its labels cannot be edited; None if they can be.
        revision: What identifies the content of the folder that it was loaded from.
    """

    source: str
    int8: bool
    parity: dict[str, Any] | None
    notes: list[str]
    versions: dict[str, str]
    fixed: str | None = None
    revision: str | None = None


def write_export(bank: LabelBank, pipeline: Pipeline, logits: LogitScale, export: Export, folder: Path) -> None:
    """Write all of an export but its graph, which is there already.

    Args:
        bank: The labels and all that is known of them.
        pipeline: Their pipeline.
        logits: How similarities become logits, before adaptation and calibration.
        export: What else is known of it.
        folder: The folder.
    """
    from safetensors.numpy import save_file

    arrays, metadata = bank.state_dict(kept_texts=False)
    if bank.learned.scope is None and pipeline.background is not None:  # else novelty does not need it
        arrays[BACKGROUND] = background_vectors(bank).astype(np.float16)
    # The library writes the memory of an array as it is, also if it is transposed.
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    # Labels that are read with each text have no vectors; without any content the library cannot read the file.
    save_file(arrays, folder / LABELS_FILE, metadata=metadata or {"vectors": "none"})
    pipeline.tokenizer.vocabulary.backend.save(str(folder / TOKENIZER_FILE))
    search = _approximate_search(pipeline)
    if search is not None:
        search.index.write(folder / INDEX_FILE)
    describe_export(pipeline, logits, export, folder)


def describe_export(pipeline: Pipeline, logits: LogitScale, export: Export, folder: Path) -> None:
    """Write ``export.json``."""
    search = _approximate_search(pipeline)
    data = {
        "format": EXPORT_FORMAT,
        "source": portable_name(export.source),
        "int8": export.int8,
        "parity": export.parity,
        "notes": export.notes,
        "versions": export.versions,
        "fixed": export.fixed,
        "config": pipeline.config.to_json(),
        "similarity": asdict(logits),
        "calibration": None if pipeline.calibration is None else pipeline.calibration.to_json(pipeline.labels),
        "vocabulary": pipeline.tokenizer.vocabulary.to_json(),
        **({} if search is None else {"index": asdict(search.report)}),
        "labels": [label_to_json(label) for label in pipeline.labels.labels],
    }
    data = signed(data, folder, EXPORT_FILE, (path.name for path in folder.iterdir()))
    (folder / EXPORT_FILE).write_text(json.dumps(data, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _approximate_search(pipeline: Pipeline) -> ApproximateSearch | None:
    """The approximate search of a pipeline, with its index; None if it searches exactly."""
    search = pipeline.search
    return search if isinstance(search, ApproximateSearch) else None


@dataclass(frozen=True)
class LoadedExport:
    """An export in memory.

    Attributes:
        export: What is known of it besides its labels.
        bank: Its labels; None if it has an older format, whose labels are fixed.
        old: The pipeline of an export of an older format.
    """

    export: Export
    bank: GraphBank | None = None
    old: Pipeline | None = None

    @property
    def pipeline(self) -> Pipeline:
        """The prediction pipeline."""
        if self.bank is not None:
            return self.bank.pipeline
        assert self.old is not None
        return self.old


def read_export(folder: Path, *, with_index: bool = True, runtime: str = "onnx", verify: bool = True) -> LoadedExport:
    """Load an export; MaskMatchError names what is damaged.

    Args:
        folder: The folder.
        with_index: Whether to load the index over the labels, if there is one.
        runtime: What computes vectors: a row of the table of runtimes.
        verify: Whether to check that all files are as they were written.
    """
    return read_stable(folder / EXPORT_FILE, lambda: _read_export(folder, with_index, runtime, verify))


def _read_export(folder: Path, with_index: bool, runtime: str, verify: bool) -> LoadedExport:
    own_revision = revision(folder / EXPORT_FILE)
    data = _read_json(folder)
    files = (runtime_row(runtime).file, *FILES, *([INDEX_FILE] if "index" in data else []))
    missing = [name for name in files if not (folder / name).exists()]
    if missing:
        raise MaskMatchError(f"The export {folder} is incomplete: {', '.join(missing)} is missing.")
    if verify:
        check_files(data, folder, EXPORT_FILE, [name for name in files if with_index or name != INDEX_FILE])
    try:
        config = MatcherConfig.from_json(data["config"])
        if data["format"] == 1 and len(config.prompts) > 1:
            raise MaskMatchError(f"{folder} holds a pool of prompts in an older form; export the classifier again.")
        labels = LabelSet(tuple(label_from_json(label) for label in data["labels"]))
        known = {name: data[name] for name in ("source", "int8", "parity", "notes", "versions")}
        export = Export(**known, fixed=data.get("fixed"), revision=own_revision)
        vocabulary = Vocabulary.from_json(data["vocabulary"], _read_tokenizer(folder / TOKENIZER_FILE))
        saved = data.get("calibration")
        calibration = None if saved is None else Calibration.from_json(saved, labels)
        report = SearchReport(**data["index"]) if "index" in data and with_index else None
        tokenizer = PromptTokenizer(vocabulary, config.max_length)
        arrays, metadata = _read_arrays(folder / LABELS_FILE)
        _check_finite(arrays, data["similarity"], folder / LABELS_FILE)
        graph = load_runtime(runtime, folder)
        if data["format"] < EDITABLE:
            numbers = data["similarity"]
            old = old_pipeline(
                config, tokenizer, labels, graph, arrays=arrays, numbers=numbers, calibration=calibration
            )
            loaded = LoadedExport(export, old=old)
        else:
            bank = GraphBank(config, tokenizer, LogitScale(**data["similarity"]), graph, fixed=export.fixed)
            _fill_bank(bank, labels, arrays, metadata, calibration)
            loaded = LoadedExport(export, bank)
    except MaskMatchError as error:
        if str(folder) in str(error):
            raise
        raise MaskMatchError(f"{folder / LABELS_FILE} is damaged: {error}") from None
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise MaskMatchError(f"{folder / EXPORT_FILE} is damaged: {error!r} does not fit.") from error
    _check_works(loaded.pipeline, folder)
    return loaded if report is None else _with_index(loaded, folder / INDEX_FILE, report)


def _fill_bank(
    bank: GraphBank,
    labels: LabelSet,
    arrays: Mapping[str, NDArray[Any]],
    metadata: Mapping[str, str],
    calibration: Calibration | None,
) -> None:
    """Give a bank its labels, and what is known of them."""
    bank.start_with(labels)
    if not bank.config.labels_in_context:
        own = {name: array for name, array in arrays.items() if name != BACKGROUND}
        if not bank.load_state_dict(own, metadata, same_weights=True) or not bank.has_vectors:
            raise MaskMatchError("it does not hold the vectors of the labels.")
    bank.learn(calibration=calibration)
    if BACKGROUND in arrays:
        bank.take_background(arrays[BACKGROUND].astype(np.float32))


def _check_works(pipeline: Pipeline, folder: Path) -> None:
    """Raise if a text gets no scores: a wrong setting fails here, not later."""
    scorer = pipeline.scorer
    vectors = pipeline.all_vectors(pipeline.tokenizer.pooled(pipeline.config.prompts, [probe(pipeline.config)]))
    scores = vectors if scorer.in_context else scorer.block(scorer.prepare(vectors), 0, min(len(scorer), PROBED))
    if not np.isfinite(np.exp(scores - scores.max())).all():
        raise MaskMatchError(f"The export {folder} is damaged: the scores of a text are NaN or inf.")


def _with_index(loaded: LoadedExport, path: Path, report: SearchReport) -> LoadedExport:
    """The same export with the index over its labels."""
    index = _read_index(path, report, loaded.pipeline.scorer)
    if index is None:
        return loaded
    if loaded.bank is None:
        return replace(loaded, old=replace(loaded.pipeline, index=index))
    loaded.bank.take_index(index)
    return loaded


def _read_json(folder: Path) -> dict[str, Any]:
    path = folder / EXPORT_FILE
    if not path.exists():
        raise MaskMatchError(f"{folder} is not an export ({EXPORT_FILE} is missing); maskmatch export makes one.")
    return read_json(folder, EXPORT_FILE, EXPORT_FORMAT, verify=False)  # all files are checked together


def _read_tokenizer(path: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises a bare Exception
        raise MaskMatchError(f"{path} is damaged and cannot be read: {error}") from error


def _read_index(path: Path, report: SearchReport, scorer: LabelScorer) -> MeasuredIndex | None:
    """The index over the labels; None if faiss is not installed."""
    if not index_available():
        logger.warning('%s is not used, because faiss is not installed: pip install "maskmatch[index]".', path)
        return None
    return MeasuredIndex(LabelIndex.read(path, scorer.vectors), report)


def _read_arrays(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """The arrays of the labels by name, and what says to which labels they belong."""
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import load_file

    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
        return load_file(path), metadata
    except (OSError, SafetensorError) as error:
        raise MaskMatchError(f"{path} is damaged and cannot be read: {error}") from error


def _check_finite(arrays: Mapping[str, NDArray[Any]], numbers: Mapping[str, Any], path: Path) -> None:
    """Raise if a number is NaN or inf."""
    scale, offset = numbers["scale"], numbers["offset"]
    if scale is None:
        raise KeyError("scale")
    found = [*arrays.values(), np.float64(scale), np.float64(0 if offset is None else offset)]
    if not all(np.isfinite(number).all() for number in found):
        raise MaskMatchError(f"{path} or {EXPORT_FILE} beside it is damaged: it holds NaN or inf.")
