"""Exports: they predict what torch predicts, for every family and method, without torch."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from maskmatch import ExportedMatcher, MaskMatcher, MaskMatchError, SimilarityConfig, export
from maskmatch.prediction.runtimes import GRAPH_FILE
from maskmatch.storage.export.folder import EXPORT_FILE, FILES
from maskmatch.testing.tiny_encoders import FAMILIES, write_tiny_mlm
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Tiny = Callable[..., Path]

A_LITTLE = {"learning_rate": 1e-2, "batch_size": 12, "epochs": 2, "calibrate": False}
MANY = [*TEXTS, "refund", "card " * 40, "x", "Where is it? [MASK] <mask>"]


def assert_same(matcher: MaskMatcher, folder: Path, texts: list[Any]) -> ExportedMatcher:
    loaded = ExportedMatcher.from_pretrained(folder)
    expected = matcher.predict_proba(texts)
    for batch_size in (1, 3, 64):
        np.testing.assert_allclose(loaded.predict_proba(texts, batch_size=batch_size), expected, atol=2e-5)
    if not matcher.config.multi_label:  # of labels that are equally good, either may come first
        places = [matcher.labels.position(label) for label in loaded.predict(texts)]  # type: ignore[union-attr]
        assert (expected[range(len(texts)), places] >= expected.max(axis=1) - 2e-5).all()
    else:
        assert loaded.predict(texts) == matcher.predict(texts)
    assert loaded.cut_ == matcher.cut_
    assert list(loaded.labels or ()) == list(matcher.labels or ())
    return loaded


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_with_texts_of_all_lengths(tiny: Tiny, tmp_path: Path, family: str) -> None:
    matcher = MaskMatcher.from_pretrained(tiny(family), LABELS, prompt="{mask} {text} is {mask} or {mask}.")
    parity = export(matcher, tmp_path / "export")
    assert parity.is_close
    assert parity.largest_difference < 1e-4
    assert_same(matcher, tmp_path / "export", MANY)
    assert sorted(path.name for path in (tmp_path / "export").iterdir()) == sorted([GRAPH_FILE, *FILES])


@pytest.mark.parametrize(
    "method", ["fine-tuning", "soft-prompt", "prompt-tuning", "semantic-matching", "mask-matching"]
)
def test_every_method(tmp_path: Path, method: str) -> None:
    encoder = write_tiny_mlm("bert", tmp_path / "encoder")
    matcher = MaskMatcher.from_pretrained(encoder, {"refund": ["money", "parcel"], "card lost": None}, method=method)
    keep = [(text, label) for text, label in zip(TEXTS, TRUTH, strict=True) if label in ("refund", "card lost")]
    matcher.fit([text for text, _ in keep], [label for _, label in keep], **A_LITTLE)
    assert export(matcher, tmp_path / "export").is_close
    assert_same(matcher, tmp_path / "export", MANY)


@pytest.mark.parametrize("trained", [False, True])
def test_several_labels_a_text(tiny: Tiny, tmp_path: Path, trained: bool) -> None:
    similarity = SimilarityConfig(phrases="logsumexp", learn_temperature=True)
    labels = {"refund": ["money", "parcel"], "card lost": None, "exchange rate": ["rate"]}
    matcher = MaskMatcher.from_pretrained(tiny("bert"), labels, multi_label=True, similarity=similarity)
    if trained:
        matcher.fit(TEXTS, [[label] for label in TRUTH], **A_LITTLE)
    export(matcher, tmp_path / "export")
    loaded = assert_same(matcher, tmp_path / "export", MANY)
    assert loaded.predict(TEXTS, threshold=0) == matcher.predict(TEXTS, threshold=0)
    other = ExportedMatcher.from_pretrained(tmp_path / "export", threshold=0.9)
    assert other.predict(TEXTS) == matcher.predict(TEXTS, threshold=0.9)


def test_texts_of_several_fields(tiny: Tiny, tmp_path: Path) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("roberta"), ["yes", "no"], task="nli")
    export(matcher, tmp_path / "export")
    assert_same(matcher, tmp_path / "export", [{"text": first, "text_b": "refund"} for first in TEXTS])


def test_parity_is_kept_and_int8_is_told_apart(tiny: Tiny, tmp_path: Path) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    plain = export(matcher, tmp_path / "plain", texts=TEXTS, texts_from="toy texts")
    assert (plain.texts, plain.texts_from) == (len(TEXTS), "toy texts")
    assert "12 texts (toy texts)" in str(plain)
    int8 = export(matcher, tmp_path / "int8", int8=True)
    assert int8.largest_difference > plain.largest_difference
    assert int8.is_close
    kept = json.loads((tmp_path / "int8" / EXPORT_FILE).read_text(encoding="utf-8"))
    assert kept["int8"] is True
    assert kept["parity"] == int8.to_dict()
    loaded = ExportedMatcher.from_pretrained(tmp_path / "int8")
    report = loaded.evaluate(TEXTS, TRUTH)
    assert list(report.notes) == ["Its matrices are quantised to 8 bits."]
    assert loaded.report_ is report


def test_an_export_is_replaced_and_nothing_else_is(tiny: Tiny, tmp_path: Path) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    export(matcher, tmp_path / "export")
    matcher.add_labels(["parcel"])
    export(matcher, tmp_path / "export")
    assert "parcel" in (ExportedMatcher.from_pretrained(tmp_path / "export").labels or ())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(MaskMatchError, match="is not an export"):
        export(matcher, tmp_path / "mine")
    with pytest.raises(MaskMatchError, match="ExportedMatcher"):
        MaskMatcher.from_pretrained(tmp_path / "export")


def test_damage_is_named(tiny: Tiny, tmp_path: Path) -> None:
    export(MaskMatcher.from_pretrained(tiny("bert"), LABELS), tmp_path / "export")
    for name in (GRAPH_FILE, *FILES):
        damaged = tmp_path / "damaged"
        shutil.rmtree(damaged, ignore_errors=True)
        shutil.copytree(tmp_path / "export", damaged)
        (damaged / name).write_text("{")
        with pytest.raises(MaskMatchError, match=f"{name} .*damaged"):
            ExportedMatcher.from_pretrained(damaged)
        (damaged / name).unlink()
        with pytest.raises(MaskMatchError, match=name):
            ExportedMatcher.from_pretrained(damaged)
    data = json.loads((tmp_path / "export" / EXPORT_FILE).read_text(encoding="utf-8"))
    del data["sha256"]  # as an earlier version wrote it
    for change, words in (
        ({"format": 99}, "newer maskmatch"),
        ({"labels": data["labels"][:2]}, "vectors of the labels"),
    ):
        (tmp_path / "export" / EXPORT_FILE).write_text(json.dumps({**data, **change}))
        with pytest.raises(MaskMatchError, match=words):
            ExportedMatcher.from_pretrained(tmp_path / "export")


def test_neither_torch_nor_transformers_is_imported(tiny: Tiny, tmp_path: Path) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    export(matcher, tmp_path / "export")
    code = (
        "import sys\n"
        "from maskmatch.cli import main\n"
        f"sys.argv = ['maskmatch', 'predict', {str(tmp_path / 'export')!r}, '--text', {TEXTS[0]!r}]\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as error:\n"
        "    code = error.code\n"
        "heavy = {'torch', 'transformers', 'sklearn', 'pandas', 'onnx', 'scipy'} & set(sys.modules)\n"
        "sys.stderr.write(repr((code, sorted(heavy))))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert result.stderr == "(0, [])"
    assert json.loads(result.stdout)["label"] in LABELS
