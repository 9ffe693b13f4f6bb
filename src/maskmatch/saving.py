"""Saved classifiers: a folder with the encoder in Hugging Face layout, one JSON file and the label vectors.

    config.json model.safetensors tokenizer.json …   the encoder, as transformers writes it
    maskmatch.json                                    config, labels, versions, what training did
    labels.safetensors                                the label vectors, unless labels are read with each text,
                                                      and where the training texts of labels lie
    head.safetensors                                  what else the method has learned, such as a temperature
    README.md                                         the model card

A folder is written whole or not at all. Nothing in it is pickled.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import platform
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from maskmatch.config import MatcherConfig
from maskmatch.encoder import Encoder
from maskmatch.errors import MaskMatchError
from maskmatch.label_examples import NO_CENTRES, Centres
from maskmatch.labels import LabelSet, label_from_json, label_to_json
from maskmatch.mlm_head import HeadConfig
from maskmatch.model_card import model_card
from maskmatch.training_config import TrainingSummary
from maskmatch.whole_folder import recover, whole_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FORMAT = 2
"""Counted up when a folder written by this version could not be read rightly by an older one."""

logger = logging.getLogger("maskmatch")
CONFIG_FILE = "maskmatch.json"
LABELS_FILE = "labels.safetensors"
HEAD_FILE = "head.safetensors"


@dataclass(frozen=True)
class SavedModel:
    """What is saved of a classifier."""

    encoder: Encoder
    config: MatcherConfig
    labels: LabelSet
    label_vectors: torch.Tensor | None  # (F, masks, dim); None: read with each text, or not of these weights
    label_vector_key: str
    """What the label vectors hang on besides the weights and the labels' words."""
    head: Mapping[str, torch.Tensor]
    """What the method has learned besides encoder and label vectors."""
    head_config: HeadConfig | None = None
    """The form of the head over the mask, if the method has one."""
    centres: Centres = NO_CENTRES
    """Where the training texts of labels lie."""
    training: TrainingSummary | None = None
    evaluation: Mapping[str, Any] | None = None
    """The headline figures of the last evaluation, for the model card."""


def is_saved(folder: Path) -> bool:
    """Whether a folder holds a saved classifier, rather than a bare encoder."""
    return (folder / CONFIG_FILE).exists()


def check_target(folder: Path, ours: Callable[[Path], bool] = is_saved, kind: str = "saved classifier") -> None:
    """Refuse a folder that holds anything but what is to be replaced, or that cannot be made.

    Args:
        folder: Where something is to be saved.
        ours: Whether a folder holds what may be replaced.
        kind: What that is called.
    """
    recover(folder)
    if folder.exists() and not (folder.is_dir() and (ours(folder) or not any(folder.iterdir()))):
        raise MaskMatchError(f"{folder} is there already and is no {kind}; choose another folder, nothing was written.")
    above = next(parent for parent in folder.absolute().parents if parent.exists())
    if not (above.is_dir() and os.access(above, os.W_OK)):
        raise MaskMatchError(f"{folder} cannot be written: {above} is not a folder in which files can be made.")


def write_model(model: SavedModel, folder: Path) -> Path:
    """Write a classifier to a folder. If anything fails on the way, what was there before stays as it was."""
    check_target(folder)
    labels = [label_to_json(label) for label in model.labels.labels]  # refuses ids that cannot be saved
    try:
        with whole_folder(folder, ours=_files(folder)) as scratch:
            _write_files(model, labels, scratch)
    except SafetensorError as error:  # a full disk, for instance
        raise MaskMatchError(f"{folder} could not be written: {error}; what was there before is as it was.") from error
    return folder


def _write_files(model: SavedModel, labels: list[dict[str, Any]], folder: Path) -> None:
    model.encoder.save(folder)
    if model.label_vectors is not None:
        metadata = {
            "key": model.label_vector_key,
            "weights": _fingerprint(folder),
            "texts": _digest_of_texts(model.labels, model.config),
            "ids": _digest_of_ids(model.labels),
        }
        tensors = {"vectors": model.label_vectors, **_centre_tensors(model)}
        vectors = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
        save_file(vectors, folder / LABELS_FILE, metadata=metadata)
    if model.head:
        head = {name: tensor.detach().contiguous().cpu() for name, tensor in model.head.items()}
        save_file(head, folder / HEAD_FILE)
    data: dict[str, Any] = {
        "format": FORMAT,
        "versions": {
            **{name: version(name) for name in ("maskmatch", "torch", "transformers")},
            "python": platform.python_version(),
        },
        "encoder": model.encoder.source,
        "config": model.config.to_json(),
        "head": None if model.head_config is None else asdict(model.head_config),
        "labels": labels,
        "moved_labels": len(model.centres),
        "training": None if model.training is None else asdict(model.training),
        "evaluation": None if model.evaluation is None else dict(model.evaluation),
    }
    (folder / "README.md").write_text(model_card(data, _temperature(model)), encoding="utf-8")
    data["files"] = sorted([*(path.name for path in folder.iterdir()), CONFIG_FILE])
    text = json.dumps(data, ensure_ascii=False, indent=2)
    (folder / CONFIG_FILE).write_text(text + "\n", encoding="utf-8")


def _temperature(model: SavedModel) -> float | None:
    """The temperature as it was learned."""
    log_scale = model.head.get("similarity.log_scale")
    return None if log_scale is None else math.exp(-float(log_scale))


def read_model(folder: Path, source: str) -> SavedModel:
    """Read a classifier from a folder; damage is named in a sentence."""
    data = _read_config(folder)
    try:
        config = MatcherConfig.from_json(data["config"])
        labels = LabelSet(tuple(label_from_json(label) for label in data["labels"]))
        training = TrainingSummary(**data["training"]) if data.get("training") else None
        head_config = HeadConfig(**data["head"]) if data.get("head") else None
    except (KeyError, TypeError, AttributeError) as error:
        raise MaskMatchError(f"{folder / CONFIG_FILE} is damaged: {error!r} does not fit.") from error
    missing = [name for name in data.get("files", []) if not (folder / name).exists() and name != "README.md"]
    if missing:
        raise MaskMatchError(f"The saved classifier {folder} is not whole: {', '.join(missing)} is missing.")
    vectors, key, centres = _read_vectors(folder, labels, config)
    head = _read_tensors(folder / HEAD_FILE) if (folder / HEAD_FILE).exists() else {}
    encoder = replace(Encoder.load(folder, source), source=str(data.get("encoder") or source))
    if vectors is not None and not config.method.reads_labels and vectors.shape[2] != encoder.dimension:
        raise MaskMatchError(f"{folder / LABELS_FILE} is damaged: its vectors are not of the encoder's size.")
    return SavedModel(
        encoder, config, labels, vectors, key, head, head_config, centres, training, data.get("evaluation")
    )


def push_model(model: SavedModel, repo_id: str, *, private: bool, token: str | None) -> str:
    """Upload a classifier to the hub."""
    import tempfile

    from huggingface_hub import HfApi

    api = HfApi(token=token)
    with tempfile.TemporaryDirectory(prefix="maskmatch-") as scratch:
        folder = write_model(model, Path(scratch) / "model")
        api.create_repo(repo_id, private=private, exist_ok=True)
        commit = api.upload_folder(repo_id=repo_id, folder_path=folder, commit_message="Upload a maskmatch classifier")
    return str(getattr(commit, "commit_url", commit))


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG_FILE
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        found = data["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MaskMatchError(f"{path} is damaged and cannot be read: {error}") from error
    if not isinstance(found, int) or found > FORMAT:
        raise MaskMatchError(
            f"{folder} was saved by a newer maskmatch "
            f"({data.get('versions', {}).get('maskmatch', 'unknown')}, format {found}); this one reads "
            f"formats up to {FORMAT}: upgrade with pip install -U maskmatch."
        )
    return dict(data)


def _read_vectors(folder: Path, labels: LabelSet, config: MatcherConfig) -> tuple[torch.Tensor | None, str, Centres]:
    """The label vectors with their key, and the centres of labels.

    There are no vectors if they were computed with other weights or for other labels, or are not kept.
    """
    if config.labels_in_context:
        return None, "", NO_CENTRES
    path = folder / LABELS_FILE
    tensors = _read_tensors(path)
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
    vectors = tensors.get("vectors")
    learned = not config.method.reads_labels  # one vector a label, whatever it reads
    if vectors is None or vectors.dim() != 3 or (learned and len(vectors) != len(labels)):
        raise MaskMatchError(f"{path} is damaged: it does not hold the vectors of the labels.")
    same_weights = learned or metadata.get("weights") == _fingerprint(folder)
    belongs = learned or (same_weights and metadata.get("texts") == _digest_of_texts(labels, config))
    centres = NO_CENTRES
    if "centres" in tensors and same_weights and metadata.get("ids") == _digest_of_ids(labels):
        centres = _centres_of(tensors, labels, path)
    elif "centres" in tensors:
        logger.warning("Weights or labels of %s were changed by hand: its training texts no longer count.", folder)
    return (vectors if belongs else None), metadata.get("key", ""), centres


def _centre_tensors(model: SavedModel) -> dict[str, torch.Tensor]:
    """The centres of labels, (k, masks, dim), with the labels' positions and the centres' shares, (k,)."""
    centres = model.centres
    if not len(centres):
        return {}
    places = torch.tensor([model.labels.position(id_) for id_ in centres.ids])
    return {"centres": centres.vectors, "centre_labels": places, "centre_shares": centres.shares}


def _centres_of(tensors: Mapping[str, torch.Tensor], labels: LabelSet, path: Path) -> Centres:
    """The centres from what :func:`_centre_tensors` wrote."""
    try:
        ids = tuple(labels.labels[place].id for place in tensors["centre_labels"].tolist())
        return Centres(ids, tensors["centres"], tensors["centre_shares"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise MaskMatchError(f"{path} is damaged: it does not hold where the texts of labels lie.") from error


def _read_tensors(path: Path) -> dict[str, torch.Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise MaskMatchError(f"{path} is damaged and cannot be read: {error}") from error


def _fingerprint(folder: Path) -> str:
    """A digest of the encoder's weights as they lie in the folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        if path.name not in (LABELS_FILE, HEAD_FILE):
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()


def _digest_of_texts(labels: LabelSet, config: MatcherConfig) -> str:
    """A digest of what the method reads for the labels."""
    words = config.method.reads_words
    texts = [label.verbalizer if words else label.parts for label in labels.labels]
    return hashlib.sha256(json.dumps(texts, default=vars).encode()).hexdigest()


def _digest_of_ids(labels: LabelSet) -> str:
    """A digest of what the labels are known by."""
    return hashlib.sha256(json.dumps([label_to_json(label)["id"] for label in labels.labels]).encode()).hexdigest()


def _files(folder: Path) -> list[str]:
    """The files that an earlier save wrote: everything else in the folder is the user's and stays."""
    if not (folder / CONFIG_FILE).exists():
        return []
    return [str(name) for name in _read_config(folder).get("files", [])]
