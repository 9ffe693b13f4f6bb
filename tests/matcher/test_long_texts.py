"""Long texts in windows: one mean vector per text, in every way to predict, and in training."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from maskmatch import ExportedMatcher, MaskMatcher, MaskMatchError, export
from maskmatch.prompts import TokenizedPrompts
from toy_data import A_LITTLE, FAST, LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli_tools import Run

    Tiny = Callable[[str], Path]

LONG = ["money " * 120 + "where is my refund", TEXTS[0], "my card was lost " * 30]
SHORT = 24


@pytest.fixture
def windowed(tiny: Tiny) -> MaskMatcher:
    return MaskMatcher.from_pretrained(tiny("bert"), LABELS, max_length=SHORT, long_texts="windows", verbose=False)


def test_a_text_has_the_mean_vector_of_its_windows(windowed: MaskMatcher) -> None:
    text = "refund card station money " * 20
    prompts = windowed.pipeline.tokenize([text])
    assert prompts.windows is not None
    vectors = windowed.text_states([text])
    ids = [*prompts.input_ids, *prompts.windows.prompts.input_ids]
    masks = [*prompts.mask_positions, *prompts.windows.prompts.mask_positions]
    by_hand = [
        windowed.pipeline.all_vectors(TokenizedPrompts([one], mask[None], np.zeros(1, bool)))
        for one, mask in zip(ids, masks, strict=True)
    ]
    np.testing.assert_allclose(vectors[0], np.concatenate(by_hand).mean(axis=0), atol=1e-5)


def test_the_end_of_a_text_counts(windowed: MaskMatcher, tiny: Tiny) -> None:
    cut = MaskMatcher.from_pretrained(tiny("bert"), LABELS, max_length=SHORT, verbose=False)
    other = [LONG[0].replace("refund", "card")]
    assert np.array_equal(cut.predict_proba(LONG[:1]), cut.predict_proba(other))
    assert not np.array_equal(windowed.predict_proba(LONG[:1]), windowed.predict_proba(other))


def test_short_texts_are_read_as_before(windowed: MaskMatcher, tiny: Tiny) -> None:
    cut = MaskMatcher.from_pretrained(tiny("bert"), LABELS, max_length=SHORT, verbose=False)
    assert np.array_equal(cut.predict_proba(TEXTS[:1]), windowed.predict_proba(TEXTS[:1]))


def test_answers_do_not_depend_on_the_texts_beside(windowed: MaskMatcher) -> None:
    alone = np.concatenate([windowed.predict_proba([text]) for text in LONG])
    np.testing.assert_allclose(windowed.predict_proba(LONG), alone, atol=1e-5)
    np.testing.assert_allclose(windowed.novelty(LONG), [windowed.novelty([text])[0] for text in LONG], atol=1e-5)
    assert [pairs[0][0] for pairs in windowed.iter_top_k(LONG, 1)] == windowed.predict(LONG)


def test_nothing_is_truncated(windowed: MaskMatcher, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "maskmatch"):
        windowed.predict(LONG)
    assert windowed.cut_ == 0
    assert not caplog.records


def test_training_reads_windows(windowed: MaskMatcher) -> None:
    texts = [" ".join([text] * 6) for text in TEXTS]
    windowed.fit(texts, TRUTH, **FAST)
    assert windowed.evaluate(texts, TRUTH).accuracy == 1.0
    assert windowed.training_ is not None
    assert windowed.training_.texts == len(texts)
    assert windowed.training_.steps > FAST["epochs"]  # of 12 texts, but of more windows
    assert windowed.training_.cut == 0


def test_saved_and_exported(windowed: MaskMatcher, tmp_path: Path) -> None:
    windowed.fit(TEXTS, TRUTH, **A_LITTLE)
    expected = windowed.predict_proba(LONG)
    windowed.save_pretrained(tmp_path / "model")
    loaded = MaskMatcher.from_pretrained(tmp_path / "model", verbose=False)
    assert loaded.config.long_texts == "windows"
    np.testing.assert_array_equal(loaded.predict_proba(LONG), expected)
    export(windowed, tmp_path / "export")
    exported = ExportedMatcher.from_pretrained(tmp_path / "export", verbose=False)
    np.testing.assert_allclose(exported.predict_proba(LONG), expected, atol=1e-4)


def test_a_saved_classifier_can_read_windows_later(tiny: Tiny, tmp_path: Path) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, max_length=SHORT, verbose=False)
    matcher.fit(TEXTS, TRUTH, **A_LITTLE).save_pretrained(tmp_path / "model")
    loaded = MaskMatcher.from_pretrained(tmp_path / "model", long_texts="windows", verbose=False)
    assert loaded.training_ is not None
    assert np.array_equal(loaded.predict_proba(TEXTS[3:4]), matcher.predict_proba(TEXTS[3:4]))
    assert not np.array_equal(loaded.predict_proba(LONG[:1]), matcher.predict_proba(LONG[:1]))


@pytest.mark.parametrize(
    "settings", [{"task": "paraphrase", "method": "pair-matching"}, {"label_prompt": "{text} is {label}: {mask}"}]
)
def test_texts_must_be_read_by_themselves(tiny: Tiny, settings: dict[str, Any]) -> None:
    with pytest.raises(MaskMatchError, match="long_texts"):
        MaskMatcher.from_pretrained(tiny("bert"), LABELS, long_texts="windows", **settings)


def test_it_is_cut_or_windows(tiny: Tiny) -> None:
    with pytest.raises(MaskMatchError, match="choose one of cut, windows"):
        MaskMatcher.from_pretrained(tiny("bert"), LABELS, long_texts="window")


def test_the_command_line_takes_it(windowed: MaskMatcher, tmp_path: Path, run: Run) -> None:
    windowed.fit(TEXTS, TRUTH, **A_LITTLE).save_pretrained(tmp_path / "model")
    export(windowed, tmp_path / "export")
    expected, cut = ([round(value, 4) for value in proba] for proba in _best(windowed, tmp_path))
    for folder in ("model", "export"):
        for option, probabilities in ((None, expected), ("windows", expected), ("cut", cut)):
            given = [] if option is None else ["--long-texts", option]
            result = run("predict", tmp_path / folder, "--text", LONG[0], *given)
            assert result.code == 0
            assert round(result.rows()[0]["probability"], 4) == pytest.approx(probabilities[0], abs=2e-4)


def _best(windowed: MaskMatcher, folder: Path) -> tuple[list[float], list[float]]:
    cut = MaskMatcher.from_pretrained(folder / "model", long_texts="cut", verbose=False)
    return windowed.predict_proba(LONG[:1]).max(axis=1).tolist(), cut.predict_proba(LONG[:1]).max(axis=1).tolist()
