"""The key of a cell: every setting that can change its result, written field by field as plain JSON.

The key is the lab's own format. It does not depend on how the product prints its classes, on the order of their fields
or on the installed version, so that committed cells stay valid while the product changes. A setting that the product
adds is written only if it differs from its default: at the default, results are what they were before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, asdict, fields
from typing import TYPE_CHECKING, Any

from maskmatch.config.similarity import SimilarityConfig

if TYPE_CHECKING:
    from collections.abc import Iterable

    from maskmatch.config.methods import Method
    from maskmatch.config.tasks import Task
    from maskmatch.config.training import TrainingConfig
    from maskmatch.labels import Label
    from maskmatch_lab.comparison.regimes import Regime
    from maskmatch_lab.comparison.runner import Plan
    from maskmatch_lab.comparison.variants import Variant

REVISION = "0.1.0"
"""Change this to run all cells again. It is the version with which the committed cells ran, and stays at that value
when the product's version changes: a release does not make results invalid."""

EXAMPLES_REVISION = 2
"""Increase this when the effect of label examples changes: cells with examples then run again."""

UNLABELLED_REVISION = 1
"""Increase this when learning from unlabelled texts changes: cells with such texts then run again."""

TASK_FIELDS = ("name", "description", "fields", "prompt", "label_prompt", "paraphrases", "label_paraphrases", "metric")
METHOD_FIELDS = ("name", "input_readout", "label_source", "label_readout", "transform", "similarity")
SIMILARITY_FIELDS = ("kind", "temperature", "learn_temperature", "phrases")
TRAINING_FIELDS = (
    "epochs",
    "learning_rate",
    "head_rate",
    "batch_size",
    "weight_decay",
    "hold",
    "label_encoding",
    "seed",
    "patience",
    "arguments",
)
LABEL_FIELDS = ("id", "name", "description", "phrases", "words")

METHOD_DEFAULTS = {"learning_rate": 2e-4}
SIMILARITY_DEFAULTS = {"masks": "mean"}
TRAINING_DEFAULTS = {"max_tokens": 8192, "example_share": None, "dropout": None}
"""Settings that were added after the first cells ran, with the values that reproduce those cells. They are written only
if they differ, also when the product changes its default."""


def digest(*parts: bytes) -> str:
    """SHA-256 of several byte strings; each is preceded by its length, so that their boundaries count."""
    result = hashlib.sha256()
    for part in parts:
        result.update(len(part).to_bytes(8, "big") + part)
    return result.hexdigest()


def cell_settings(plan: Plan) -> dict[str, Any]:
    """All settings that can change the result of a cell, as plain JSON."""
    labels, variant = plan.labels.labels, plan.variant
    settings: dict[str, Any] = {
        "maskmatch": REVISION,
        "dataset": plan.data.name,
        "task": task_key(plan.data.task),
        "labels": labels_digest(labels),
        "variant": variant_key(variant),
        "model": {"name": None if plan.model is None else str(plan.model), "digest": plan.weights},
        "regime": regime_key(plan.regime),
        "seed": plan.seed,
        "training": training_key(plan.training) if plan.regime.trains else None,
        "train": {"rows": len(plan.train), "digest": plan.train.digest},
        "dev": None if plan.dev is None else {"rows": len(plan.dev), "digest": plan.dev.digest},
        "measured": {"rows": len(plan.measured), "digest": plan.measured.digest},
    }
    if any(label.examples for label in labels):
        settings["examples"] = EXAMPLES_REVISION
    if variant.unlabelled is not None:
        texts = plan.unlabelled
        settings["unlabelled"] = {"rows": len(texts), "digest": digest(*(repr(text).encode() for text in texts))}
    if variant.row.reads_pairs and "prompt" not in variant.matcher:
        settings["pair_prompts"] = list(plan.data.task.pair_prompts)
    return settings


def cell_digest(settings: Mapping[str, Any]) -> str:
    """The digest of a cell's settings. The encoder counts by its weights; its name or folder does not."""
    return digest(json.dumps({**settings, "model": settings["model"]["digest"]}, sort_keys=True).encode())


def task_key(task: Task) -> dict[str, Any]:
    """A task, without its own method: the variant has one."""
    return _written(task, TASK_FIELDS, ignored=("method",))


def method_key(method: Method) -> dict[str, Any]:
    """A method."""
    return _written(method, METHOD_FIELDS, METHOD_DEFAULTS)


def similarity_key(similarity: SimilarityConfig) -> dict[str, Any]:
    """A similarity."""
    return _written(similarity, SIMILARITY_FIELDS, SIMILARITY_DEFAULTS)


def training_key(training: TrainingConfig) -> dict[str, Any]:
    """The settings of training, without checkpoints, which do not change the result."""
    return _written(
        training, TRAINING_FIELDS, TRAINING_DEFAULTS, ignored=("checkpoints", "resume", "calibrate", "keep_texts")
    )


def regime_key(regime: Regime) -> dict[str, Any]:
    """A regime."""
    left_out = {} if regime.left_out is None else {"left_out": regime.left_out}
    return {"kind": regime.kind, "amount": regime.amount, **left_out}


def variant_key(variant: Variant) -> dict[str, Any]:
    """A variant, without its encoder, which counts by its weights."""
    key: dict[str, Any] = {
        "name": variant.name,
        "method": method_key(variant.row),
        "matcher": {name: plain(value) for name, value in variant.matcher.items() if name != "model"},
        "training": plain(variant.training),
        "epoch_factor": variant.epoch_factor,
    }
    if variant.baseline is not None:
        key["baseline"] = variant.baseline
    if variant.labels is not None:
        key["labels"] = variant.labels.name
    if variant.unlabelled is not None:
        key["unlabelled"] = {**asdict(variant.unlabelled), "revision": UNLABELLED_REVISION}
    return key


def labels_digest(labels: Iterable[Label]) -> str:
    """The digest of labels in their order."""
    return digest(f"[{', '.join(map(label_text, labels))}]".encode())


def label_text(label: Label) -> str:
    """A label as text.

    Example:
        >>> from maskmatch import Label
        >>> label_text(Label("refund"))
        "Label(id='refund', name='refund', description='', phrases=(), words=())"
    """
    names = (*LABEL_FIELDS, *_further(label, LABEL_FIELDS, {}))
    return f"Label({', '.join(f'{name}={getattr(label, name)!r}' for name in names)})"


def plain(value: Any) -> Any:
    """A setting as plain JSON."""
    if isinstance(value, SimilarityConfig):
        return similarity_key(value)
    if isinstance(value, Mapping):
        return {str(name): plain(content) for name, content in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(content) for content in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _written(
    value: Any, names: tuple[str, ...], defaults: Mapping[str, Any] | None = None, ignored: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The named fields of a settings class, and further fields that differ from their defaults."""
    further = _further(value, (*names, *ignored), defaults or {})
    return {name: plain(getattr(value, name)) for name in (*names, *further)}


def _further(value: Any, known: tuple[str, ...], defaults: Mapping[str, Any]) -> list[str]:
    """The names of the other fields that differ from their defaults; ``defaults`` come before those of the class."""
    others = [field for field in fields(value) if field.name not in known]
    return [each.name for each in others if getattr(value, each.name) != defaults.get(each.name, _default(each))]


def _default(field: Field[Any]) -> Any:
    """The default of a field; a field without one never equals it, and is always written."""
    return field.default_factory() if field.default_factory is not MISSING else field.default
