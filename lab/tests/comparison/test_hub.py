"""Hub datasets in the plain form, from small tables in their own layout; nothing is fetched."""

from __future__ import annotations

from typing import Any

import pytest
from datasets import ClassLabel, Dataset, Features, Sequence, Value

from maskmatch import TASKS, MaskMatchError
from maskmatch_lab.comparison import hub
from maskmatch_lab.comparison.hub import PAPER_DATASETS, load_hub_dataset, paper_datasets

TEXT = Value("string")


def table(names: list[str] | None, label: str = "label", count: int = 24, **columns: str) -> Dataset:
    """A table with a column for each that is named, and labels in turn."""
    rows: dict[str, list[Any]] = {
        column: [f"{start} number {number}" for number in range(count)] for column, start in columns.items()
    }
    kinds = dict.fromkeys(columns, TEXT)
    if names is None:
        rows[label] = [("very good", "very bad")[number % 2] for number in range(count)]
        return Dataset.from_dict(rows, features=Features({**kinds, label: TEXT}))
    rows[label] = [number % len(names) for number in range(count)]
    return Dataset.from_dict(rows, features=Features({**kinds, label: ClassLabel(names=names)}))


def relations(count: int = 20) -> Dataset:
    names = ["Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)", "Other"]
    sentences = [f'"The <e1>smoke {number}</e1> comes from the <e2>fire</e2>."' for number in range(count)]
    features = Features({"sentence": TEXT, "relation": ClassLabel(names=names)})
    return Dataset.from_dict(
        {"sentence": sentences, "relation": [number % 3 for number in range(count)]}, features=features
    )


def entities(count: int = 8) -> Dataset:
    tags = Sequence(ClassLabel(names=["O", "person-actor", "location-GPE"]))
    features = Features({"tokens": Sequence(TEXT), "ner_tags": tags, "fine_ner_tags": tags})
    rows = {
        "tokens": [["Greta", "Garbo", "left", "Stockholm", "."]] * count,
        "fine_ner_tags": [[1, 1, 0, 2, 0]] * count,
        "ner_tags": [[1, 1, 0, 2, 0]] * count,
    }
    return Dataset.from_dict(rows, features=features)


LAYOUTS: dict[tuple[str, str | None], Any] = {
    ("fancyzhx/ag_news", None): lambda: table(["World", "Sports", "Business", "Sci/Tech"], text="news"),
    ("fancyzhx/dbpedia_14", None): lambda: table(["Company", "EducationalInstitution"], title="t", content="c"),
    ("nyu-mll/glue", "sst2"): lambda: table(["negative", "positive"], sentence="a film"),
    ("SetFit/sst5", None): lambda: table(None, "label_text", text="a film"),
    ("nyu-mll/glue", "rte"): lambda: table(["entailment", "not_entailment"], sentence1="a", sentence2="b"),
    ("nyu-mll/glue", "mnli"): lambda: table(["entailment", "neutral", "contradiction"], premise="a", hypothesis="b"),
    ("nyu-mll/glue", "mrpc"): lambda: table(["not_equivalent", "equivalent"], sentence1="a", sentence2="b"),
    ("nyu-mll/glue", "qqp"): lambda: table(["not_duplicate", "duplicate"], question1="a", question2="b"),
    ("aps/super_glue", "wic"): lambda: table(["False", "True"], word="bank", sentence1="a", sentence2="b"),
    ("SemEvalWorkshop/sem_eval_2010_task_8", None): relations,
    ("DFKI-SLT/few-nerd", "supervised"): entities,
    **{
        ("cardiffnlp/tweet_eval", f"stance_{name}"): lambda: table(["none", "against", "favor"], text="a tweet")
        for name in hub.TARGETS
    },
}
SPLITS = {"train", "validation", "validation_matched", "test"}


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, config: str | None, split: str) -> Any:
        assert split in SPLITS
        return LAYOUTS[name, config]()

    monkeypatch.setattr(hub, "load_split", load)


@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize("name", PAPER_DATASETS)
def test_every_dataset_becomes_rows_of_its_task(name: str) -> None:
    dataset = load_hub_dataset(PAPER_DATASETS[name])
    fields = TASKS[PAPER_DATASETS[name].task].fields
    assert dataset.dev is not None
    for rows in (dataset.train, dataset.dev, dataset.test):
        assert len(rows)
        for text, label in zip(rows.texts, rows.labels, strict=True):
            assert isinstance(label, str)
            if fields == ("text",):
                assert isinstance(text, str)
            else:
                assert set(fields) <= set(text)
    if "dev" not in PAPER_DATASETS[name].splits:
        assert not set(dataset.dev.numbers) & set(dataset.train.numbers)


def test_all_eight_kinds_of_task_are_there() -> None:
    kinds = {"topic", "sentiment", "nli", "paraphrase", "word-in-context", "relation", "entity-typing", "stance"}
    assert {dataset.task for dataset in PAPER_DATASETS.values()} == kinds
    assert [dataset.name for dataset in paper_datasets(["wic", "rte"])] == ["wic", "rte"]
    with pytest.raises(MaskMatchError, match="no dataset 'imdb'"):
        paper_datasets(["imdb"])


@pytest.mark.usefixtures("stand_ins")
def test_labels_are_words_and_spans_hold_the_words() -> None:
    relation = load_hub_dataset(PAPER_DATASETS["semeval2010"])
    assert set(relation.labels) == {"causes", "is caused by", "other"}
    text = relation.test.texts[0]
    assert text["text"] == "The smoke 0 comes from the fire."
    for field in ("head", "tail"):
        start, end = text[f"{field}_span"]
        assert text["text"][start:end] == text[field]
    assert (text["head"], text["tail"]) == ("smoke 0", "fire")

    typing = load_hub_dataset(PAPER_DATASETS["fewnerd"])
    found = [(text["entity"], label) for text, label in zip(typing.test.texts, typing.test.labels, strict=True)]
    assert found[:2] == [("Greta Garbo", "person-actor"), ("Stockholm", "location-GPE")]
    start, end = typing.test.texts[1]["entity_span"]
    assert typing.test.texts[1]["text"][start:end] == "Stockholm"

    assert set(load_hub_dataset(PAPER_DATASETS["wic"]).labels) == {"same meaning", "different meaning"}
    stance = load_hub_dataset(PAPER_DATASETS["stance"])
    assert {text["text_b"] for text in stance.train.texts} == set(hub.TARGETS.values())


def test_the_second_thing_may_come_first() -> None:
    row = {"sentence": "The <e2>fire</e2> made <e1>smoke</e1>.", "relation": 1}
    (found,) = hub.relation_rows(row)
    assert (found["head"], found["tail"]) == ("smoke", "fire")
    assert found["text"][slice(*found["head_span"])] == "smoke"
    assert list(hub.relation_rows({"sentence": "Nothing is marked.", "relation": 0})) == []


def test_rows_without_a_label_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, config: str | None, split: str) -> list[dict[str, Any]]:
        return [{"sentence1": "a", "sentence2": "b", "label": label} for label in (0, 1, -1, None, 0, 1)]

    monkeypatch.setattr(hub, "load_split", load)
    dataset = load_hub_dataset(PAPER_DATASETS["mrpc"])
    assert dataset.test.labels == ["0", "1", "0", "1"]
    assert dataset.test.numbers == [0, 1, 4, 5]


def test_another_layout_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "load_split", lambda *_: table(["a", "b"], question="x"))
    with pytest.raises(MaskMatchError, match="has no column 'sentence1'; it has question, label"):
        load_hub_dataset(PAPER_DATASETS["mrpc"])


def test_without_a_hub_it_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise ConnectionError("Couldn't reach 'fancyzhx/ag_news' on the Hub\nand more lines")

    monkeypatch.setattr(hub, "load_split", refuse)
    with pytest.raises(
        MaskMatchError, match=r"fancyzhx/ag_news, split train, could not be loaded: .*reachable"
    ) as caught:
        load_hub_dataset(PAPER_DATASETS["agnews"])
    assert "\n" not in str(caught.value)

    def missing(*_: Any) -> None:
        raise ModuleNotFoundError("No module named 'datasets'")

    monkeypatch.setattr(hub, "load_split", missing)
    with pytest.raises(MaskMatchError, match=r"maskmatch\[datasets\]"):
        load_hub_dataset(PAPER_DATASETS["agnews"])
