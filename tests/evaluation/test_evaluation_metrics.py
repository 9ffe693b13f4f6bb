"""The table of metrics: compared with scikit-learn and with cases worked by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score
from sklearn.preprocessing import MultiLabelBinarizer

from maskmatch import MaskMatcher, Task
from maskmatch.errors import MaskMatchError
from maskmatch.evaluation import (
    METRICS,
    Metric,
    directed_macro_f1,
    evaluate_predictions,
    find_metric,
    mean_f1_of,
    measure,
    micro_f1_without,
)
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

RELATIONS = ["no_relation", "per:age", "org:founded_by", "per:title"]
STANCES = ["favor", "against", "none"]


def rows(labels: Sequence[Hashable]) -> list[tuple[Hashable, ...]]:
    return [(label,) for label in labels]


def score(metric: str, truth: Sequence[Hashable], predicted: Sequence[Hashable], names: Any = None) -> float:
    known = names or {label: str(label) for label in dict.fromkeys([*truth, *predicted])}
    return measure(rows(truth), rows(predicted), known, metric=metric).score


def pairs_of(labels: Sequence[str]) -> st.SearchStrategy[list[tuple[str, str]]]:
    return st.lists(st.tuples(st.sampled_from(labels), st.sampled_from(labels)), min_size=1, max_size=30)


@given(pairs_of(RELATIONS))
@settings(max_examples=50, deadline=None)
def test_single_label_metrics_equal_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    truth, predicted = map(list, zip(*pairs, strict=True))
    assert score("accuracy", truth, predicted) == pytest.approx(accuracy_score(truth, predicted))
    assert score("micro-f1", truth, predicted) == pytest.approx(f1_score(truth, predicted, average="micro"))
    assert score("macro-f1", truth, predicted) == pytest.approx(f1_score(truth, predicted, average="macro"))
    without = f1_score(truth, predicted, labels=RELATIONS[1:], average="micro", zero_division=0)
    assert score("relation-micro-f1", truth, predicted) == pytest.approx(without)


@given(pairs_of(STANCES))
@settings(max_examples=50, deadline=None)
def test_stance_f1_is_the_mean_of_favor_and_against(pairs: list[tuple[str, str]]) -> None:
    truth, predicted = map(list, zip(*pairs, strict=True))
    expected = f1_score(truth, predicted, labels=STANCES[:2], average="macro", zero_division=0)
    assert score("stance-f1", truth, predicted, {name: name for name in STANCES}) == pytest.approx(expected)


@given(st.lists(st.tuples(*[st.lists(st.sampled_from("abc"), unique=True)] * 2), min_size=1, max_size=20))
@settings(max_examples=50, deadline=None)
def test_multi_label_metrics_equal_scikit_learn(pairs: list[tuple[list[str], list[str]]]) -> None:
    truth, predicted = map(list, zip(*pairs, strict=True))
    binarizer = MultiLabelBinarizer(classes=list("abc"))
    table, guess = binarizer.fit_transform(truth), binarizer.transform(predicted)
    names = {name: name for name in "abc"}
    result = measure(truth, predicted, names, metric="micro-f1", multi_label=True)
    assert result.score == pytest.approx(f1_score(table, guess, average="micro", zero_division=0))
    occurring = [column for column in range(3) if table[:, column].any() or guess[:, column].any()]
    macro = measure(truth, predicted, names, metric="macro-f1", multi_label=True).score
    if occurring:
        assert macro == pytest.approx(f1_score(table, guess, labels=occurring, average="macro", zero_division=0))


class TestRelations:
    @pytest.mark.parametrize("none", ["no_relation", "No Relation", "NA", "none", "Other"])
    def test_class_for_no_relation_is_found_by_name(self, none: str) -> None:
        truth, predicted = ["age", none, none, "title"], ["age", none, "age", none]
        assert score("relation-micro-f1", truth, predicted) == pytest.approx(2 * 1 / (2 + 2))

    def test_integer_label_with_a_name(self) -> None:
        names = {0: "no relation", 1: "age", 2: "title"}
        assert score("relation-micro-f1", [1, 0, 2], [1, 0, 0], names) == pytest.approx(2 / 3)

    def test_other_counts_if_there_is_a_class_for_no_relation(self) -> None:
        names = {name: name for name in ("other", "no relation", "age")}
        assert score("relation-micro-f1", ["other", "no relation"], ["other", "no relation"], names) == 1.0
        assert score("relation-micro-f1", ["other", "age"], ["age", "age"], names) == 0.5

    def test_without_a_class_for_no_relation_it_is_micro_f1(self) -> None:
        assert score("relation-micro-f1", ["a", "b", "c"], ["a", "b", "a"]) == pytest.approx(2 / 3)

    def test_only_no_relation_scores_zero(self) -> None:
        assert score("relation-micro-f1", ["none", "none"], ["none", "none"]) == 0.0

    def test_excluded_label_can_be_given(self) -> None:
        metric = micro_f1_without("zilch")
        result = measure(rows(["a", "zilch"]), rows(["a", "zilch"]), {}, metric=metric)
        assert (result.score, result.metric.name) == (1.0, "micro-f1 without zilch")


class TestDirectedRelations:
    """As the official scorer: both directions of a relation are pooled, and the wrong direction is an error."""

    TRUTH = ("CE(e1,e2)", "CE(e1,e2)", "CE(e2,e1)", "PP(e1,e2)", "PP(e2,e1)", "Other", "Other")
    PREDICTED = ("CE(e1,e2)", "CE(e2,e1)", "CE(e2,e1)", "PP(e1,e2)", "CE(e1,e2)", "PP(e1,e2)", "Other")
    # CE: 2 correct, 4 predicted, support 3: F1 = 4/7. PP: 1 correct, 2 predicted, support 2: F1 = 1/2.
    EXPECTED = (4 / 7 + 1 / 2) / 2

    def test_labels_in_the_usual_notation(self) -> None:
        assert score("semeval-2010-8", self.TRUTH, self.PREDICTED) == pytest.approx(self.EXPECTED)

    def test_integer_labels_with_names(self) -> None:
        numbers = {label: number for number, label in enumerate(dict.fromkeys(self.TRUTH))}
        truth, predicted = ([numbers[label] for label in labels] for labels in (self.TRUTH, self.PREDICTED))
        names = {number: label.replace("(", " (") for label, number in numbers.items()}
        assert score("semeval-2010-8", truth, predicted, names) == pytest.approx(self.EXPECTED)

    def test_other_names_with_given_relations(self) -> None:
        readable = {
            "CE(e1,e2)": "is the cause of",
            "CE(e2,e1)": "is the effect of",
            "PP(e1,e2)": "is produced by",
            "PP(e2,e1)": "produces",
            "Other": "other",
        }
        relations: dict[Hashable, Any] = {
            name: None if label == "Other" else (label[:2], label[3:-1]) for label, name in readable.items()
        }
        truth, predicted = ([readable[label] for label in labels] for labels in (self.TRUTH, self.PREDICTED))
        report = evaluate_predictions(
            truth, truth, predicted, labels=readable.values(), metric=directed_macro_f1(relations)
        )
        assert report.score == pytest.approx(self.EXPECTED)
        assert report.metric == "directed macro-f1"
        lacking = {name: relation for name, relation in relations.items() if name != "produces"}
        with pytest.raises(MaskMatchError, match="The label 'produces' has no relation and direction"):
            directed_macro_f1(lacking).score(rows(truth), rows(predicted), {})

    def test_wrong_directions_score_zero(self) -> None:
        assert score("semeval-2010-8", ["CE(e1,e2)", "PP(e1,e2)"], ["CE(e2,e1)", "PP(e2,e1)"]) == 0.0

    def test_names_without_direction_raise(self) -> None:
        with pytest.raises(MaskMatchError, match=r"'causes' does not; give metric=directed_macro_f1\("):
            score("semeval-2010-8", ["causes", "CE(e1,e2)"], ["causes", "CE(e1,e2)"])


class TestChoiceOfMetric:
    def test_usual_metric_is_the_default(self) -> None:
        truth, predicted = rows(["favor", "none"]), rows(["favor", "favor"])
        names = {name: name for name in STANCES}
        assert measure(truth, predicted, names, usual="stance-f1").score == pytest.approx(1 / 3)
        assert measure(truth, predicted, names, usual="stance-f1", metric="accuracy").score == 0.5

    def test_usual_metric_that_does_not_apply_is_replaced_with_a_note(self) -> None:
        result = measure(rows("ab"), rows("aa"), {"a": "a", "b": "b"}, usual="stance-f1")
        assert (result.metric.name, result.score) == ("accuracy", 0.5)
        (note,) = result.notes
        assert note.startswith("The score is accuracy instead of the task's usual metric. The metric stance-f1 needs")

    def test_requested_metric_that_does_not_apply_raises(self) -> None:
        with pytest.raises(MaskMatchError, match="needs a label named favor and one named against"):
            score("stance-f1", ["a", "b"], ["a", "a"])
        with pytest.raises(MaskMatchError, match="is for one label per text; choose micro-f1 or macro-f1"):
            measure([["a", "b"]], [["a"]], {}, metric="semeval-2010-8", multi_label=True)
        with pytest.raises(MaskMatchError, match="There is no metric 'luck'; choose one of accuracy, micro-f1"):
            find_metric("luck")

    def test_multi_label_default_is_micro_f1(self) -> None:
        result = measure([["a", "b"], []], [["a"], []], {"a": "a", "b": "b"}, multi_label=True)
        assert (result.metric.name, result.score) == ("micro-f1", pytest.approx(2 / 3))

    def test_custom_metric(self) -> None:
        own = Metric("texts", "the number of texts", lambda truth, predicted, names: float(len(truth)))
        assert measure(rows("ab"), rows("ab"), {}, metric=own).score == 2.0
        assert mean_f1_of("a", "c").score(rows("ab"), rows("ab"), {}) == 0.5

    def test_labels_only_in_the_truth_count(self) -> None:
        result = measure(rows(["against", "favor"]), rows(["favor", "favor"]), {"favor": "favor"}, usual="stance-f1")
        assert (result.metric.name, result.score) == ("stance-f1", pytest.approx(1 / 3))


class TestReports:
    def test_report_contains_metric_and_score(self) -> None:
        truth, predicted = ["favor", "against", "none"], ["favor", "favor", "none"]
        report = evaluate_predictions(
            truth, truth, predicted, labels=STANCES, usual_metric="stance-f1", notes=["Mind!"]
        )
        assert (report.metric, report.score) == ("stance-f1", pytest.approx(1 / 3))
        assert "0.333 (stance-f1)" in str(report)
        assert "stance-f1" in report.to_html()
        assert {"metric": "stance-f1", "score": report.score}.items() <= report.to_dict().items()
        assert {"metric": "stance-f1", "score": 0.3333}.items() <= report.headline().items()
        assert report.notes[0] == "Mind!"

    @pytest.mark.parametrize("metric", [None, *METRICS])
    def test_evaluate_with_metric(self, tiny: Any, metric: str | None) -> None:
        task = Task("bank", "what a customer wants", metric="macro-f1")
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, task=task)
        if metric in ("stance-f1", "semeval-2010-8"):
            with pytest.raises(MaskMatchError, match=f"The metric {metric} needs"):
                matcher.evaluate(TEXTS, TRUTH, metric=metric)
            return
        report = matcher.evaluate(TEXTS, TRUTH, metric=metric)
        assert report.metric == (metric or "macro-f1")
        expected = report.macro_f1 if report.metric == "macro-f1" else report.accuracy
        assert report.score == pytest.approx(expected)

    def test_integer_labels_with_names(self, tiny: Any) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), {0: "favor", 1: "against", 2: "none"}, task="stance")
        texts = [{"text": "please block it", "text_b": "card"}, {"text": "refund", "text_b": "money"}]
        report = matcher.evaluate(texts, [0, 1])
        assert report.metric == "stance-f1"

    def test_dev_is_scored_with_the_metric_of_the_task(self, tiny: Any) -> None:
        texts = [{"text": text, "text_b": "money"} for text in TEXTS]
        stances = [dict(zip(LABELS, STANCES, strict=True))[label] for label in TRUTH]
        matcher = MaskMatcher.from_pretrained(tiny("bert"), task="stance")
        matcher.fit(texts, stances, dev=(texts, stances), epochs=2)
        assert matcher.training_ is not None
        dev = matcher.training_.dev
        assert dev is not None
        assert set(dev) == {"score", "stance-f1", "accuracy"}
        assert dev["score"] == dev["stance-f1"] == pytest.approx(matcher.evaluate(texts, stances).score)
