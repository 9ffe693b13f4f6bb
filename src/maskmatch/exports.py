"""Exports: a classifier that predicts without torch, in a folder.

model.onnx            token ids, attention mask, mask positions → input vectors
tokenizer.json        the tokenizer, as the tokenizers library writes it
labels.safetensors    the label vectors as they are compared, and which phrases there are
labels.faiss          an index over the label vectors, where there are so many that one is used
export.json           config, labels, special tokens, the similarity's numbers, parity with torch, versions
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.config import MatcherConfig
from maskmatch.errors import MaskMatchError
from maskmatch.kept_labels import KeptLabels
from maskmatch.label_index import LabelIndex, index_available
from maskmatch.labels import LabelSet, label_from_json, label_to_json
from maskmatch.onnx_runtime import OnnxRuntime
from maskmatch.prediction import Prediction
from maskmatch.predictor import Predictor
from maskmatch.prompts import PromptTokenizer, Vocabulary
from maskmatch.search import ApproximateSearch, MeasuredIndex, SearchReport

if TYPE_CHECKING:
    from maskmatch.choices import SearchKind
    from maskmatch.prompts import TokenizedPrompts

logger = logging.getLogger("maskmatch")

FORMAT = 2
"""Counted up when an export written by this version could not be read rightly by an older one.

From 2 on, the graph joins the readings of a pool of prompts.
"""

EXPORT_FILE = "export.json"
MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
LABELS_FILE = "labels.safetensors"
INDEX_FILE = "labels.faiss"
FILES = (MODEL_FILE, TOKENIZER_FILE, LABELS_FILE, EXPORT_FILE)
"""What every export holds."""


def is_export(folder: Path) -> bool:
    """Whether a folder holds an export."""
    return (folder / EXPORT_FILE).exists()


@dataclass(frozen=True)
class Export:
    """What is known of an export besides its prediction path.

    Attributes:
        source: The classifier that was exported.
        int8: Whether its weights are quantised.
        parity: How far it is from torch, as :class:`maskmatch.parity.Parity` found; None before it was looked at.
        notes: What a reader of figures should know.
        versions: Of the libraries that wrote it.
    """

    source: str
    int8: bool
    parity: dict[str, Any] | None
    notes: list[str]
    versions: dict[str, str]


class ExportedMatcher(Predictor):
    """A classifier from an export: it predicts and evaluates like the MaskMatcher it was made from, without torch.

    Args:
        prediction: The prediction path.
        export: What else is known of it.
        name: What reports call it.
    """

    def __init__(self, prediction: Prediction, export: Export, name: str) -> None:
        super().__init__(prediction.labels)
        self.export = export
        self._path = prediction
        self._name = name

    @classmethod
    def from_pretrained(
        cls, folder: str | Path, *, threshold: float | None = None, search: SearchKind | None = None
    ) -> ExportedMatcher:
        """Load an export.

        Args:
            folder: The folder that ``maskmatch export`` wrote.
            threshold: With several labels a text: from which probability on a label applies.
            search: How the best labels are found: "auto", "exact" or "approximate"; None: as the classifier did.
        """
        matcher = read_export(Path(folder).expanduser(), with_index=search != "exact")
        if threshold is not None:
            matcher._check_several()
        config = matcher.config.changed(threshold=threshold, search=search)
        matcher._path = replace(matcher._path, config=config)
        return matcher

    @property
    def config(self) -> MatcherConfig:
        """Task, prompts, method, similarity."""
        return self._path.config

    @property
    def name(self) -> str:
        """What reports call it."""
        return self._name

    @property
    def notes(self) -> list[str]:
        """What a reader of figures should know about how they came to be, in sentences."""
        return self.export.notes

    def prediction(self) -> Prediction:
        """The prediction path."""
        return self._path

    def _tokenize(self, texts: list[Any]) -> TokenizedPrompts:
        return self._path.tokenize(texts)


def write_export(prediction: Prediction, export: Export, folder: Path) -> None:
    """Write all of an export but its graph, which is there already."""
    from safetensors.numpy import save_file

    kept = prediction.kept
    save_file({"vectors": kept.vectors, "present": kept.present}, folder / LABELS_FILE)
    prediction.tokenizer.vocabulary.backend.save(str(folder / TOKENIZER_FILE))
    search = _search_by_index(prediction)
    if search is not None:
        search.index.write(folder / INDEX_FILE)
    describe_export(prediction, export, folder)


def describe_export(prediction: Prediction, export: Export, folder: Path) -> None:
    """Write what is known of an export, beside the rest of it."""
    kept, search = prediction.kept, _search_by_index(prediction)
    data = {
        "format": FORMAT,
        "source": export.source,
        "int8": export.int8,
        "parity": export.parity,
        "notes": export.notes,
        "versions": export.versions,
        "config": prediction.config.to_json(),
        "similarity": {"scale": kept.scale, "offset": kept.offset},
        "vocabulary": prediction.tokenizer.vocabulary.to_json(),
        **({} if search is None else {"index": asdict(search.report)}),
        "labels": [label_to_json(label) for label in prediction.labels.labels],
    }
    (folder / EXPORT_FILE).write_text(json.dumps(data, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _search_by_index(prediction: Prediction) -> ApproximateSearch | None:
    """The search by an index over the labels, built now if that is how the best of them are found."""
    search = prediction.search
    return search if isinstance(search, ApproximateSearch) else None


def read_export(folder: Path, *, with_index: bool = True) -> ExportedMatcher:
    """Read an export from its folder; damage is named in a sentence.

    Args:
        folder: The folder.
        with_index: Whether an index over the labels is read, if there is one.
    """
    data = _read_json(folder)
    files = (*FILES, INDEX_FILE) if "index" in data else FILES
    missing = [name for name in files if not (folder / name).exists()]
    if missing:
        raise MaskMatchError(f"The export {folder} is not whole: {', '.join(missing)} is missing.")
    try:
        config = MatcherConfig.from_json(data["config"])
        if data["format"] == 1 and config.pool:
            raise MaskMatchError(f"{folder} holds a pool of prompts in an older form; export the classifier again.")
        labels = LabelSet(tuple(label_from_json(label) for label in data["labels"]))
        export = Export(*(data[name] for name in ("source", "int8", "parity", "notes", "versions")))
        vocabulary = Vocabulary.from_json(data["vocabulary"], _read_tokenizer(folder / TOKENIZER_FILE))
        kept = _read_labels(folder / LABELS_FILE, config, data["similarity"])
        report = SearchReport(**data["index"]) if "index" in data and with_index else None
    except (KeyError, TypeError, AttributeError) as error:
        raise MaskMatchError(f"{folder / EXPORT_FILE} is damaged: {error!r} does not fit.") from error
    if len(kept) != len(labels) or kept.vectors.shape[int(kept.in_context)] != kept.texts:
        raise MaskMatchError(f"{folder / LABELS_FILE} is damaged: it does not hold the vectors of the labels.")
    tokenizer = PromptTokenizer(vocabulary, config.max_length)
    runtime = OnnxRuntime(folder / MODEL_FILE)
    label_runtime = runtime if config.labels_in_context else None
    index = None if report is None else _read_index(folder / INDEX_FILE, report, kept)
    prediction = Prediction(config, tokenizer, labels, kept, runtime, label_runtime, index)
    return ExportedMatcher(prediction, export, str(folder))


def _read_json(folder: Path) -> dict[str, Any]:
    path = folder / EXPORT_FILE
    if not path.exists():
        raise MaskMatchError(f"{folder} holds no export ({EXPORT_FILE} is missing); maskmatch export makes one.")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        found = data["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MaskMatchError(f"{path} is damaged and cannot be read: {error}") from error
    if not isinstance(found, int) or found > FORMAT:
        raise MaskMatchError(
            f"{folder} was exported by a newer maskmatch (format {found}); this one reads formats up to {FORMAT}: "
            "upgrade with pip install -U maskmatch."
        )
    return dict(data)


def _read_tokenizer(path: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises a bare Exception
        raise MaskMatchError(f"{path} is damaged and cannot be read: {error}") from error


def _read_index(path: Path, report: SearchReport, kept: KeptLabels) -> MeasuredIndex | None:
    """The index over the labels; None where faiss is not there to read it."""
    if not index_available():
        logger.warning('%s is not used, as faiss is not there: pip install "maskmatch[index]".', path)
        return None
    return MeasuredIndex(LabelIndex.read(path, kept.vectors), report)


def _read_labels(path: Path, config: MatcherConfig, numbers: dict[str, float | None]) -> KeptLabels:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise MaskMatchError(f"{path} is damaged and cannot be read: {error}") from error
    scale, offset = numbers["scale"], numbers["offset"]
    if scale is None:
        raise KeyError("scale")
    in_context = config.labels_in_context
    return KeptLabels(tensors["vectors"], tensors["present"], config.similarity, scale, offset, in_context)
