"""Label prompts that name a field of the text: labels are read together with each text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.nn.functional import cosine_similarity

from maskmatch import ExportedMatcher, LabelSet, MaskMatcher, MaskMatchError, Task, export
from maskmatch.prompts import FieldText, Prompt, PromptTokenizer
from maskmatch.testing.tiny_encoders import FAMILIES, tiny_tokenizer
from maskmatch.training.data import training_data
from toy_data import A_LITTLE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Tiny = Callable[..., Path]

PAIRS = [
    {"text": "The card is lost.", "text_b": "Where is my card?"},
    {"text": "refund the parcel", "text_b": "It is about the exchange rate; this is a question of money."},
    {"text": "money", "text_b": "a question"},
    {"text": "My card was lost at the station yesterday", "text_b": "block it"},
]
TRUTH = ["same", "other", "same", "other"]
PROMPTS = {
    "task": "paraphrase",
    "prompt": "{text} and {text_b} are {mask}.",
    "label_prompt": "{text} and {text_b}: {label} is {mask}.",
}


def state(matcher: MaskMatcher, text: str) -> torch.Tensor:
    """The state at the mask of a filled prompt, read alone: (dim,)."""
    tokenizer: Any = matcher.encoder.tokenizer
    batch = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        return matcher.encoder.model(**batch).last_hidden_state[0][batch["input_ids"][0] == tokenizer.mask_token_id][0]


@pytest.fixture
def matcher(tiny: Tiny) -> MaskMatcher:
    return MaskMatcher.from_pretrained(tiny("bert"), ["same", "other"], **PROMPTS)


def test_every_text_is_compared_with_labels_that_were_read_with_it(matcher: MaskMatcher) -> None:
    found = matcher.predict_proba(PAIRS)
    for pair, probabilities in zip(PAIRS, found, strict=True):
        text = f"{pair['text']} and {pair['text_b']}"
        labels = torch.stack([state(matcher, f"{text}: {label} is [MASK].") for label in ("same", "other")])
        scores = cosine_similarity(state(matcher, f"{text} are [MASK].")[None], labels) / 0.05
        np.testing.assert_allclose(probabilities, scores.softmax(dim=0).numpy(), rtol=1e-3, atol=1e-5)
    for batch_size in (1, 3):
        np.testing.assert_allclose(matcher.predict_proba(PAIRS, batch_size=batch_size), found, atol=1e-5)
    best = [(pairs[0][0], pairs[0][1]) for pairs in matcher.top_k(PAIRS, 2)]
    assert [label for label, _ in best] == matcher.predict(PAIRS)
    np.testing.assert_allclose([value for _, value in best], found.max(axis=1), atol=1e-5)
    assert matcher.search_.kind == "exact"


@pytest.mark.parametrize("masks", ["mean", "concat", "late"])
def test_training_and_prediction_compute_the_same(tiny: Tiny, masks: Any) -> None:
    labels = {"same": ["alike", "equal"], "other": None}
    prompts = {**PROMPTS, "prompt": "{text} {mask}, {text_b} {mask}", "label_prompt": "{text_b} {label} is {mask*2}"}
    matcher = MaskMatcher.from_pretrained(tiny("bert"), labels, masks=masks, **prompts)
    data = training_data(matcher.bank, PAIRS, TRUTH)
    expected = matcher.pipeline.scores(data.texts)
    for rows in ([0, 1, 2, 3], [2, 0], [1]):
        with torch.no_grad():
            found = matcher.model(**data.batch(rows))["scores"]
        np.testing.assert_allclose(found.numpy(), expected[rows], rtol=1e-3, atol=1e-3)


def test_prompts_may_come_in_pools_and_lose_their_own_bias(tiny: Tiny, tmp_path: Path) -> None:
    prompts = {
        "prompt": ["{text} {text_b} {mask}", "{text_b}, {text}: {mask}"],
        "label_prompt": ["{text} {label} {mask}", "{label}: {text} {mask}"],
    }
    labels = {"same": ["alike", "equal"], "other": None}
    matcher = MaskMatcher.from_pretrained(tiny("bert"), labels, task="paraphrase", debias="both", **prompts)
    data = training_data(matcher.bank, PAIRS, TRUTH)
    with torch.no_grad():
        found = matcher.model(**data.batch([3, 1]))["scores"]
    np.testing.assert_allclose(found.numpy(), matcher.pipeline.scores(data.texts)[[3, 1]], rtol=1e-3, atol=1e-3)
    with pytest.raises(MaskMatchError, match="mask-matching without debiasing can be"):
        export(matcher, tmp_path / "export")


def test_it_is_trained_and_saved_without_label_vectors(matcher: MaskMatcher, tmp_path: Path) -> None:
    before = matcher.predict_proba(PAIRS)
    matcher.fit(PAIRS, TRUTH, dev=(PAIRS, TRUTH), hold=0.1, **A_LITTLE)
    after = matcher.predict_proba(PAIRS)
    assert np.abs(after - before).max() > 1e-3
    folder = matcher.save_pretrained(tmp_path / "model")
    assert not (folder / "labels.safetensors").exists()
    loaded = MaskMatcher.from_pretrained(folder)
    np.testing.assert_allclose(loaded.predict_proba(PAIRS), after, atol=1e-6)
    loaded.add_labels(["unsure"])
    assert loaded.predict_proba(PAIRS).shape == (4, 3)
    assert loaded.evaluate(PAIRS, TRUTH).to_dict()["rows"] == 4


def test_an_export_reads_labels_with_each_text(matcher: MaskMatcher, tmp_path: Path) -> None:
    assert export(matcher, tmp_path / "export").is_close
    loaded = ExportedMatcher.from_pretrained(tmp_path / "export")
    np.testing.assert_allclose(loaded.predict_proba(PAIRS), matcher.predict_proba(PAIRS), atol=2e-5)


def test_several_labels_a_text(tiny: Tiny) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), ["same", "other", "unsure"], multi_label=True, **PROMPTS)
    assert matcher.predict(PAIRS, threshold=0) == [[label for label, _ in pairs] for pairs in matcher.top_k(PAIRS, 3)]
    matcher.fit(PAIRS, [[label] for label in TRUTH], **A_LITTLE)  # settles the offset by prediction
    assert matcher.predict_proba(PAIRS).shape == (4, 3)


def test_the_two_prompts_together_say_which_fields_there_are(tiny: Tiny) -> None:
    task = Task("one each", "a side each", ("text", "text_b"), "{text} {mask}", "{text_b}: {label} is {mask}.")
    matcher = MaskMatcher.from_pretrained(tiny("bert"), ["same", "other"], task=task)
    assert matcher.config.fields == ("text", "text_b")
    assert matcher.predict_proba(PAIRS).shape == (4, 2)
    with pytest.raises(MaskMatchError, match="its field 'text_b' is missing"):
        matcher.predict([{"text": "money"}])


def test_what_cannot_be_read_with_each_text_is_refused(tiny: Tiny, matcher: MaskMatcher, tmp_path: Path) -> None:
    with pytest.raises(MaskMatchError, match=r"all 51 names and phrases of labels; give at most 50"):
        MaskMatcher.from_pretrained(tiny("bert"), [f"label {n}" for n in range(51)], **PROMPTS).predict(PAIRS)
    with pytest.raises(MaskMatchError, match=r"read with each text; choose label_encoding .full. or .auto."):
        matcher.fit(PAIRS, TRUTH, label_encoding="sampled")
    with pytest.raises(MaskMatchError, match="nothing to index; choose exact search"):
        MaskMatcher.from_pretrained(tiny("bert"), ["same", "other"], search="approximate", **PROMPTS)
    other = MaskMatcher.from_pretrained(
        tiny("bert"), ["same", "other"], method="pair-matching", task="nli", label_prompt="{text} {label} {mask}"
    )
    with pytest.raises(MaskMatchError, match="pair-matching reads labels in another way than texts"):
        export(other, tmp_path / "export")


@given(
    family=st.sampled_from(FAMILIES),
    words=st.lists(st.sampled_from(["card", "lost", "money", "refund", "exchange"]), min_size=1, max_size=60),
    length=st.integers(20, 40),
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_text_is_cut_and_never_the_label_nor_a_mask(family: str, words: list[str], length: int) -> None:
    tokenizer = tiny_tokenizer(family)
    tokenize = PromptTokenizer(tokenizer, length)
    label = "exchange rate"
    row = {"text": FieldText(" ".join(words)), "label": FieldText(label)}
    prompts = tokenize(Prompt("{text} {sep} {label} {sep} {mask}"), [row])
    ids = prompts.input_ids[0].tolist()
    assert len(ids) <= length
    kept = tokenize(Prompt("{sep} {label} {sep} {mask}"), [row]).input_ids[0].tolist()
    start = len(tokenize.vocabulary.prefix)
    assert ids[-(len(kept) - start) :] == kept[start:]
    assert ids[prompts.mask_positions[0, 0]] == tokenizer.mask_token_id


def test_a_label_that_leaves_no_room_is_refused() -> None:
    tokenize = PromptTokenizer(tiny_tokenizer("bert"), 12)
    row = {"text": FieldText("card"), "label": FieldText("money " * 20)}
    with pytest.raises(MaskMatchError, match="with its label takes"):
        tokenize(Prompt("{text} {label} {mask}"), [row])
    assert tokenize(Prompt("{label} {mask}"), [row]).cut.all()


def test_examples_are_refused(tiny: Callable[[str], Path]) -> None:
    labels = LabelSet.of({"refund": {"examples": ["money back"]}, "card lost": None})
    matcher = MaskMatcher.from_pretrained(tiny("bert"), labels, label_prompt="{text} {label} is {mask}.")
    with pytest.raises(MaskMatchError, match="leave the examples out"):
        matcher.predict(["Where is my refund?"])
