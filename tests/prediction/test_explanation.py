"""Explanations: words by occlusion, phrases, similar training texts, words at the mask; as text, JSON and a page."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch import ExportedMatcher, MaskMatcher, MaskMatchError
from maskmatch.prediction.occlusion import MAX_PARTS, REMOVED, text_parts, without
from maskmatch.storage.export.exporter import export
from maskmatch.testing.tiny_encoders import write_tiny_mlm
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli_tools import Run

    Tiny = Callable[..., Path]

TEXT = "Please refund my money, the card's gone."


def log_odds(probabilities: Any) -> Any:
    return np.log(probabilities) - np.log1p(-probabilities)


@pytest.fixture
def matcher(tiny: Tiny) -> MaskMatcher:
    return MaskMatcher.from_pretrained(tiny("bert"), LABELS, temperature=0.5, verbose=False)


def test_effects_are_those_of_leaving_words_out_by_hand(matcher: MaskMatcher) -> None:
    found = matcher.explain(TEXT, k=2)
    whole = matcher.predict_proba([TEXT]).astype(np.float64)[0]
    order = list(matcher.labels or ())
    assert [part.text for part in found.parts] == ["Please", "refund", "my", "money", "the", "card's", "gone"]
    for row, part in enumerate(found.parts):
        left = TEXT[: part.start] + TEXT[part.end :]
        alone = matcher.predict_proba([left]).astype(np.float64)[0]
        for each in found.labels:
            place = order.index(each.label)
            assert each.effects[row] == pytest.approx(log_odds(whole)[place] - log_odds(alone)[place], abs=2e-3)
    assert found.label == matcher.predict([TEXT])[0]
    assert [each.label for each in found.labels] == [label for label, _ in matcher.top_k([TEXT], 2)[0]]


def test_words_of_one_batch_do_not_depend_on_each_other(matcher: MaskMatcher) -> None:
    assert matcher.explain(TEXT).to_dict() == matcher.explain(TEXT).to_dict()


def test_the_phrase_that_matched_comes_first(tiny: Tiny) -> None:
    labels = {"refund": ["money back", "reimbursement of a payment"], "card lost": "it cannot be found"}
    matcher = MaskMatcher.from_pretrained(tiny("bert"), labels, verbose=False)
    found = next(each for each in matcher.explain(TEXT).labels if each.label == "refund")
    assert {one.phrase for one in found.phrases} == {"refund", "money back", "reimbursement of a payment"}
    similarities = [one.similarity for one in found.phrases]
    assert similarities == sorted(similarities, reverse=True)
    text, names = matcher.text_states([TEXT])[0, 0], matcher.phrase_states([one.phrase for one in found.phrases])[:, 0]
    cosines = names @ text / np.linalg.norm(names, axis=1) / np.linalg.norm(text)
    np.testing.assert_allclose(cosines, similarities, atol=1e-3)


def test_marked_mentions_stay_and_their_spans_move(tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), ["person", "place"], task="entity-typing", verbose=False)
    text = {"text": "Then Paris went to Troy", "entity_span": [19, 23]}
    found = matcher.explain(text)
    assert [part.text for part in found.parts] == ["Then", "Paris", "went", "to"]
    cut = without(text, found.parts[1], ("text", "entity"))
    assert cut["text"][slice(*cut["entity_span"])] == "Troy"


def test_mentions_in_long_texts_stay(tiny: Tiny) -> None:
    labels = ["part of", "none"]
    matcher = MaskMatcher.from_pretrained(tiny("bert"), labels, task="relation", verbose=False)
    words = "word " * 100
    text = f"{words}clay {words}jar {words}"
    spans = {"head_span": [len(words), len(words) + 4], "tail_span": [2 * len(words) + 5, 2 * len(words) + 8]}
    found = matcher.explain({"text": text, **spans})
    assert len(found.parts) <= MAX_PARTS + 2
    assert not any("clay" in part.text or "jar" in part.text for part in found.parts)


@pytest.mark.parametrize("wrong", [{"text": "a b", "head_span": 5}, {"head_span": [0, 1]}])
def test_wrong_spans_are_one_sentence(tiny: Tiny, wrong: dict[str, Any]) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), ["part of", "none"], task="relation", verbose=False)
    with pytest.raises(MaskMatchError):
        matcher.explain(wrong)


def test_similar_training_texts_are_shown_if_they_were_kept(tiny: Tiny, tmp_path: Path) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False)
    matcher.fit(TEXTS, TRUTH, epochs=1, keep_texts=True)
    found = matcher.explain(TEXTS[4]).similar
    assert found[0].text == TEXTS[4]
    assert found[0].similarity == pytest.approx(1, abs=1e-3)
    assert found[0].label == TRUTH[4]
    folder = matcher.save_pretrained(tmp_path / "model")
    loaded = MaskMatcher.from_pretrained(folder, verbose=False)
    assert [one.text for one in loaded.explain(TEXTS[4]).similar] == [one.text for one in found]
    assert "training texts are saved with it" in (folder / "README.md").read_text(encoding="utf-8")
    loaded.remove_labels([TRUTH[4]])
    assert all(one.label != TRUTH[4] for one in loaded.explain(TEXTS[4]).similar)
    matcher.fit(TEXTS, TRUTH, epochs=1)
    assert matcher.explain(TEXTS[4]).similar == ()


def test_both_sides_of_a_pair_are_explained(tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(
        tiny("bert"), ["same", "different"], task="paraphrase", method="mask-matching", verbose=False
    )
    found = matcher.explain({"text": "a red bike", "text_b": "a bike"})
    assert [(part.field, part.text) for part in found.parts] == [
        ("text", "a"),
        ("text", "red"),
        ("text", "bike"),
        ("text_b", "a"),
        ("text_b", "bike"),
    ]


def test_a_text_of_one_word_keeps_a_placeholder(matcher: MaskMatcher) -> None:
    found = matcher.explain("refund")
    assert without("refund", found.parts[0], ("text",)) == REMOVED
    assert len(found.labels[0].effects) == 1


def test_long_texts_are_cut_into_few_parts(matcher: MaskMatcher) -> None:
    found = matcher.explain("word " * 1000)
    assert len(found.parts) <= MAX_PARTS
    assert " ".join(part.text for part in found.parts).split() == ["word"] * 1000


@settings(max_examples=200, deadline=None)
@given(st.text(min_size=1, max_size=400))
def test_parts_are_in_order_and_do_not_overlap(text: str) -> None:
    parts = text_parts(text, {"text": text})
    assert all(text[part.start : part.end] == part.text for part in parts)
    assert all(one.end <= other.start for one, other in pairwise(parts))
    covered = {place for part in parts for place in range(part.start, part.end)}
    assert all(place in covered for match in re.finditer(r"\w", text) for place in range(*match.span()))


@pytest.mark.parametrize("wrong", [["a", "b"], 3, None])
def test_one_text_at_a_time(matcher: MaskMatcher, wrong: Any) -> None:
    with pytest.raises(MaskMatchError, match="takes one text"):
        matcher.explain(wrong)


def test_a_blank_text_is_an_error(matcher: MaskMatcher) -> None:
    with pytest.raises(MaskMatchError):
        matcher.explain("  ")


def test_exports_explain_alike(matcher: MaskMatcher, tmp_path: Path) -> None:
    export(matcher, tmp_path / "export")
    exported = ExportedMatcher.from_pretrained(tmp_path / "export", verbose=False)
    ours, theirs = matcher.explain(TEXT), exported.explain(TEXT)
    assert [each.label for each in ours.labels] == [each.label for each in theirs.labels]
    np.testing.assert_allclose(ours.labels[0].effects, theirs.labels[0].effects, atol=5e-3)


def test_words_at_the_mask(tmp_path: Path, tiny: Tiny) -> None:
    encoder = write_tiny_mlm("bert", tmp_path / "mlm")
    found = MaskMatcher.from_pretrained(encoder, LABELS, verbose=False).explain(TEXT, mask_words=True)
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(encoder), AutoModelForMaskedLM.from_pretrained(encoder).eval()
    ids = tokenizer(f"{TEXT} It is about {tokenizer.mask_token}.", return_tensors="pt")
    place = int((ids["input_ids"][0] == tokenizer.mask_token_id).nonzero()[0, 0])
    best = model(**ids).logits[0, place].softmax(-1).topk(len(found.mask_words))
    assert [value for _, value in found.mask_words] == pytest.approx(best.values.tolist(), abs=1e-3)
    without_head = MaskMatcher.from_pretrained(tiny("bert"), LABELS, verbose=False).explain(TEXT, mask_words=True)
    assert without_head.mask_words == ()
    assert "has no language-model head" in without_head.notes[0]


def test_the_page_is_self_contained_and_escaped(matcher: MaskMatcher, tmp_path: Path) -> None:
    found = matcher.explain("<script>alert(1)</script> refund & more")
    page = found.save(tmp_path / "why.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "refund" in page
    assert "http" not in page


def test_the_command(run: Run, matcher: MaskMatcher, tmp_path: Path, tiny: Tiny) -> None:
    folder = matcher.save_pretrained(tmp_path / "model")
    data = json.loads(run("explain", folder, "--text", TEXT, "--json").out)
    assert data[0]["label"] == matcher.predict([TEXT])[0]
    assert len(data[0]["words"]) == len(data[0]["labels"][0]["effects"])
    page = tmp_path / "why.html"
    texts = ("--text", TEXTS[0], "--text", TEXT)
    result = run("explain", "refund, card lost", "--model", tiny("bert"), *texts, "-o", page)
    assert result.code == 0, result.err
    assert page.read_text(encoding="utf-8").count("<h1>") == 2
    assert run("explain", folder, "--text", TEXT, "-o", tmp_path / "why.pdf").code == 2
    export(matcher, tmp_path / "export")
    assert run("explain", tmp_path / "export", "--text", TEXT).code == 0
    assert run("explain", tmp_path / "export", "--text", TEXT, "--mask-words").code == 2
