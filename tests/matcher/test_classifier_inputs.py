"""Texts and labels in every form in which users hold them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskmatch import MaskMatcher, Task
from refusals import refusal
from toy_data import A_LITTLE, LABELS, TEXTS, TRUTH

Tiny = Callable[..., Path]

EXAMPLES_OF_FIELDS: dict[str, dict[str, Any]] = {
    "nli": {"text": "The card is lost.", "text_b": "The card is here."},
    "paraphrase": {"text": "Where is it?", "text_b": "It is where?"},
    "stance": {"text": "Too much money.", "text_b": "exchange rate"},
    "word-in-context": {"text": "a rate of money", "text_b": "they rate it", "entity": "rate"},
    "relation": {"text": "The clay was in a jar.", "head": "clay", "tail": "jar"},
    "entity-typing": {"text": "The clay was in a jar.", "entity": "clay"},
}


class TestWaysIn:
    @pytest.mark.parametrize("task", sorted(EXAMPLES_OF_FIELDS))
    def test_texts_of_several_fields(self, tiny: Tiny, task: str) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), ["same", "different"], task=task)
        example = EXAMPLES_OF_FIELDS[task]
        reference = matcher.predict_proba([example])
        for field in example:  # every field is read
            changed = matcher.predict_proba([{**example, field: f"{example[field]} money"}])
            assert np.abs(np.log(changed / reference)).max() > 1e-4, field
        matcher.fit([example, example], ["same", "different"], **A_LITTLE)
        missing = refusal(matcher.predict, [example, {"text": "only a text"}])
        assert "Text 1" in missing
        assert "missing" in missing

    def test_spans_mark_the_text_and_stand_in_for_the_mention(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), ["is in", "made of"], task="relation")
        plain = {"text": "The clay was in a jar.", "head": "clay", "tail": "jar"}
        marked = {"text": plain["text"], "head_span": (4, 8), "tail_span": (18, 21)}
        both = matcher.predict_proba([{**plain, **marked}])
        np.testing.assert_allclose(matcher.predict_proba([marked]), both, atol=1e-6)
        assert np.abs(both - matcher.predict_proba([plain])).max() > 1e-4

    def test_a_task_of_ones_own(self, tiny: Tiny) -> None:
        task = Task("ticket", "tickets", ("subject", "body"), "{subject}: {body} It is about {mask}.")
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, task=task)
        found = matcher.predict([{"subject": "refund", "body": "where is it"}])
        assert found[0] in LABELS

    def test_sequences_of_every_kind_give_the_same(self, matcher: MaskMatcher) -> None:
        pandas = pytest.importorskip("pandas")
        polars = pytest.importorskip("polars")
        expected = matcher.predict_proba(TEXTS)
        sequences: list[Any] = [
            tuple(TEXTS),
            np.array(TEXTS),
            np.array(TEXTS, dtype=object),
            pandas.Series(TEXTS, index=range(100, 100 + len(TEXTS))),
            polars.Series(TEXTS),
            (text for text in TEXTS),
        ]
        for texts in sequences:
            np.testing.assert_allclose(matcher.predict_proba(texts), expected, atol=1e-6)

    def test_tables_of_every_kind_give_the_same(self, tiny: Tiny) -> None:
        pandas = pytest.importorskip("pandas")
        polars = pytest.importorskip("polars")
        datasets = pytest.importorskip("datasets")
        columns = {"text": TEXTS, "label": TRUTH}
        reference = MaskMatcher.from_pretrained(tiny("bert"))
        reference.fit(TEXTS, TRUTH, dev=(TEXTS, TRUTH), **A_LITTLE)
        expected = reference.predict_proba(TEXTS)
        frame = pandas.DataFrame(columns)
        tables: list[Any] = [frame, polars.DataFrame(columns), datasets.Dataset.from_dict(columns), columns]
        for table in tables:
            matcher = MaskMatcher.from_pretrained(tiny("bert")).fit(table, dev=table, **A_LITTLE)
            assert list(matcher.labels or ()) == sorted(LABELS)
            np.testing.assert_allclose(matcher.predict_proba(table), expected, atol=1e-6)
            assert matcher.evaluate(table).accuracy == reference.evaluate(TEXTS, TRUTH).accuracy
        shuffled = frame.sample(frac=1.0, random_state=1)
        apart = MaskMatcher.from_pretrained(tiny("bert"))
        apart.fit(frame[["text"]], frame["label"], dev=frame, **A_LITTLE)
        np.testing.assert_allclose(apart.predict_proba(shuffled), expected[shuffled.index], atol=1e-5)

    def test_the_label_column_can_be_named(self, tiny: Tiny) -> None:
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"text": TEXTS, "label": ["x", "y"] * 6, "truth": TRUTH})
        matcher = MaskMatcher.from_pretrained(tiny("bert")).fit(frame, "truth", **A_LITTLE)
        assert list(matcher.labels or ()) == sorted(LABELS)

    def test_class_labels_of_a_dataset_bring_their_names(self, tiny: Tiny) -> None:
        datasets = pytest.importorskip("datasets")
        features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=LABELS)})
        rows = {"text": TEXTS, "label": [LABELS.index(label) for label in TRUTH]}
        table = datasets.Dataset.from_dict(rows, features=features)
        matcher = MaskMatcher.from_pretrained(tiny("bert")).fit(table, **A_LITTLE)
        assert matcher.labels is not None
        assert list(matcher.labels) == [0, 1, 2]
        assert matcher.labels.names == tuple(LABELS)
        assert set(matcher.predict(TEXTS)) <= {0, 1, 2}
        named = MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, TRUTH, **A_LITTLE)
        np.testing.assert_allclose(matcher.predict_proba(TEXTS), named.predict_proba(TEXTS), atol=1e-6)

    def test_pairs_from_a_data_frame(self, tiny: Tiny) -> None:
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"text": ["a b", "c d"], "text_b": ["a b", "e f"], "label": ["same", "different"]})
        matcher = MaskMatcher.from_pretrained(tiny("bert"), task="paraphrase").fit(frame, **A_LITTLE)
        dicts = frame[["text", "text_b"]].to_dict("records")
        np.testing.assert_allclose(matcher.predict_proba(frame), matcher.predict_proba(dicts), atol=1e-6)
