"""The folder of an export: a classifier that predicts without torch.

model.onnx            token ids, attention mask, mask positions → input vectors
tokenizer.json        the tokenizer, as the tokenizers library writes it
labels.safetensors    the label vectors, prepared for the similarity, and which phrases are present
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
from maskmatch.labels.layout import LabelLayout
from maskmatch.labels.scope import SCOPE, Scope
from maskmatch.prediction.index import LabelIndex, index_available
from maskmatch.prediction.label_scorer import LabelScorer
from maskmatch.prediction.pipeline import Pipeline
from maskmatch.prediction.runtimes import load_runtime, runtime_row
from maskmatch.prediction.search import ApproximateSearch, MeasuredIndex, SearchReport
from maskmatch.prompts import PromptTokenizer, Vocabulary
from maskmatch.storage.integrity import check_files, read_stable, revision, signed
from maskmatch.storage.layout import EXPORT_FILE, portable_name, probe, read_json

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

logger = logging.getLogger("maskmatch")

FORMAT = 6
"""Counted up when an older version could not read an export of this version correctly.

From 2 on, the graph averages over a pool of prompts. From 3 on, "untrained" is a field. From 4 on, the classifier may
be adapted to unlabelled texts. From 5 on, it may smooth texts. From 6 on, probabilities may be calibrated.
"""

TOKENIZER_FILE = "tokenizer.json"
LABELS_FILE = "labels.safetensors"
INDEX_FILE = "labels.faiss"
PROBED = 1000
"""With how many labels a text is compared to find out whether an export works."""

FILES = (TOKENIZER_FILE, LABELS_FILE, EXPORT_FILE)
"""The files of every export, besides the graph of its runtime."""


def is_export(folder: Path) -> bool:
    """Whether a folder holds an export."""
    return (folder / EXPORT_FILE).exists()


@dataclass(frozen=True)
class Export:
    """What is known of an export besides its pipeline.

    Attributes:
        source: The classifier that was exported.
        int8: Whether its weights are quantised.
        parity: How much it differs from torch, as ``Parity.to_dict`` gives it; None before it was measured.
        notes: What a reader of its metrics should know.
        versions: The versions of the libraries that wrote it.
        revision: What identifies the content of the folder that it was loaded from.
    """

    source: str
    int8: bool
    parity: dict[str, Any] | None
    notes: list[str]
    versions: dict[str, str]
    revision: str | None = None


def write_export(pipeline: Pipeline, export: Export, folder: Path) -> None:
    """Write all of an export but its graph, which is there already."""
    from safetensors.numpy import save_file

    scorer = pipeline.scorer
    learned = {"origin": scorer.origin, "neighbours": scorer.neighbours, "bias": scorer.bias}
    arrays: dict[str, NDArray[Any]] = {name: array for name, array in learned.items() if array is not None}
    if pipeline.scope is not None:
        arrays |= {f"{SCOPE}{name}": array for name, array in pipeline.scope.to_arrays().items()}
    elif pipeline.background is not None:
        arrays["background"] = pipeline.background().astype(np.float16)
    arrays |= {"vectors": scorer.vectors, "present": scorer.layout.present}
    # The library writes the memory of an array as it is, also if it is transposed.
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, folder / LABELS_FILE)
    pipeline.tokenizer.vocabulary.backend.save(str(folder / TOKENIZER_FILE))
    search = _approximate_search(pipeline)
    if search is not None:
        search.index.write(folder / INDEX_FILE)
    describe_export(pipeline, export, folder)


def describe_export(pipeline: Pipeline, export: Export, folder: Path) -> None:
    """Write ``export.json``."""
    scorer, search = pipeline.scorer, _approximate_search(pipeline)
    data = {
        "format": FORMAT,
        "source": portable_name(export.source),
        "int8": export.int8,
        "parity": export.parity,
        "notes": export.notes,
        "versions": export.versions,
        "config": pipeline.config.to_json(),
        "similarity": {"scale": scorer.scale, "offset": scorer.offset, "untrained": scorer.untrained},
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


def read_export(
    folder: Path, *, with_index: bool = True, runtime: str = "onnx", verify: bool = True
) -> tuple[Pipeline, Export]:
    """Load an export; MaskMatchError names what is damaged.

    Args:
        folder: The folder.
        with_index: Whether to load the index over the labels, if there is one.
        runtime: What computes input vectors: a row of the table of runtimes.
        verify: Whether to check that all files are as they were written.
    """
    return read_stable(folder / EXPORT_FILE, lambda: _read_export(folder, with_index, runtime, verify))


def _read_export(folder: Path, with_index: bool, runtime: str, verify: bool) -> tuple[Pipeline, Export]:
    own_revision = revision(folder / EXPORT_FILE)
    data = _read_json(folder)
    files = (runtime_row(runtime).file, *FILES, *([INDEX_FILE] if "index" in data else []))
    missing = [name for name in files if not (folder / name).exists()]
    if missing:
        raise MaskMatchError(f"The export {folder} is incomplete: {', '.join(missing)} is missing.")
    used = [name for name in files if with_index or name != INDEX_FILE]
    if verify:
        check_files(data, folder, EXPORT_FILE, used)
    try:
        config = MatcherConfig.from_json(data["config"])
        if data["format"] == 1 and len(config.prompts) > 1:
            raise MaskMatchError(f"{folder} holds a pool of prompts in an older form; export the classifier again.")
        labels = LabelSet(tuple(label_from_json(label) for label in data["labels"]))
        export = Export(*(data[name] for name in ("source", "int8", "parity", "notes", "versions")))
        vocabulary = Vocabulary.from_json(data["vocabulary"], _read_tokenizer(folder / TOKENIZER_FILE))
        scorer, scope, background = _read_scorer(folder / LABELS_FILE, config, data["similarity"])
        saved = data.get("calibration")
        calibration = None if saved is None else Calibration.from_json(saved, labels)
        report = SearchReport(**data["index"]) if "index" in data and with_index else None
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise MaskMatchError(f"{folder / EXPORT_FILE} is damaged: {error!r} does not fit.") from error
    if len(scorer) != len(labels) or scorer.vectors.shape[int(scorer.in_context)] != scorer.layout.size:
        raise MaskMatchError(f"{folder / LABELS_FILE} is damaged: it does not hold the vectors of the labels.")
    tokenizer = PromptTokenizer(vocabulary, config.max_length)
    graph = load_runtime(runtime, folder)
    label_graph = graph if config.labels_in_context else None
    index = None if report is None else _read_index(folder / INDEX_FILE, report, scorer)
    pipeline = Pipeline(
        config,
        tokenizer,
        labels,
        scorer,
        graph,
        label_graph,
        index,
        calibration=calibration,
        scope=scope,
        background=None if background is None else lambda: background,
    )
    vectors = pipeline.all_vectors(tokenizer.pooled(config.prompts, [probe(config)]))
    # A wrong setting fails here, not later.
    scores = vectors if scorer.in_context else scorer.block(scorer.prepare(vectors), 0, min(len(scorer), PROBED))
    if not np.isfinite(np.exp(scores - scores.max())).all():
        raise MaskMatchError(f"The export {folder} is damaged: the scores of a text are NaN or inf.")
    return pipeline, replace(export, revision=own_revision)


def _read_json(folder: Path) -> dict[str, Any]:
    path = folder / EXPORT_FILE
    if not path.exists():
        raise MaskMatchError(f"{folder} is not an export ({EXPORT_FILE} is missing); maskmatch export makes one.")
    return read_json(folder, EXPORT_FILE, FORMAT, verify=False)  # all files are checked together


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


def _read_scorer(
    path: Path, config: MatcherConfig, numbers: dict[str, Any]
) -> tuple[LabelScorer, Scope | None, NDArray[np.float32] | None]:
    """The scorer; what texts of the labels look like; and the vectors of names from many domains."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise MaskMatchError(f"{path} is damaged and cannot be read: {error}") from error
    scale, offset = numbers["scale"], numbers["offset"]
    if scale is None:
        raise KeyError("scale")
    numbers_found = [*tensors.values(), np.float64(scale), np.float64(0 if offset is None else offset)]
    if not all(np.isfinite(number).all() for number in numbers_found):
        raise MaskMatchError(f"{path} or {EXPORT_FILE} beside it is damaged: it holds NaN or inf.")
    untrained = numbers.get("untrained", offset == config.similarity.row.offset)  # older exports do not say
    layout = LabelLayout(tensors["present"].sum(axis=1))
    arrays = {name.removeprefix(SCOPE): each for name, each in tensors.items() if name.startswith(SCOPE)}
    scorer = LabelScorer(
        tensors["vectors"],
        layout,
        config.similarity,
        scale,
        offset,
        untrained,
        config.labels_in_context,
        tensors.get("origin"),
        tensors.get("neighbours"),
        tensors.get("bias"),
    )
    background = tensors.get("background")
    scope = Scope.from_arrays(arrays) if arrays else None
    return scorer, scope, None if background is None else background.astype(np.float32)
