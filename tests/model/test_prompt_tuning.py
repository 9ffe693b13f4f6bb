"""Prompt-tuning: words at the mask, scored as masked language models score them."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM, AutoTokenizer, FillMaskPipeline

from maskmatch import Label, LabelSet, MaskMatcher, MaskMatchError, SimilarityConfig
from maskmatch.model.adapter import attach, detach
from maskmatch.model.encoder import Encoder
from maskmatch.model.mlm_head import HeadConfig, Transform, pretrained_head
from maskmatch.testing.tiny_encoders import FAMILIES, SIZES, write_tiny_mlm
from toy_data import FAST, LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from pathlib import Path

PROMPT = "{text} It is about {mask}."
WORDS = ["refund", "card", "exchange"]
TOLD = "The head over the mask is the one that the encoder was pretrained with."
UNTOLD = "The encoder has no pretrained head"
NEWER_FORM = pytest.mark.skipif(
    tuple(map(int, transformers.__version__.split(".")[:2])) < (5, 20), reason="transformers before 5.20 cannot load it"
)
"""The newer form of DeBERTa."""


@pytest.fixture(scope="module")
def mlm(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Gives the folder of a tiny masked language model, made once."""
    folders: dict[Any, Path] = {}

    def get(family: str = "bert", **changes: Any) -> Path:
        key = (family, tuple(changes.items()))
        if key not in folders:
            folders[key] = write_tiny_mlm(family, tmp_path_factory.mktemp(family), **changes)
        return folders[key]

    return get


def prompt_tuned(folder: Path, labels: Any = LABELS, **options: Any) -> MaskMatcher:
    return MaskMatcher.from_pretrained(folder, labels=labels, method="prompt-tuning", prompt=PROMPT, **options)


def mask_scores(folder: Path, text: str) -> tuple[Any, torch.Tensor]:
    """The tokenizer, and what transformers' own model scores at the mask: (vocabulary,)."""
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(PROMPT.format(text=text, mask=tokenizer.mask_token), return_tensors="pt")
    with torch.no_grad():
        logits = model(**batch).logits
    return tokenizer, logits[batch["input_ids"] == tokenizer.mask_token_id][0]


def word_ids(folder: Path, word: str) -> list[int]:
    """The tokens of a word inside a sentence."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    without = tokenizer("It is about", add_special_tokens=False)["input_ids"]
    ids: list[int] = tokenizer(f"It is about {word}", add_special_tokens=False)["input_ids"]
    assert ids[: len(without)] == without
    return ids[len(without) :]


class TestThePretrainedHead:
    @pytest.mark.parametrize("family", FAMILIES)
    def test_scores_words_as_fill_mask_does(self, mlm: Any, family: str) -> None:
        folder, text = mlm(family), "Where is my refund?"
        tokens = [word_ids(folder, word) for word in WORDS]
        assert all(len(ids) == 1 for ids in tokens)
        tokenizer, scores = mask_scores(folder, text)
        expected = scores[[ids[0] for ids in tokens]].softmax(dim=0)
        found = prompt_tuned(folder, WORDS).predict_proba([text])[0]
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-3, atol=1e-5)
        assert np.ptp(found) > 0.01  # they differ
        fill_mask: Any = FillMaskPipeline(AutoModelForMaskedLM.from_pretrained(folder), tokenizer)
        filled = fill_mask(PROMPT.format(text=text, mask=tokenizer.mask_token), top_k=len(tokenizer))
        by_token = {row["token"]: row["score"] for row in filled}
        rates = np.array([by_token[ids[0]] for ids in tokens])
        np.testing.assert_allclose(found, rates / rates.sum(), rtol=1e-3, atol=1e-5)

    @pytest.mark.parametrize(
        ("family", "changes"),
        [
            pytest.param("deberta-v3", {"legacy": False}, marks=NEWER_FORM),
            ("bert", {"tie_word_embeddings": False}),
            ("modernbert", {"decoder_bias": False}),
            ("modernbert", {"classifier_bias": True, "norm_bias": True}),
            ("bert", {"hidden_act": "relu", "layer_norm_eps": 0.1}),
        ],
    )
    def test_in_other_forms_too(self, mlm: Any, tmp_path: Path, family: str, changes: dict[str, Any]) -> None:
        folder, text = mlm(family, **changes), "My card was lost"
        _, scores = mask_scores(folder, text)
        expected = scores[[word_ids(folder, word)[0] for word in WORDS]].softmax(dim=0)
        matcher = prompt_tuned(folder, WORDS)
        np.testing.assert_allclose(matcher.predict_proba([text])[0], expected.numpy(), rtol=1e-3, atol=1e-5)
        loaded = MaskMatcher.from_pretrained(matcher.save_pretrained(tmp_path / "model"))
        np.testing.assert_allclose(loaded.predict_proba([text])[0], expected.numpy(), rtol=1e-3, atol=1e-5)

    def test_scores_a_word_of_several_tokens_by_their_mean(self, mlm: Any) -> None:
        folder, text = mlm("bert"), "Where is it?"
        words = ["card lost", "exchange rate money", "refund"]
        _, scores = mask_scores(folder, text)
        means = torch.stack([scores[word_ids(folder, word)].mean() for word in words])
        found = prompt_tuned(folder, words).predict_proba([text])[0]
        np.testing.assert_allclose(found, means.softmax(dim=0).numpy(), rtol=1e-3, atol=1e-5)

    @pytest.mark.parametrize("join", ["mean", "max", "logsumexp"])
    def test_joins_the_words_of_a_label_like_phrases(self, mlm: Any, join: Any) -> None:
        folder, text = mlm("bert"), "Where is it?"
        labels = {"money": {"words": ["refund", "exchange"]}, "plastic": {"words": ["card"]}}
        _, scores = mask_scores(folder, text)
        refund, exchange, card = (scores[word_ids(folder, word)[0]] for word in ("refund", "exchange", "card"))
        pair = torch.stack([refund, exchange])
        joined = {"mean": pair.mean(), "max": pair.max(), "logsumexp": pair.logsumexp(0) - np.log(2)}[join]
        similarity = SimilarityConfig(kind="dot", temperature=1.0, phrases=join)
        found = prompt_tuned(folder, labels, similarity=similarity).predict_proba([text])[0]
        np.testing.assert_allclose(found, torch.stack([joined, card]).softmax(dim=0).numpy(), rtol=1e-3, atol=1e-5)

    @pytest.mark.parametrize("family", FAMILIES)
    def test_is_trained_saved_and_loaded(self, mlm: Any, tmp_path: Path, family: str) -> None:
        matcher = prompt_tuned(mlm(family), None).fit(TEXTS, TRUTH, **FAST)
        assert matcher.evaluate(TEXTS, TRUTH).accuracy > 0.9
        folder = matcher.save_pretrained(tmp_path / "model")
        loaded = MaskMatcher.from_pretrained(folder)
        np.testing.assert_allclose(loaded.predict_proba(TEXTS), matcher.predict_proba(TEXTS), rtol=1e-4, atol=1e-6)
        assert "transform.dense.weight" in load_file(folder / "head.safetensors")
        assert json.loads((folder / "maskmatch.json").read_text())["head"]["pretrained"] is True
        (folder / "labels.safetensors").touch()
        loaded.add_labels(["parcel"])
        assert loaded.predict_proba(["the parcel"]).shape == (1, 4)

    def test_learns_at_the_rate_of_the_encoder(self, mlm: Any, tiny: Any) -> None:
        pretrained, new = prompt_tuned(mlm("bert")), prompt_tuned(tiny("bert"))
        for matcher, answer in ((pretrained, True), (new, False)):
            model = matcher.model
            assert model.is_pretrained("transform.dense.weight") is answer
            assert model.is_pretrained("encoder.layer.0.weight")
            assert not model.is_pretrained("similarity.log_scale")

    def test_is_still_the_pretrained_one_when_training_begins(self, mlm: Any, tmp_path: Path) -> None:
        saved = prompt_tuned(mlm("bert")).save_pretrained(tmp_path / "untrained")
        direct, detour = prompt_tuned(mlm("bert")), MaskMatcher.from_pretrained(saved)
        for matcher in (direct, detour):
            matcher.predict(TEXTS)
            matcher.fit(TEXTS, TRUTH, epochs=2, learning_rate=1e-3)
        np.testing.assert_allclose(direct.predict_proba(TEXTS), detour.predict_proba(TEXTS), rtol=1e-3, atol=1e-5)

    def test_is_not_loaded_for_other_methods(self, mlm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        def never(*_: Any, **__: Any) -> None:
            raise AssertionError

        monkeypatch.setattr("maskmatch.storage.folder.pretrained_head", never)
        for method in ("mask-matching", "semantic-matching", "soft-prompt", "fine-tuning"):
            MaskMatcher.from_pretrained(mlm("bert"), labels=LABELS, method=method)

    def test_of_random_numbers_is_none(self, tiny: Any, mlm: Any) -> None:
        assert pretrained_head(tiny("bert"), "bert") is None
        assert pretrained_head(mlm("bert"), "bert") is not None

    @pytest.mark.parametrize(
        ("name", "sizes", "known"),
        [
            ("Deberta", {}, True),
            ("Electra", {"embedding_size": 8}, True),
            ("DistilBert", {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 32}, True),
            ("MobileBert", {"embedding_size": 8, "intra_bottleneck_size": 16, "true_hidden_size": 16}, False),
        ],
    )
    def test_of_other_families_is_taken_if_it_is_of_this_form(
        self, tmp_path: Path, name: str, sizes: dict[str, Any], known: bool
    ) -> None:
        common = {} if name == "DistilBert" else {**SIZES, "max_position_embeddings": 80}
        config = getattr(transformers, f"{name}Config")(vocab_size=50, **common, **sizes)
        getattr(transformers, f"{name}ForMaskedLM")(config).save_pretrained(tmp_path)
        assert (pretrained_head(tmp_path, name) is not None) is known

    @NEWER_FORM
    def test_of_deberta_is_found_where_its_config_does_not_tell_the_form(self, mlm: Any, tmp_path: Path) -> None:
        told = mlm("deberta-v3", legacy=False)
        untold = shutil.copytree(told, tmp_path / "untold")
        config = json.loads((untold / "config.json").read_text())
        del config["legacy"]
        (untold / "config.json").write_text(json.dumps(config))
        found = prompt_tuned(untold).predict_proba(TEXTS)
        np.testing.assert_allclose(found, prompt_tuned(told).predict_proba(TEXTS), rtol=1e-4, atol=1e-6)

    def test_is_found_under_an_adapter(self, mlm: Any, tmp_path: Path) -> None:
        encoder = Encoder.load(mlm("bert"), "bert")
        attach(encoder.model, 2)
        detach(encoder.model, str(mlm("bert"))).save(tmp_path)
        adapted, bare = prompt_tuned(tmp_path), prompt_tuned(mlm("bert"))
        np.testing.assert_allclose(adapted.predict_proba(TEXTS), bare.predict_proba(TEXTS), rtol=1e-4, atol=1e-6)

    def test_that_is_damaged_is_refused(self, mlm: Any, tmp_path: Path) -> None:
        folder = prompt_tuned(mlm("bert")).save_pretrained(tmp_path / "model")
        config = folder / "maskmatch.json"
        whole = config.read_text()
        for change in ({"activation": "magic"}, {"word_bias": False}, {"unheard": 1}):
            data = json.loads(whole)
            data["head"] |= change
            config.write_text(json.dumps(data))
            with pytest.raises(MaskMatchError):
                MaskMatcher.from_pretrained(folder)


class TestWithoutAPretrainedHead:
    def test_one_is_trained_and_said_to_be_new(self, tiny: Any, tmp_path: Path) -> None:
        matcher = prompt_tuned(tiny("bert"), None).fit(TEXTS, TRUTH, **FAST)
        report = matcher.evaluate(TEXTS, TRUTH)
        assert report.accuracy == 1.0
        assert matcher.training_ is not None
        folder = matcher.save_pretrained(tmp_path / "model")
        for told in (matcher.training_.notes[0], report.notes[0], (folder / "README.md").read_text()):
            assert UNTOLD in told
        assert UNTOLD in report.to_html()
        loaded = MaskMatcher.from_pretrained(folder)
        assert loaded.training_ == matcher.training_
        np.testing.assert_allclose(loaded.predict_proba(TEXTS), matcher.predict_proba(TEXTS), rtol=1e-4, atol=1e-6)

    def test_a_pretrained_one_is_said_to_be_so(self, mlm: Any, tmp_path: Path) -> None:
        matcher = prompt_tuned(mlm("bert"))
        assert TOLD in matcher.evaluate(TEXTS, TRUTH).notes
        assert TOLD in (matcher.save_pretrained(tmp_path / "model") / "README.md").read_text()
        other = MaskMatcher.from_pretrained(mlm("bert"), labels=LABELS)
        assert not any("head" in note for note in other.evaluate(TEXTS, TRUTH).notes)

    def test_a_model_saved_before_heads_were_told_apart_still_loads(self, tiny: Any, tmp_path: Path) -> None:
        matcher = prompt_tuned(tiny("bert"), None).fit(TEXTS, TRUTH, **FAST)
        folder = matcher.save_pretrained(tmp_path / "model")
        data = json.loads((folder / "maskmatch.json").read_text())
        del data["sha256"], data["head"], data["training"]["notes"], data["config"]["task"]["metric"]
        (folder / "maskmatch.json").write_text(json.dumps(data))
        loaded = MaskMatcher.from_pretrained(folder)
        np.testing.assert_allclose(loaded.predict_proba(TEXTS), matcher.predict_proba(TEXTS), rtol=1e-4, atol=1e-6)

    def test_the_new_one_leads_into_the_space_of_words(self) -> None:
        states = torch.randn(2, 3, 4)
        same, other = (Transform(4, torch.nn.Embedding(9, size), HeadConfig()) for size in (4, 6))
        assert other(states).shape == (2, 3, 6)
        begun = torch.nn.functional.layer_norm(torch.nn.functional.gelu(states), (4,))
        torch.testing.assert_close(same(states), begun)


class TestTheWordsOfALabel:
    def test_are_its_own_or_its_name_and_phrases(self) -> None:
        assert Label("pos", "positive", "a good verdict", ("fine",)).verbalizer == ("positive", "fine")
        assert Label("pos", words=("great", " good ", "great")).verbalizer == ("great", "good")
        assert Label("pos", words="great").words == ("great",)  # type: ignore[arg-type]
        assert Label("pos", "positive", words=("great",)).texts == ("positive",)

    def test_change_nothing_for_other_methods(self, tiny: Any) -> None:
        bare = MaskMatcher.from_pretrained(tiny("bert"), labels=["refund", "card lost"])
        worded = MaskMatcher.from_pretrained(tiny("bert"), labels=[Label("refund", words=("money",)), "card lost"])
        assert np.array_equal(bare.predict_proba(TEXTS), worded.predict_proba(TEXTS))

    def test_that_two_labels_share_are_refused(self) -> None:
        with pytest.raises(MaskMatchError, match="'a' and 'b' share the word 'Good'; a word stands for one label"):
            LabelSet.of({"a": {"words": ["good"]}, "b": {"words": ["fine", "Good"]}})

    @pytest.mark.parametrize("words", [("",), (" ",), (3,)])
    def test_that_are_none_are_refused(self, words: Any) -> None:
        with pytest.raises(MaskMatchError, match="The label 'a' has"):
            Label("a", words=words)

    def test_are_saved_with_the_label(self, mlm: Any, tmp_path: Path) -> None:
        matcher = prompt_tuned(mlm("bert"), {"a": {"words": ["refund"]}, "b": {"words": ["card", "money"]}})
        loaded = MaskMatcher.from_pretrained(matcher.save_pretrained(tmp_path / "model"))
        assert loaded.labels == matcher.labels
        assert loaded.labels is not None
        assert loaded.labels.label("b").words == ("card", "money")
        np.testing.assert_allclose(loaded.predict_proba(TEXTS), matcher.predict_proba(TEXTS), rtol=1e-4, atol=1e-6)
