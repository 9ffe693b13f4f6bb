"""What the golden folders hold: a small classifier of every method and form, and exports of some of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from maskmatch import Label, MaskMatcher, SimilarityConfig
from maskmatch.testing.tiny_encoders import write_tiny_encoder, write_tiny_mlm
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FIT = {"learning_rate": 1e-2, "batch_size": 4, "epochs": 4}
ASKED = [*TEXTS[::3], "Where is the money?", "card " * 90, "x", "Is [MASK] a <mask>?"]
PAIRS = [{"text": first, "text_b": second} for first, second in zip(TEXTS, TEXTS[5:] + TEXTS[:5], strict=True)]
PAIR_TRUTH = ["same" if number % 2 else "different" for number in range(len(PAIRS))]
SEVERAL = [
    [label, "urgent"] if "!" in text or "please" in text else [label] for text, label in zip(TEXTS, TRUTH, strict=True)
]
PHRASES = {"refund": ["money back", "parcel sent back"], "card lost": None, "exchange rate": "what money is worth"}
EXAMPLES = [Label("refund", examples=("Where is my refund?", "money back")), Label("card lost"), Label("rate")]
POOL, LABEL_POOL = ["{text} It is {mask}.", "{mask}: {text}"], ["{label} is {mask}.", "{mask} {label}"]
MANY = [f"{word} {number}" for word in ("refund", "card", "rate") for number in range(30)]


@dataclass(frozen=True)
class Case:
    """One golden folder: how its classifier is made, and the texts it is asked about."""

    make: Callable[[Path], MaskMatcher]
    asked: list[Any] = field(default_factory=lambda: ASKED)
    exports: tuple[str, ...] = ()


def _encoder(scratch: Path, family: str = "bert", head: bool = False) -> Path:
    folder = scratch / f"{family}{'-mlm' if head else ''}"
    if not folder.exists():
        (write_tiny_mlm if head else write_tiny_encoder)(family, folder)
    return folder


def _trained(
    *, family: str = "bert", head: bool = False, labels: Any = None, rows: Any = None, **options: Any
) -> Callable[[Path], MaskMatcher]:
    def make(scratch: Path) -> MaskMatcher:
        matcher = MaskMatcher.from_pretrained(_encoder(scratch, family, head), labels or LABELS, **options)
        texts, truth = rows or (TEXTS, TRUTH)
        return matcher.fit(texts, truth, **FIT)

    return make


def _new(*, family: str = "bert", labels: Any = None, **options: Any) -> Callable[[Path], MaskMatcher]:
    return lambda scratch: MaskMatcher.from_pretrained(_encoder(scratch, family), labels or LABELS, **options)


def _edited(scratch: Path) -> MaskMatcher:
    """Labels renamed, removed and added after training."""
    matcher = _trained(labels=[*LABELS, "parcel"])(scratch)
    matcher.rename_label("refund", "money back").remove_labels(["exchange rate"])
    return matcher.add_labels({"station": "a place where trains stop"})


def _numbered(scratch: Path) -> MaskMatcher:
    """Labels whose ids are no names: a number, a tuple, a boolean."""
    labels = {3: "refund", ("a", 1): "card lost", True: "exchange rate"}
    ids = dict(zip(LABELS, labels, strict=True))
    return _trained(labels=labels, rows=(TEXTS, [ids[label] for label in TRUTH]))(scratch)


def _adapted(scratch: Path) -> MaskMatcher:
    """Adapted to unlabelled texts, then edited."""
    texts = [f"{text} {number}" for number in range(10) for text in TEXTS]
    return _new()(scratch).adapt(texts, force=True).add_labels(["parcel"])


def _smoothed(scratch: Path) -> MaskMatcher:
    """Trained, then adapted to unlabelled texts."""
    texts = [f"{text} {number}" for number in range(10) for text in TEXTS]
    return _trained()(scratch).adapt(texts, force=True)


def _calibrated(scratch: Path) -> MaskMatcher:
    """Trained and calibrated on folds, with training texts and a scope, then edited."""
    matcher = MaskMatcher.from_pretrained(_encoder(scratch), LABELS)
    rows = [*TEXTS, "penguins swim", "it rains"], [*TRUTH, None, None]
    return matcher.fit(*rows, **FIT, keep_texts=True, out_of_scope_rows=True).add_labels(["parcel"])


NEW_CASES: dict[str, dict[str, Case]] = {
    "format-4": {
        "adapted": Case(_adapted, exports=("onnx", "int8")),
        "mean-matching": Case(_trained(method="mean-matching"), exports=("onnx",)),
    },
    "format-5": {
        "smoothed": Case(_smoothed, exports=("onnx", "int8")),
        "mask-mean-matching": Case(_trained(method="mask-mean-matching"), exports=("onnx",)),
    },
    "format-6": {
        "calibrated": Case(_calibrated, exports=("onnx", "int8")),
        "thresholds": Case(_trained(labels=[*LABELS, "urgent"], rows=(TEXTS, SEVERAL)), exports=("onnx",)),
    },
    "format-7": {"edited": Case(_edited, exports=("onnx", "int8"))},  # exports whose labels can be edited
}
"""What came with a format; the set of that format has nothing else, because all else is as before."""

CASES: dict[str, Case] = {
    "fine-tuning": Case(_trained(method="fine-tuning")),
    "soft-prompt": Case(_trained(method="soft-prompt", family="roberta")),
    "prompt-tuning": Case(_trained(method="prompt-tuning", head=True, labels=PHRASES)),
    "prompt-tuning-new-head": Case(_trained(method="prompt-tuning")),
    "semantic-matching": Case(_trained(method="semantic-matching")),
    "mask-matching": Case(_trained(), exports=("onnx", "int8")),
    "mask-matching-dot": Case(_trained(similarity="dot")),
    "learned-temperature": Case(
        _trained(family="roberta", similarity=SimilarityConfig(temperature=0.1, learn_temperature=True))
    ),
    "zero-shot": Case(_new(labels=PHRASES, phrase_join="max"), exports=("onnx",)),
    "pair-matching": Case(
        _trained(task="paraphrase", labels=["same", "different"], rows=(PAIRS, PAIR_TRUTH)),
        asked=PAIRS[:6],
        exports=("onnx", "int8"),
    ),
    "pair-in-one-prompt": Case(
        _new(task="nli", labels=["yes", "no"], prompt='"{text}" and "{text_b}": {mask}.'), asked=PAIRS[:6]
    ),
    "several-labels": Case(_trained(labels=[*LABELS, "urgent"], rows=(TEXTS, SEVERAL)), exports=("onnx",)),
    "several-labels-untrained": Case(_new(multi_label=True, labels=[*LABELS, "parcel"]), exports=("onnx",)),
    "several-masks-mean": Case(_trained(prompt="{mask} {text} is {mask}.", label_prompt="{label}: {mask} {mask}.")),
    "several-masks-concat": Case(
        _trained(prompt="{mask} {text} is {mask}.", label_prompt="{label}: {mask} {mask}.", masks="concat")
    ),
    "several-masks-late": Case(
        _trained(prompt="{mask} {text} is {mask}.", label_prompt="{label} {mask}", masks="late"), exports=("onnx",)
    ),
    "phrases": Case(_trained(labels=PHRASES, phrase_join="logsumexp"), exports=("onnx",)),
    "examples": Case(_new(labels=EXAMPLES)),
    "prompt-pool": Case(_trained(prompt=POOL, label_prompt=LABEL_POOL), exports=("onnx",)),
    "debiased": Case(_trained(debias="both")),
    "labels-in-context": Case(_trained(label_prompt="{text} Is it {label}? {mask}."), exports=("onnx",)),
    "edited-labels": Case(_edited),
    "numbered-labels": Case(_numbered),
    "approximate-search": Case(_new(labels=MANY, search="approximate"), exports=("onnx",)),
}
