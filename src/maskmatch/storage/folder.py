"""Saved classifiers: a folder with the encoder in Hugging Face layout, one JSON file and the label vectors.

    config.json model.safetensors tokenizer.json …   the encoder, as transformers writes it
    maskmatch.json                                    config, labels, versions, the result of training
    labels.safetensors                                label vectors, unless labels are read with each text, and the
                                                      centroids of training texts
    head.safetensors                                  what else the method has learned, such as a temperature
    README.md                                         the model card

A folder is written whole or not at all. Nothing in it is pickled.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import platform
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file

from maskmatch.config.matcher import MatcherConfig
from maskmatch.config.training import TrainingSummary
from maskmatch.errors import MaskMatchError
from maskmatch.files import write_folder
from maskmatch.labels import LabelSet, label_from_json, label_to_json
from maskmatch.labels.calibration import Calibration
from maskmatch.model.default_calibration import default_calibration
from maskmatch.model.encoder import Encoder, move_encoder
from maskmatch.model.mlm_head import Head, HeadConfig, pretrained_head
from maskmatch.model.model_bank import ModelBank
from maskmatch.storage.integrity import check_files, is_file_name, read_stable, revision, signed
from maskmatch.storage.layout import (
    CONFIG_FILE,
    FORMAT,
    HEAD_FILE,
    LABELS_FILE,
    check_target,
    portable_name,
    probe,
    read_json,
)
from maskmatch.storage.model_card import model_card

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch
    from numpy.typing import NDArray

logger = logging.getLogger("maskmatch")

CARD_FILE = "README.md"
KEPT_TEXTS = "kept_texts"
OLD_TENSORS = {"centres": "centroids", "centre_labels": "centroid_labels", "centre_shares": "centroid_weights"}
"""What tensors of labels.safetensors were called up to format 2."""


@dataclass(frozen=True)
class Classifier:
    """What a folder holds of a classifier.

    Attributes:
        encoder: The encoder.
        bank: Model, config, labels and all that is known of them.
        training: The result of the last training run.
        evaluation: The headline figures of the last evaluation, for the model card.
        revision: What identifies the content of the folder that it was loaded from.
    """

    encoder: Encoder
    bank: ModelBank
    training: TrainingSummary | None = None
    evaluation: Mapping[str, Any] | None = None
    revision: str | None = None


# -- writing -------------------------------------------------------------------------------------------------


def write_classifier(classifier: Classifier, folder: Path, *, sync: bool = True) -> str | None:
    """Write a classifier into a folder, whole or not at all; other files in the folder stay. Returns its revision.

    Args:
        classifier: The classifier.
        folder: The folder.
        sync: Whether the folder must survive a power loss.
    """
    check_target(folder)
    with classifier.bank.lock:  # labels may be edited while the encoder is written
        known = _Known.of(classifier.bank)
    try:
        with write_folder(folder, ours=_files(folder), sync=sync) as scratch:
            _write_files(classifier, known, scratch)
    except SafetensorError as error:  # a full disk, for instance
        raise MaskMatchError(f"{folder} could not be written: {error}; what was there before is unchanged.") from error
    return revision(folder / CONFIG_FILE)


@dataclass(frozen=True)
class _Known:
    """What a bank knows at one moment, as it is saved."""

    config: dict[str, Any]
    labels: list[dict[str, Any]]
    arrays: dict[str, NDArray[Any]]
    metadata: dict[str, str]
    learned: dict[str, torch.Tensor]
    centroids: int
    adapted: int
    calibration: dict[str, Any] | None

    @classmethod
    def of(cls, bank: ModelBank) -> _Known:
        arrays, metadata = bank.state_dict()
        labels = [label_to_json(label) for label in bank.known_labels.labels]
        learned = _plain(bank.learned_state())
        adapted = 0 if bank.adaptation is None else bank.adaptation.texts
        calibration = None if bank.calibration is None else bank.calibration.to_json(bank.known_labels)
        parts = bank.config.to_json(), labels, arrays, metadata, learned, len(bank.centroids), adapted
        return cls(*parts, calibration)


def _write_files(classifier: Classifier, known: _Known, folder: Path) -> None:
    bank, learned = classifier.bank, known.learned
    classifier.encoder.save(folder)
    if known.arrays:
        arrays = {name: np.ascontiguousarray(array) for name, array in known.arrays.items()}
        save_arrays(arrays, folder / LABELS_FILE, metadata={**known.metadata, "weights": _fingerprint(folder)})
    if learned:
        save_file(learned, folder / HEAD_FILE)
    head = bank.model.head_config
    data: dict[str, Any] = {
        "format": FORMAT,
        "versions": {
            **{name: version(name) for name in ("maskmatch", "torch", "transformers")},
            "python": platform.python_version(),
        },
        "encoder": portable_name(classifier.encoder.source),
        "config": known.config,
        "head": None if head is None else asdict(head),
        "labels": known.labels,
        "untrained": bank.model.similarity.untrained,
        "labels_with_centroids": known.centroids,
        "adapted_to_texts": known.adapted,
        "calibration": known.calibration,
        "keeps_texts": KEPT_TEXTS in known.arrays,
        "training": None if classifier.training is None else asdict(classifier.training),
        "evaluation": None if classifier.evaluation is None else dict(classifier.evaluation),
    }
    log_scale = learned.get("similarity.log_scale")
    temperature = None if log_scale is None else math.exp(-float(log_scale))
    (folder / CARD_FILE).write_text(model_card(data, temperature), encoding="utf-8")
    data["files"] = sorted([*(path.name for path in folder.iterdir()), CONFIG_FILE])
    data = signed(data, folder, CONFIG_FILE, set(data["files"]) - {CARD_FILE})  # people edit the card
    text = json.dumps(data, ensure_ascii=False, indent=2)
    (folder / CONFIG_FILE).write_text(text + "\n", encoding="utf-8")


def push_classifier(classifier: Classifier, repo_id: str, *, private: bool, token: str | None) -> str:
    """Upload a classifier to the hub; returns the address of the commit."""
    import tempfile

    from huggingface_hub import HfApi

    api = HfApi(token=token)
    with tempfile.TemporaryDirectory(prefix="maskmatch-") as scratch:
        folder = Path(scratch) / "model"
        write_classifier(classifier, folder, sync=False)
        api.create_repo(repo_id, private=private, exist_ok=True)
        commit = api.upload_folder(repo_id=repo_id, folder_path=folder, commit_message="Upload a maskmatch classifier")
    return str(getattr(commit, "commit_url", commit))


# -- reading -------------------------------------------------------------------------------------------------


def new_classifier(encoder: Encoder, folder: Path, max_length: int | None, options: Mapping[str, Any]) -> Classifier:
    """A new classifier on a pretrained encoder.

    Args:
        encoder: The encoder.
        folder: Its folder, which may hold a head, too.
        max_length: The maximum number of tokens of a prompted text; None: the default.
        options: Task, prompts, method, similarity and so on, as ``MatcherConfig.make`` takes them.
    """
    config = MatcherConfig.make(**options, max_length=encoder.max_length(max_length))
    head = pretrained_head(folder, encoder.source) if config.method.has_word_head else None
    bank = ModelBank.of(encoder, config, head)
    bank.learn(calibration=default_calibration(encoder.source, config))
    return Classifier(encoder, bank)


def read_classifier(folder: Path, source: str, device: str | None = None, *, verify: bool = True) -> Classifier:
    """Load a classifier from a folder; MaskMatchError names what is damaged.

    Args:
        folder: The folder.
        source: What to call it.
        device: Where to compute; None: on a GPU if there is one.
        verify: Whether to check that all files are as they were saved.
    """
    return read_stable(folder / CONFIG_FILE, lambda: _read_classifier(folder, source, device, verify))


def _read_classifier(folder: Path, source: str, device: str | None, verify: bool) -> Classifier:
    path = folder / CONFIG_FILE
    own_revision, data = revision(path), read_json(folder, verify=verify)
    try:
        config = MatcherConfig.from_json(data["config"])
        labels = LabelSet(tuple(label_from_json(label) for label in data["labels"]))
        saved = data.get("calibration")
        calibration = None if saved is None else Calibration.from_json(saved, labels)
        training = TrainingSummary(**data["training"]) if data.get("training") else None
        head_config = HeadConfig(**data["head"]) if data.get("head") else None
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise MaskMatchError(f"{path} is damaged: {error!r} does not fit.") from error
    missing = [name for name in _listed(data) if not (folder / name).exists() and name != CARD_FILE]
    if missing:
        raise MaskMatchError(f"The saved classifier {folder} is incomplete: {', '.join(missing)} is missing.")
    checked = verify and check_files(data, folder, CONFIG_FILE)
    learned = _read_tensors(folder / HEAD_FILE) if (folder / HEAD_FILE).exists() else {}
    encoder = replace(Encoder.load(folder, source), source=str(data.get("encoder") or source))
    move_encoder(encoder, device)
    head = None if head_config is None else Head.of_saved(head_config, learned)
    bank = ModelBank.of(encoder, config, head, labels)
    try:
        bank.load_learned_state(learned, untrained=data.get("untrained"))
    except MaskMatchError as error:
        raise MaskMatchError(f"{HEAD_FILE} is damaged: {error}") from None
    if config.labels_in_context or _load_labels(bank, folder, verified=checked):
        bank.learn(calibration=calibration)
    _check_finite(dict(bank.model.named_parameters()), folder)
    if bank.model.device.type != "meta":  # which computes nothing
        vectors = bank.model.encode(
            bank.tokenizer.pooled(config.prompts, [probe(config)])
        )  # a wrong setting fails here
        _check_finite({"the vector of a text": vectors}, folder)
    return Classifier(encoder, bank, training, data.get("evaluation"), own_revision)


def _load_labels(bank: ModelBank, folder: Path, *, verified: bool) -> bool:
    """Load label vectors and centroids; returns whether they still belong to the weights and labels of the folder.

    Args:
        bank: The bank.
        folder: The folder.
        verified: Whether all files are as they were saved, so that they belong together.
    """
    path = folder / LABELS_FILE
    tensors = {OLD_TENSORS.get(name, name): tensor for name, tensor in _read_tensors(path).items()}
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
    _check_finite(tensors, folder)
    same_weights = verified or metadata.get("weights") == _fingerprint(folder)
    try:
        arrays = {name: _array(tensor) for name, tensor in tensors.items()}
        whole = bank.load_state_dict(arrays, metadata, same_weights=same_weights)
    except MaskMatchError as error:
        raise MaskMatchError(f"{path} is damaged: {error}") from None
    if verified and not whole:  # all files are as they were saved: they are of two saves
        raise MaskMatchError(f"{path} belongs to another classifier than {CONFIG_FILE} beside it.")
    if not whole:
        logger.warning("Weights or labels of %s were changed by hand: what was learned of texts is dropped.", folder)
    return whole and same_weights


def _check_finite(tensors: Mapping[str, torch.Tensor], folder: Path) -> None:
    """Raise if a number is NaN or inf: every text would get the same label."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.is_meta and not bool(tensor.isfinite().all()):
            raise MaskMatchError(f"The saved classifier {folder} is damaged: {name} holds NaN or inf.")


def _plain(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone().contiguous().cpu() for name, tensor in tensors.items()}


def _array(tensor: torch.Tensor) -> NDArray[Any]:
    """A tensor as an array; numpy has no bfloat16."""
    array: NDArray[Any] = (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    return array


def _read_tensors(path: Path) -> dict[str, torch.Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise MaskMatchError(f"{path} is damaged and cannot be read: {error}") from error


def _fingerprint(folder: Path) -> str:
    """A digest of the encoder's weights in the folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        if path.name not in (LABELS_FILE, HEAD_FILE):
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()


def _files(folder: Path) -> list[str]:
    """The files that an earlier save wrote: everything else in the folder is the user's and stays."""
    if not (folder / CONFIG_FILE).exists():
        return []
    return _listed(read_json(folder, verify=False))


def _listed(data: Mapping[str, Any]) -> list[str]:
    """The names of files that a folder's JSON file lists."""
    names = data.get("files", [])
    if not isinstance(names, list) or not all(is_file_name(name) for name in names):
        raise MaskMatchError(f"{CONFIG_FILE} is damaged: its list of files holds something else than names.")
    return names
