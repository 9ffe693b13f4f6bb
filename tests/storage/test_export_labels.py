"""Labels of exports are edited like those of the classifier, without torch."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch import ExportedMatcher, Label, MaskMatcher, MaskMatchError, export
from toy_data import A_LITTLE, LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable

    Tiny = Callable[[str], Path]

CLOSE = 2e-3
GOLDEN = Path(__file__).parent.parent / "golden"


def both(folder: Path, matcher: MaskMatcher, **options: Any) -> ExportedMatcher:
    export(matcher, folder, **options)
    return ExportedMatcher.from_pretrained(folder, verbose=False)


def assert_same(exported: ExportedMatcher, matcher: MaskMatcher) -> None:
    assert list(exported.labels) == list(matcher.labels or ())
    np.testing.assert_allclose(exported.predict_proba(TEXTS), matcher.predict_proba(TEXTS), atol=CLOSE)
    np.testing.assert_allclose(exported.novelty(TEXTS), matcher.novelty(TEXTS), rtol=1e-2, atol=1e-2)


def edit(predictor: Any) -> Any:
    predictor.add_labels({"parcel": "a box that was sent", "voucher": ["gift card", "present"]})
    predictor.rename_label(LABELS[0], "money back")
    return predictor.remove_labels([LABELS[1]])


MAKERS: dict[str, Callable[[Path], MaskMatcher]] = {
    "names": lambda encoder: MaskMatcher.from_pretrained(encoder, LABELS, verbose=False),
    "trained": lambda encoder: MaskMatcher.from_pretrained(encoder, LABELS, verbose=False).fit(
        TEXTS, TRUTH, **A_LITTLE
    ),
    "adapted": lambda encoder: MaskMatcher.from_pretrained(encoder, LABELS, verbose=False).adapt(TEXTS * 9, force=True),
    "examples": lambda encoder: MaskMatcher.from_pretrained(
        encoder, [Label(LABELS[0], examples=tuple(TEXTS[:2])), *LABELS[1:]], verbose=False
    ),
    "mean": lambda encoder: MaskMatcher.from_pretrained(encoder, LABELS, method="mean-matching", verbose=False),
    "pools": lambda encoder: MaskMatcher.from_pretrained(
        encoder, LABELS, prompt=["{text} {mask}", "{mask} {text}"], label_prompt=["{label} {mask}", "{mask}: {label}"]
    ),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_edits_change_an_export_as_they_change_its_classifier(tiny: Tiny, tmp_path: Path, kind: str) -> None:
    matcher = MAKERS[kind](tiny("bert"))
    exported = both(tmp_path / "export", matcher)
    assert_same(exported, matcher)
    assert_same(edit(exported), edit(matcher))


@settings(max_examples=15, deadline=None)
@given(edits=st.lists(st.tuples(st.sampled_from(["add", "rename", "remove"]), st.integers(0, 9)), max_size=5))
def test_after_any_edits(tmp_path_factory: pytest.TempPathFactory, tiny: Tiny, edits: list[tuple[str, int]]) -> None:
    folder = tmp_path_factory.mktemp("any")
    matcher = MAKERS["trained"](tiny("bert"))
    exported = both(folder / "export", matcher)
    for number, (kind, place) in enumerate(edits):
        label = list(matcher.labels or ())[place % len(matcher.labels or ())]
        for each in (matcher, exported):
            if kind == "add":
                each.add_labels([f"label {number}"])
            elif kind == "rename":
                each.rename_label(label, f"other {number}")
            elif len(each.labels or ()) > 1:
                each.remove_labels([label])
    assert_same(exported, matcher)


def test_edits_are_saved_and_loaded(tiny: Tiny, tmp_path: Path) -> None:
    exported = edit(both(tmp_path / "export", MAKERS["trained"](tiny("bert"))))
    expected = exported.predict_proba(TEXTS)
    for folder in (tmp_path / "export", tmp_path / "other"):  # over the one it was loaded from, and elsewhere
        exported.save_pretrained(folder)
        loaded = ExportedMatcher.from_pretrained(folder)
        assert list(loaded.labels) == list(exported.labels)
        np.testing.assert_allclose(loaded.predict_proba(TEXTS), expected, atol=1e-6)
    loaded.rename_label("money back", "refund again")  # its training texts still count
    np.testing.assert_array_equal(exported.predict_proba(TEXTS), expected)


def test_an_export_that_someone_else_saved_is_not_overwritten(tiny: Tiny, tmp_path: Path) -> None:
    first = both(tmp_path / "export", MAKERS["names"](tiny("bert")))
    second = ExportedMatcher.from_pretrained(tmp_path / "export").add_labels(["parcel"])
    second.save_pretrained(tmp_path / "export")
    with pytest.raises(MaskMatchError, match="changed by someone else"):
        first.add_labels(["voucher"]).save_pretrained(tmp_path / "export")
    assert "parcel" in ExportedMatcher.from_pretrained(tmp_path / "export").labels


def test_copies_have_the_edits_and_are_edited_by_themselves(tiny: Tiny, tmp_path: Path) -> None:
    exported = edit(both(tmp_path / "export", MAKERS["trained"](tiny("bert"))))
    expected = exported.predict_proba(TEXTS)
    for twin in (copy.deepcopy(exported), pickle.loads(pickle.dumps(exported))):
        np.testing.assert_allclose(twin.predict_proba(TEXTS), expected, atol=1e-6)
        twin.remove_labels(["voucher"])
    assert "voucher" in exported.labels


def test_other_labels_altogether(tiny: Tiny, tmp_path: Path) -> None:
    encoder = tiny("bert")
    both(tmp_path / "export", MAKERS["names"](encoder))
    others = ["weather", "sport", "music"]
    exported = ExportedMatcher.from_pretrained(tmp_path / "export", others)
    assert_same(exported, MaskMatcher.from_pretrained(encoder, others, verbose=False))


def test_an_edit_can_be_previewed(tiny: Tiny, tmp_path: Path) -> None:
    matcher = MAKERS["trained"](tiny("bert"))
    exported = both(tmp_path / "export", matcher)
    before = exported.predict_proba(TEXTS)
    one, other = (each.preview(TEXTS, TRUTH, add=["parcel"], remove=[LABELS[1]]) for each in (matcher, exported))
    assert one.changed == other.changed > 0
    assert [move.after for move in one.moves] == [move.after for move in other.moves]
    np.testing.assert_array_equal(exported.predict_proba(TEXTS), before)


@pytest.mark.parametrize("method", ["fine-tuning", "prompt-tuning"])
def test_labels_that_are_not_read_from_prompts_stay_fixed(tiny: Tiny, tmp_path: Path, method: str) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, method=method, verbose=False)
    exported = both(tmp_path / "export", matcher.fit(TEXTS, TRUTH, **A_LITTLE))
    before = exported.predict_proba(TEXTS)
    for change in (
        lambda: exported.add_labels(["parcel"]),
        lambda: exported.rename_label(LABELS[0], "parcel"),
        lambda: exported.preview(TEXTS, add=["parcel"]),
    ):
        with pytest.raises(MaskMatchError, match="export it again"):
            change()
    np.testing.assert_array_equal(exported.predict_proba(TEXTS), before)
    exported.remove_labels([LABELS[0]])
    assert exported.predict_proba(TEXTS).shape == (len(TEXTS), len(LABELS) - 1)


def test_exports_of_earlier_versions_stay_fixed() -> None:
    exported = ExportedMatcher.from_pretrained(GOLDEN / "format-6" / "calibrated.onnx")
    with pytest.raises(MaskMatchError, match="made by an earlier version"):
        exported.add_labels(["parcel"])


def test_without_torch(tiny: Tiny, tmp_path: Path) -> None:
    both(tmp_path / "export", MAKERS["trained"](tiny("bert")))
    code = (
        "import sys; from maskmatch import ExportedMatcher\n"
        f"m = ExportedMatcher.from_pretrained({str(tmp_path / 'export')!r}, verbose=False)\n"
        "m.add_labels(['parcel']).rename_label('parcel', 'box'); m.predict(['hello']); m.novelty(['hello'])\n"
        f"m.save_pretrained({str(tmp_path / 'saved')!r})\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    assert "box" in ExportedMatcher.from_pretrained(tmp_path / "saved").labels
