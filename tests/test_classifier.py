"""The classifier that users meet: what goes in, what comes out, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from maskmatch import Label, LabelSet, MaskMatcher, MaskMatchError, SimilarityConfig, Task
from maskmatch.scorer import Scorer
from maskmatch.similarity import Similarity
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from maskmatch.model import MatchingModel

Tiny = Callable[..., Path]

LONG_AND_SHORT = [
    "refund",
    "Where is my refund? I sent the parcel back two weeks ago and it is still pending.",
    "",
    "card lost",
    "x " * 300,
    "It is about the exchange rate; this is a question of money.",
    "money",
]
A_LITTLE = {"epochs": 3, "batch_size": 64, "learning_rate": 1e-2}
EXAMPLES_OF_FIELDS: dict[str, dict[str, Any]] = {
    "nli": {"text": "The card is lost.", "text_b": "The card is here."},
    "paraphrase": {"text": "Where is it?", "text_b": "It is where?"},
    "stance": {"text": "Too much money.", "text_b": "exchange rate"},
    "word-in-context": {"text": "a rate of money", "text_b": "they rate it", "entity": "rate"},
    "relation": {"text": "The clay was in a jar.", "head": "clay", "tail": "jar"},
    "entity-typing": {"text": "The clay was in a jar.", "entity": "clay"},
}


@pytest.fixture
def matcher(tiny: Tiny) -> MaskMatcher:
    return MaskMatcher.from_pretrained(tiny("bert"), LABELS)


def refusal(call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    with pytest.raises(MaskMatchError) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message


class TestLabels:
    @pytest.mark.parametrize(
        ("labels", "ids", "names"),
        [
            (["refund", "card lost"], ["refund", "card lost"], ("refund", "card lost")),
            (["card_lost", "org:founded_by"], ["card_lost", "org:founded_by"], None),
            ([3, 1], [3, 1], ("3", "1")),
            ({3: "refund", 1: "card lost"}, [3, 1], ("refund", "card lost")),
            (np.array([3, 1]), [3, 1], ("3", "1")),
            ([("a", 1), ("b", 2)], [("a", 1), ("b", 2)], None),
            (
                {"refund": "money back", "card lost": "no card"},
                ["refund", "card lost"],
                ("refund", "card lost"),
            ),
            ({"refund": ["money back"], "card": ["lost", "gone"]}, ["refund", "card"], ("refund", "card")),
            (LabelSet.of([Label(7, "refund"), Label(8, "card")]), [7, 8], ("refund", "card")),
        ],
    )
    def test_predictions_are_labels_as_the_user_gave_them(
        self, tiny: Tiny, labels: Any, ids: list[Any], names: tuple[str, ...] | None
    ) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), labels)
        assert matcher.labels is not None
        assert list(matcher.labels) == ids
        assert names is None or matcher.labels.names == names
        found = matcher.predict(TEXTS)
        assert set(found) <= set(ids)
        assert {type(id_) for id_ in found} <= {type(id_) for id_ in ids}
        best = matcher.predict_proba(TEXTS).argmax(axis=1)
        assert found == [ids[place] for place in best]

    def test_columns_follow_the_labels_not_the_alphabet(self, tiny: Tiny) -> None:
        forward = MaskMatcher.from_pretrained(tiny("bert"), LABELS).predict_proba(TEXTS)
        backward = MaskMatcher.from_pretrained(tiny("bert"), LABELS[::-1]).predict_proba(TEXTS)
        np.testing.assert_allclose(forward, backward[:, ::-1], atol=1e-6)
        assert np.abs(forward - backward).max() > 1e-3

    def test_descriptions_and_phrases_are_read(self, tiny: Tiny) -> None:
        bare = MaskMatcher.from_pretrained(tiny("bert"), LABELS).predict_proba(TEXTS)
        for more in ("money that is given back", ["money back", "pending parcel"]):
            labels = {**dict.fromkeys(LABELS), "refund": more}
            changed = MaskMatcher.from_pretrained(tiny("bert"), labels).predict_proba(TEXTS)
            assert np.abs(changed - bare).max() > 1e-3

    def test_labels_left_out_come_from_the_training_rows(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"))
        assert matcher.labels is None
        matcher.fit(TEXTS, TRUTH, **A_LITTLE)
        assert matcher.labels is not None
        assert list(matcher.labels) == sorted(LABELS)

    @pytest.mark.parametrize("kind", [int, np.int64, str])
    def test_labels_of_training_rows_come_back_in_their_kind(self, tiny: Tiny, kind: Any) -> None:
        rows = [kind(LABELS.index(label)) for label in TRUTH]
        matcher = MaskMatcher.from_pretrained(tiny("bert")).fit(TEXTS, rows, **A_LITTLE)
        assert list(matcher.labels or ()) == ([0, 1, 2] if kind is not str else ["0", "1", "2"])
        assert all(type(id_) is (str if kind is str else int) for id_ in matcher.predict(TEXTS))

    def test_a_fit_with_fewer_labels_than_the_classifier_has_keeps_them_all(self, matcher: MaskMatcher) -> None:
        matcher.fit(TEXTS[:8], TRUTH[:8], **A_LITTLE)
        assert list(matcher.labels or ()) == LABELS


class TestProbabilities:
    def test_rows_sum_to_one_and_columns_are_labels(self, matcher: MaskMatcher) -> None:
        probabilities = matcher.predict_proba(LONG_AND_SHORT)
        assert probabilities.shape == (len(LONG_AND_SHORT), len(LABELS))
        assert np.issubdtype(probabilities.dtype, np.floating)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-5)
        assert (probabilities >= 0).all()

    @pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
    @pytest.mark.parametrize("batch_size", [1, 3, 1000])
    def test_results_hang_neither_on_the_batch_size_nor_on_the_neighbours(
        self, tiny: Tiny, family: str, batch_size: int
    ) -> None:
        matcher = MaskMatcher.from_pretrained(tiny(family), LABELS)
        together = matcher.predict_proba(LONG_AND_SHORT)
        np.testing.assert_allclose(matcher.predict_proba(LONG_AND_SHORT, batch_size=batch_size), together, atol=1e-5)
        alone = np.concatenate([matcher.predict_proba([text]) for text in LONG_AND_SHORT])
        np.testing.assert_allclose(alone, together, atol=1e-5)
        best_two = np.sort(together, axis=1)[:, -2:]
        clear = best_two[:, 1] - best_two[:, 0] > 1e-4  # a random encoder may score two labels alike
        assert clear.any()
        assert (alone.argmax(axis=1) == together.argmax(axis=1))[clear].all()

    def test_results_come_in_the_order_of_the_texts(self, matcher: MaskMatcher) -> None:
        order = np.random.default_rng(0).permutation(len(LONG_AND_SHORT))
        shuffled = matcher.predict_proba([LONG_AND_SHORT[place] for place in order])
        np.testing.assert_allclose(shuffled, matcher.predict_proba(LONG_AND_SHORT)[order], atol=1e-5)

    def test_top_k_is_sorted_and_agrees_with_predict_proba(self, matcher: MaskMatcher) -> None:
        probabilities = matcher.predict_proba(TEXTS)
        for pairs, row in zip(matcher.top_k(TEXTS, 2), probabilities, strict=True):
            assert [label for label, _ in pairs] == [LABELS[place] for place in np.argsort(-row)[:2]]
            np.testing.assert_allclose([value for _, value in pairs], np.sort(row)[::-1][:2], atol=1e-6)

    def test_top_k_beyond_the_labels_gives_them_all(self, matcher: MaskMatcher) -> None:
        for pairs in matcher.top_k(TEXTS[:2], 99):
            assert sorted(str(label) for label, _ in pairs) == sorted(LABELS)
            assert sum(value for _, value in pairs) == pytest.approx(1.0, abs=1e-5)

    def test_the_score_is_the_similarity_of_the_two_states_at_the_mask(self, tiny: Tiny) -> None:
        """The definition of the method, computed by hand with transformers alone."""
        from transformers import AutoModel, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(tiny("bert"))
        model = AutoModel.from_pretrained(tiny("bert")).eval()

        def state(text: str) -> torch.Tensor:
            batch = tokenizer(text, return_tensors="pt")
            place = (batch["input_ids"][0] == tokenizer.mask_token_id).nonzero().item()
            with torch.no_grad():
                return model(**batch).last_hidden_state[0, int(place)]

        inputs = torch.stack([state(f"{text} It is about [MASK].") for text in TEXTS])
        labels = torch.stack([state(f"{label} is [MASK].") for label in LABELS])
        expected = {
            "dot": (inputs @ labels.T).softmax(1),
            "cosine": (torch.nn.functional.cosine_similarity(inputs[:, None], labels[None], dim=-1) / 0.05).softmax(1),
        }
        for similarity, probabilities in expected.items():
            matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, similarity=similarity)  # type: ignore[arg-type]
            np.testing.assert_allclose(matcher.predict_proba(TEXTS), probabilities, atol=1e-5)

    def test_prompts_and_temperature_are_those_asked_for(self, tiny: Tiny) -> None:
        plain = MaskMatcher.from_pretrained(tiny("bert"), LABELS).predict_proba(TEXTS)
        for options in (
            {"prompt": "{text} {mask}"},
            {"label_prompt": "{mask} means {label}"},
            {"task": "sentiment"},
            {"similarity": SimilarityConfig(temperature=1.0)},
        ):
            other = MaskMatcher.from_pretrained(tiny("bert"), LABELS, **options)  # type: ignore[arg-type]
            assert np.abs(other.predict_proba(TEXTS) - plain).max() > 1e-3, options

    def test_long_texts_are_shortened_counted_and_told(
        self, matcher: MaskMatcher, caplog: pytest.LogCaptureFixture
    ) -> None:
        matcher.predict(["refund", "money " * 500])
        assert matcher.cut_ == 1
        assert "1 of 2 texts" in caplog.text
        matcher.predict(["refund"])
        assert matcher.cut_ == 0

    def test_nothing_is_printed(self, matcher: MaskMatcher, capfd: pytest.CaptureFixture[str]) -> None:
        matcher.fit(TEXTS, TRUTH, dev=(TEXTS, TRUTH), **A_LITTLE)
        matcher.predict(TEXTS)
        matcher.evaluate(TEXTS, TRUTH)
        assert capfd.readouterr().out == ""


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


class TestEvaluate:
    def test_the_report_counts_what_predict_says(self, matcher: MaskMatcher) -> None:
        report = matcher.evaluate(TEXTS, TRUTH)
        right = sum(found == true for found, true in zip(matcher.predict(TEXTS), TRUTH, strict=True))
        assert report.rows == len(TEXTS)
        assert report.accuracy == pytest.approx(right / len(TEXTS))
        assert [score.label for score in report.per_label] == LABELS
        assert sum(confusion.count for confusion in report.confusions) == len(TEXTS) - right
        assert report.to_dict()["accuracy"] == report.accuracy
        assert "refund" in str(report)
        assert matcher.report_ is report

    def test_a_label_that_the_classifier_does_not_have_counts_as_wrong(self, matcher: MaskMatcher) -> None:
        report = matcher.evaluate(TEXTS, ["parcel"] * len(TEXTS))
        assert report.accuracy == 0
        assert [(each.label, each.rows) for each in report.unseen] == [("parcel", len(TEXTS))]

    def test_shortened_texts_are_reported(self, matcher: MaskMatcher) -> None:
        assert matcher.evaluate(["money " * 300, "card"], LABELS[:2]).cut == 1

    def test_numpy_labels_match_plain_ones(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), {0: "refund", 1: "card lost", 2: "exchange rate"})
        plain = [LABELS.index(label) for label in TRUTH]
        assert matcher.evaluate(TEXTS, np.array(plain)).accuracy == matcher.evaluate(TEXTS, plain).accuracy
        assert not matcher.evaluate(TEXTS, np.array(plain)).unseen


class Encodings:
    """Counts the label texts that an encoder reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[str] = []
        original = Scorer._encode_labels

        def counting(scorer: Scorer, model: MatchingModel, texts: Sequence[str]) -> torch.Tensor:
            self.texts += texts
            return original(scorer, model, texts)

        monkeypatch.setattr(Scorer, "_encode_labels", counting)

    def take(self) -> list[str]:
        taken, self.texts = self.texts, []
        return taken


class TestEditingLabels:
    @pytest.fixture
    def encodings(self, monkeypatch: pytest.MonkeyPatch) -> Encodings:
        return Encodings(monkeypatch)

    def fresh(self, tiny: Tiny, labels: Any) -> Any:
        return MaskMatcher.from_pretrained(tiny("bert"), labels).predict_proba(TEXTS)

    def test_labels_are_read_once(self, matcher: MaskMatcher, encodings: Encodings) -> None:
        matcher.predict(TEXTS)
        assert encodings.take() == LABELS
        matcher.predict(TEXTS)
        matcher.predict_proba(TEXTS[:1])
        matcher.top_k(TEXTS, 2)
        matcher.evaluate(TEXTS, TRUTH)
        assert encodings.take() == []

    def test_only_what_changes_is_read_anew(self, tiny: Tiny, matcher: MaskMatcher, encodings: Encodings) -> None:
        matcher.predict(TEXTS)
        encodings.take()

        matcher.add_labels({"chargeback": "money taken back"})
        np.testing.assert_allclose(
            matcher.predict_proba(TEXTS),
            self.fresh(tiny, {**dict.fromkeys(LABELS), "chargeback": "money taken back"}),
            atol=1e-5,
        )
        assert encodings.take()[0] == "chargeback: money taken back"

        matcher.rename_label("refund", "parcel")
        encodings.take()
        renamed = matcher.predict_proba(TEXTS)
        assert encodings.take() == ["parcel"]
        assert list(matcher.labels or ()) == ["parcel", "card lost", "exchange rate", "chargeback"]

        matcher.remove_labels(["card lost", "chargeback"])
        kept = matcher.predict_proba(TEXTS)
        assert encodings.take() == []
        assert list(matcher.labels or ()) == ["parcel", "exchange rate"]
        ratio = renamed[:, [0, 2]] / renamed[:, [0, 2]].sum(axis=1, keepdims=True)
        np.testing.assert_allclose(kept, ratio, atol=1e-5)
        np.testing.assert_allclose(kept, self.fresh(tiny, ["parcel", "exchange rate"]), atol=1e-5)

    def test_only_the_new_label_is_read_when_one_is_added(self, matcher: MaskMatcher, encodings: Encodings) -> None:
        matcher.predict(TEXTS)
        encodings.take()
        matcher.add_labels(["chargeback", "parcel"])
        matcher.predict(TEXTS)
        assert encodings.take() == ["chargeback", "parcel"]

    def test_an_added_label_can_be_predicted_at_once(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), ["refund"])
        assert set(matcher.predict(TEXTS)) == {"refund"}
        matcher.add_labels(LABELS[1:])
        assert matcher.predict_proba(TEXTS).shape == (len(TEXTS), 3)
        np.testing.assert_allclose(matcher.predict_proba(TEXTS), self.fresh(tiny, LABELS), atol=1e-5)

    def test_labels_can_be_added_to_none(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert")).add_labels(LABELS)
        np.testing.assert_allclose(matcher.predict_proba(TEXTS), self.fresh(tiny, LABELS), atol=1e-6)

    def test_training_makes_label_vectors_anew(self, matcher: MaskMatcher, encodings: Encodings) -> None:
        before = matcher.predict_proba(TEXTS)
        encodings.take()
        matcher.fit(TEXTS, TRUTH, epochs=3, learning_rate=1e-2)
        assert np.abs(matcher.predict_proba(TEXTS) - before).max() > 1e-2
        assert encodings.take() == LABELS
        with torch.no_grad():  # against vectors that were certainly computed with the weights as they are
            fresh = matcher._scorer._encode_labels(matcher._scorer.model(matcher.labels), LABELS)
        torch.testing.assert_close(matcher._scorer.label_vectors(matcher.labels)[0][:, 0], fresh)

    def test_a_change_of_weights_by_hand_is_noticed(self, matcher: MaskMatcher, encodings: Encodings) -> None:
        matcher.predict(TEXTS)
        encodings.take()
        with torch.no_grad():
            next(matcher.encoder.model.parameters()).mul_(1.5)
        matcher.predict(TEXTS)
        assert encodings.take() == LABELS

    def test_editing_refuses_what_makes_no_sense(self, matcher: MaskMatcher) -> None:
        assert "'refund' is there twice" in refusal(matcher.add_labels, ["refund"])
        assert "'parcel'" in refusal(matcher.rename_label, "parcel", "x")
        assert "card lost" in refusal(matcher.rename_label, "refund", "card lost")
        assert "'parcel'" in refusal(matcher.remove_labels, ["parcel"])
        assert "Every label" in refusal(matcher.remove_labels, LABELS)
        assert list(matcher.labels or ()) == LABELS

    @pytest.mark.parametrize("method", ["fine-tuning", "soft-prompt"])
    def test_a_learned_matrix_can_lose_labels_but_gain_none(self, tiny: Tiny, method: str) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), method=method)
        matcher.fit(TEXTS, TRUTH, epochs=3, learning_rate=1e-2)
        before = matcher.predict_proba(TEXTS)  # card lost, exchange rate, refund
        assert method in refusal(matcher.add_labels, ["parcel"])
        matcher.remove_labels(["exchange rate"])
        assert list(matcher.labels or ()) == ["card lost", "refund"]
        kept = before[:, [0, 2]]
        np.testing.assert_allclose(matcher.predict_proba(TEXTS), kept / kept.sum(axis=1, keepdims=True), atol=1e-5)
        matcher.rename_label("refund", "money back")
        assert set(matcher.predict(TEXTS)) <= {"card lost", "money back"}
        matcher.fit(TEXTS[:2], ["card lost", "money back"], **A_LITTLE)


class TestRefusals:
    def test_no_labels_yet(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"))
        for call in (matcher.predict, matcher.predict_proba, matcher.top_k):
            assert "no labels yet" in refusal(call, TEXTS)
        assert "no labels yet" in refusal(matcher.evaluate, TEXTS, TRUTH)
        assert "no labels yet" in refusal(matcher.rename_label, "a", "b")
        assert "no labels yet" in refusal(matcher.save_pretrained, "nowhere")

    @pytest.mark.parametrize(
        ("labels", "words"),
        [
            ([], "no labels"),
            (["a", "a"], "'a' is there twice"),
            (["a", " "], "blank"),
            (["a", None], "missing"),
            ("refund", "'refund'"),
            (["card_lost", "card lost"], "both read"),
        ],
    )
    def test_labels_that_cannot_be(self, tiny: Tiny, labels: Any, words: str) -> None:
        assert words in refusal(MaskMatcher.from_pretrained, tiny("bert"), labels)

    @pytest.mark.parametrize(
        ("option", "value", "words"),
        [
            ("task", "topics", "task 'topics'"),
            ("method", "magic", "method 'magic'"),
            ("similarity", "euclid", "similarity 'euclid'"),
            ("prompt", "no mask {text}", "mask"),
            ("label_prompt", "{mask}", "label"),
            ("max_length", 10_000, "10000"),
            ("max_length", 0, "max_length is 0"),
            ("device", "abacus", "device 'abacus'"),
            ("device", "cuda:99", "device 'cuda:99'"),
        ],
    )
    def test_options_that_cannot_be(self, tiny: Tiny, option: str, value: Any, words: str) -> None:
        assert words in refusal(MaskMatcher.from_pretrained, tiny("bert"), LABELS, **{option: value})

    def test_models_that_are_not_there(self, tmp_path: Path) -> None:
        assert "nowhere" in refusal(MaskMatcher.from_pretrained, tmp_path / "nowhere")
        (tmp_path / "empty").mkdir()
        assert "config.json" in refusal(MaskMatcher.from_pretrained, tmp_path / "empty")
        assert "no-such/model" in refusal(MaskMatcher.from_pretrained, "no-such/model")

    @pytest.mark.parametrize("texts", ["a bare string", {"text": "one"}, None, 3])
    def test_texts_that_are_no_list(self, matcher: MaskMatcher, texts: Any) -> None:
        for call in (matcher.predict, matcher.predict_proba, matcher.top_k):
            assert "list" in refusal(call, texts)
        assert "list" in refusal(matcher.fit, texts, TRUTH)

    @pytest.mark.parametrize("texts", [[], (), np.array([]), iter(())])
    def test_no_texts(self, matcher: MaskMatcher, texts: Any) -> None:
        assert "no texts" in refusal(matcher.predict, texts)

    @pytest.mark.parametrize("text", [None, 3, b"bytes", ["a"], float("nan")])
    def test_a_text_that_is_none(self, matcher: MaskMatcher, text: Any) -> None:
        message = refusal(matcher.predict, ["fine", text])
        assert "Text 1" in message
        assert type(text).__name__ in message

    @pytest.mark.parametrize("value", [0, -1, 1.5, "3", None, True])
    def test_bad_k_and_batch_size(self, matcher: MaskMatcher, value: Any) -> None:
        assert f"k is {value!r}" in refusal(matcher.top_k, TEXTS, value)
        for call in (matcher.predict, matcher.predict_proba):
            assert f"batch_size is {value!r}" in refusal(call, TEXTS, batch_size=value)

    def test_labels_that_do_not_fit_the_texts(self, matcher: MaskMatcher) -> None:
        for call in (matcher.fit, matcher.evaluate):
            assert "12 texts but 11 labels" in refusal(call, TEXTS, TRUTH[:-1])
            assert "labels are missing" in refusal(call, TEXTS)
            assert "'ab'" in refusal(call, ["one", "two"], "ab")
            assert "Labels come as a list" in refusal(call, TEXTS, 3)
            assert "Row 1" in refusal(call, TEXTS[:2], ["refund", None])
        assert "several" in refusal(matcher.evaluate, TEXTS[:2], [["refund"], ["card lost", "refund"]])

    def test_training_rows_that_cannot_teach(self, tiny: Tiny, matcher: MaskMatcher) -> None:
        fresh = MaskMatcher.from_pretrained(tiny("bert"))
        assert "fewer than two labels, only 'refund'" in refusal(fresh.fit, TEXTS, ["refund"] * len(TEXTS))
        unknown = refusal(matcher.fit, TEXTS, [*TRUTH[:-1], "parcel"])
        assert "'parcel' (1 rows)" in unknown
        assert "add_labels" in unknown

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"epoch": 3}, "no epoch"),
            ({"epochs": 0}, "epochs is 0"),
            ({"epochs": float("nan")}, "epochs is nan"),
            ({"learning_rate": -1.0}, "learning_rate is -1.0"),
            ({"batch_size": 0}, "batch_size is 0"),
            ({"batch_size": 2.5}, "batch_size is 2.5"),
            ({"batch_size": "8"}, "batch_size is '8'"),
            ({"seed": -1}, "seed is -1"),
            ({"patience": 0}, "patience is 0"),
            ({"weight_decay": -0.1}, "weight_decay is -0.1"),
            ({"resume": True}, "folder of the checkpoints"),
            ({"arguments": {"no_such_argument": 1}}, "no_such_argument"),
            ({"arguments": {"lr_scheduler_type": "zigzag"}}, "zigzag"),
        ],
    )
    def test_fit_options_that_cannot_be(self, matcher: MaskMatcher, options: dict[str, Any], words: str) -> None:
        assert words in refusal(matcher.fit, TEXTS, TRUTH, **options)
        assert matcher.training_ is None

    def test_a_refused_fit_leaves_the_classifier_as_it_was(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"))
        refusal(matcher.fit, ["one", None], ["x", "y"])
        refusal(matcher.fit, ["one", "two"], [["x"], ["x"]])
        refusal(matcher.fit, ["one", "two"], ["x", "y"], dev=(["one"], []))
        refusal(matcher.fit, ["one", "two"], [["x"], ["x", "y"]], arguments={"no_such_argument": 1})
        assert matcher.labels is None
        assert not matcher.config.multi_label
        matcher.fit(TEXTS, TRUTH, **A_LITTLE)
        assert list(matcher.labels or ()) == sorted(LABELS)

    @pytest.mark.parametrize("method", ["fine-tuning", "soft-prompt"])
    def test_a_learned_matrix_predicts_nothing_before_training(self, tiny: Tiny, method: str) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, method=method)
        message = refusal(matcher.predict, TEXTS)
        assert method in message
        assert "fit" in message


class TestDevice:
    def test_all_that_computes_is_where_it_was_asked_for(self, tiny: Tiny, tmp_path: Path) -> None:
        """The device "meta" stands for a GPU: it computes nothing, but tensors on it cannot meet others."""
        for method in ("mask-matching", "fine-tuning"):
            matcher = MaskMatcher.from_pretrained(tiny("bert"), method=method)
            matcher.fit(TEXTS, TRUTH, **A_LITTLE).save_pretrained(tmp_path / method)
            loaded = MaskMatcher.from_pretrained(tmp_path / method, device="meta")
            model = loaded._scorer.model(loaded.labels)
            assert {tensor.device.type for tensor in model.state_dict().values()} == {"meta"}
            assert {tensor.device.type for tensor in loaded._scorer.label_vectors(loaded.labels)} == {"meta"}
            assert isinstance(model.similarity, Similarity)
