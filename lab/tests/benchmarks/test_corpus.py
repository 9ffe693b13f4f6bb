"""The corpus of label sets that the project brings: its form, and that no text stands in it twice."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from maskmatch.config.tasks import TASKS
from maskmatch.data import LabelledTexts, load_label_sets
from maskmatch.labels import readable
from maskmatch_lab.paths import CORPUS

SETS = load_label_sets(CORPUS)
MENTIONS = ("entity", "head", "tail")


def _key(text: Any) -> str:
    words = text if isinstance(text, str) else " | ".join(str(text[field]) for field in sorted(text))
    return re.sub(r"\W+", " ", words.lower()).strip()


def test_there_are_hundreds_of_sets_of_every_task() -> None:
    assert len(SETS) >= 300
    assert {each.task for each in SETS} == set(TASKS)


@pytest.mark.parametrize("labelled", SETS, ids=lambda each: each.name)
def test_a_set_is_whole(labelled: LabelledTexts) -> None:
    fields = set(TASKS[labelled.task].fields)
    names = [readable(names[0]) for names in labelled.names]
    assert len(set(map(str.lower, names))) == len(names)
    for name, texts in zip(names, labelled.texts, strict=True):
        assert len(texts) >= 3, name
        for text in texts:
            assert isinstance(text, str) if fields == {"text"} else set(text) == fields, text
            parts = [text] if isinstance(text, str) else list(text.values())
            assert all(part.strip() for part in parts)
            if not isinstance(text, str):
                assert all(text[field] in text["text"] for field in MENTIONS if field in text), text


def test_no_text_stands_twice() -> None:
    texts = Counter(_key(text) for each in SETS for texts in each.texts for text in texts)
    assert [text for text, count in texts.items() if count > 1] == []
