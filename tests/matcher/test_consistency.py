"""What training, dev data, streams and saved folders promise each other."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from maskmatch import MaskMatcher, MaskMatchError
from maskmatch.model.label_sources import PromptLabels
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHORT = {"learning_rate": 1e-2, "batch_size": 4, "epochs": 2}
SEVERAL = [[label] for label in TRUTH]


def test_dev_metrics_of_several_labels_are_those_of_the_finished_classifier(tiny: Callable[[str], Path]) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    matcher.fit(TEXTS, SEVERAL, dev=(TEXTS, SEVERAL), **SHORT)
    assert matcher.training_ is not None
    assert matcher.training_.dev is not None
    assert matcher.evaluate(TEXTS, SEVERAL).micro_f1 == pytest.approx(matcher.training_.dev["micro_f1"])
    assert matcher.config.threshold == matcher.training_.dev["threshold"]


def test_labels_are_encoded_once_per_evaluation_on_dev(
    tiny: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    read = PromptLabels.read
    monkeypatch.setattr(
        PromptLabels, "read", lambda self, texts, reader: calls.append(len(texts)) or read(self, texts, reader)
    )
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    matcher.fit(TEXTS, TRUTH, dev=(TEXTS, TRUTH), example_share=0, **SHORT)
    evaluations = 6  # one per step, as there are few
    assert len(calls) <= evaluations + 2  # and once with the best weights


def test_a_diverged_classifier_says_so_also_if_it_became_multi_label(tiny: Callable[[str], Path]) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    with pytest.raises(MaskMatchError, match="diverged"):
        matcher.fit(TEXTS, SEVERAL, learning_rate=1e30, epochs=2, batch_size=4)
    with pytest.raises(MaskMatchError, match="diverged"):
        matcher.predict(TEXTS)


def test_a_run_with_another_similarity_is_another_run(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    how: dict[str, Any] = {**SHORT, "checkpoints": tmp_path / "checkpoints"}
    MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, TRUTH, **how)
    other = MaskMatcher.from_pretrained(tiny("bert"), LABELS, temperature=0.5)
    with pytest.raises(MaskMatchError, match="another run, with other similarity"):
        other.fit(TEXTS, TRUTH, **how, resume=True)
    for changed in ({"head_rate": 3.0}, {"weight_decay": 0.5}, {"arguments": {"adam_beta1": 0.5}}):
        same = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
        with pytest.raises(MaskMatchError, match=f"with other {next(iter(changed))}"):
            same.fit(TEXTS, TRUTH, **{**how, **changed}, resume=True)


class TestStreams:
    def test_another_thread_may_go_on_with_a_stream(self, matcher: MaskMatcher) -> None:
        stream, rest = matcher.iter_top_k(iter(TEXTS), 1, chunk_size=2), []
        first = next(stream)
        thread = Thread(target=lambda: rest.extend(stream))
        thread.start()
        thread.join()
        assert [first, *rest] == matcher.top_k(TEXTS, 1)

    def test_a_blank_text_is_named_by_its_place_in_the_whole_stream(self, matcher: MaskMatcher) -> None:
        with pytest.raises(MaskMatchError, match="Text 5: the text is blank"):
            list(matcher.iter_top_k([*TEXTS[:5], " "], 1, chunk_size=2))


def test_vectors_of_nothing_are_refused(matcher: MaskMatcher) -> None:
    for call in (matcher.text_states, matcher.phrase_states):
        with pytest.raises(MaskMatchError, match="at least one"):
            call([])


@pytest.mark.parametrize("debias", ["labels", "both"])
def test_another_prompt_leaves_no_stale_label_vectors(tiny: Callable[[str], Path], tmp_path: Path, debias: str) -> None:
    trained = MaskMatcher.from_pretrained(tiny("bert"), LABELS, debias=debias).fit(TEXTS, TRUTH, **SHORT)
    loaded = MaskMatcher.from_pretrained(trained.save_pretrained(tmp_path / "m"), prompt="{text} So {mask}.")
    fresh = loaded.bank.read(LABELS)
    assert float(np.abs(loaded.bank.part_vectors() - fresh).max()) < 1e-5
