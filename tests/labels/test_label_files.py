"""Loading labels from files and from comma-separated lists."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from maskmatch.errors import MaskMatchError
from maskmatch.labels import Label, LabelSet, label_to_json
from maskmatch.labels.files import load_labels
from refusals import refusal

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_comma_separated_names() -> None:
    assert list(load_labels("refund, card lost ,exchange_rate,")) == ["refund", "card lost", "exchange_rate"]
    assert list(load_labels("退款\uff0c丢卡")) == ["退款", "丢卡"]
    with pytest.raises(MaskMatchError, match="A label name is blank"):
        load_labels("refund, , card lost")
    assert load_labels("U.S., U.K.").labels == (Label("U.S."), Label("U.K."))


@pytest.mark.parametrize("name", ["Mr. Smith", "v2.0", "U.S.", "e.g. this", "and/or", "Node.js"])
def test_a_single_name_with_a_dot_is_a_name(name: str) -> None:
    assert list(load_labels(name)) == [name]


def test_a_folder_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(MaskMatchError, match="d is a folder; give a label file in it"):
        load_labels(tmp_path / "d")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MaskMatchError, match="d is a folder"):
        load_labels("d")
    assert list(load_labels("d, e")) == ["d", "e"]


@pytest.mark.parametrize("name", ["labels.jsonl", "labels.csv.gz", "LABELS.TXT", "./labels", "~/labels", "../x"])
def test_a_path_to_a_missing_file_raises(name: str) -> None:
    with pytest.raises(MaskMatchError, match="There is no label file"):
        load_labels(name)


def test_a_list_that_is_too_long_for_a_file_name() -> None:
    names = [f"label number {number}" for number in range(400)]
    assert list(load_labels(",".join(names))) == names


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("labels.txt", "refund\n\n card lost \nexchange_rate\n", ["refund", "card lost", "exchange_rate"]),
        ("labels.json", '["refund", "card lost", 3]', ["refund", "card lost", 3]),
        ("labels.JSON", '["refund", "card lost"]', ["refund", "card lost"]),
        ("labels.json", b'\xef\xbb\xbf["refund", "caf\xc3\xa9"]', ["refund", "café"]),
        (
            "labels.json",
            '{"refund": "money back", "lost": ["gone", "missing"], "fee": {"name": "charge"}, "other": null}',
            [
                Label("refund", description="money back"),
                Label("lost", phrases=("gone", "missing")),
                Label("fee", "charge"),
                "other",
            ],
        ),
        ("labels.json", '{"0": "negative", "1": "positive"}', [Label(0, "negative"), Label(1, "positive")]),
        ("labels.json", '{"-1": {"name": "bad", "phrases": ["poor"]}}', [Label(-1, "bad", "", ("poor",))]),
        ("labels.json", '{"0": "nil", "01": "one"}', [Label("0", "", "nil"), Label("01", "", "one")]),
        ("labels.csv", "label\nrefund\ncard_lost\n", ["refund", "card_lost"]),
        (
            "labels.csv",
            'label,name,description,phrases\nr,refund,"money, back",cash back| reimbursement |\nl,,,\n',
            [Label("r", "refund", "money, back", ("cash back", "reimbursement")), "l"],
        ),
        ("labels.tsv", "label\tdescription\nr\tmoney back\n", [Label("r", description="money back")]),
        (
            "labels.jsonl",
            '{"label": 1, "name": "refund", "phrases": ["a", "b"]}\n{"label": 2, "description": null}\n',
            [Label(1, "refund", "", ("a", "b")), 2],
        ),
        ("labels.jsonl", '{"label": "a", "phrases": "b|c"}\n', [Label("a", phrases=("b", "c"))]),
        ("labels.tsv", "label\treads\tdescription\nr\trefund\tmoney back\n", [Label("r", "refund", "money back")]),
        ("labels.csv", "label,reads,phrase\nr,refund,a\nr,refund,b\n", [Label("r", "refund", "", ("a", "b"))]),
        (
            "labels.json",
            '["a", {"id": "b"}, {"id": 3, "name": "c", "phrases": "one phrase", "words": null}]',
            ["a", "b", Label(3, "c", "", ("one phrase",))],
        ),
    ],
)
def test_label_files_of_every_format(tmp_path: Path, name: str, text: str | bytes, expected: list[Any]) -> None:
    path = write(tmp_path, name, text)
    wanted = [label if isinstance(label, Label) else Label(label) for label in expected]
    assert list(load_labels(path).labels) == wanted
    assert load_labels(str(path)) == load_labels(path)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("labels.json", '["refund",', ["labels.json is not valid JSON"]),
        ("labels.json", b"\xff\xfe\x00", ["labels.json is not valid JSON"]),
        ("labels.json", "[]", ["labels.json: There are no labels"]),
        ("labels.json", '"refund"', ["labels.json: Labels are a list of names"]),
        ("labels.json", "5", ["labels.json: Labels are a list of names"]),
        ("labels.json", '["a", null]', ["labels.json: A label is missing"]),
        ("labels.json", '["a", "A"]', ["labels.json: The labels 'a' and 'A' share the name"]),
        (
            "labels.json",
            '[{"label": "a"}]',
            ["labels.json: A label in a JSON list", "id is required; this object has label"],
        ),
        ("labels.json", '[{"id": "a", "nmae": "b"}]', ["labels.json", "this object has id, nmae"]),
        ("labels.json", '[{"id": {"x": 1}}]', ["labels.json: The label id {'x': 1} is neither"]),
        ("labels.json", "[{}]", ["labels.json", "this object has no keys"]),
        ("labels.json", '{"a": ["b", 5]}', ["labels.json: The label 'a' has 5 where text is expected"]),
        ("labels.txt", "", ["labels.txt has no rows"]),
        ("labels.txt", "a\nb\na\n", ["'a' appears twice"]),
        (
            "labels.csv",
            "name,description\na,b\n",
            ["labels.csv, line 2", "of which label is required", "name, description"],
        ),
        (
            "labels.csv",
            "label,descripton\na,b\n",
            ["labels.csv, line 2", "did you mean description?"],
        ),
        ("labels.csv", "label,name\na,b\n ,c\n", ["labels.csv, line 3"]),
        ("labels.csv", "label,name,reads\na,b,c\n", ["labels.csv, line 2", "'reads' is none of them"]),
        ("labels.jsonl", '{"label": "a"}\n{"label": null}\n', ["labels.jsonl, line 2", "A label is missing"]),
        ("labels.jsonl", '{"label": ["a"]}\n', ["labels.jsonl, line 1", "not hashable"]),
        ("labels.jsonl", '{"label": "a", "name": 5}\n', ["labels.jsonl, line 1", "has 5 where text is expected"]),
        (
            "labels.jsonl",
            '{"label": "a", "phrases": 5}\n',
            ["labels.jsonl, line 1", "has 5 where text is expected"],
        ),
        ("labels.jsonl", '{"label": "a", "phrases": ["b", " "]}\n', ["labels.jsonl, line 1", "blank phrase"]),
        ("labels.jsonl", '{"text": ["a"]}\n', ["labels.jsonl, line 1", "not hashable"]),
        ("labels.xyz", "a\nb\n", ["labels.xyz", "The format of"]),
    ],
)
def test_an_invalid_label_file_raises(tmp_path: Path, name: str, text: str | bytes, words: list[str]) -> None:
    path = write(tmp_path, name, text)
    with pytest.raises(MaskMatchError) as caught:
        load_labels(path)
    for word in words:
        assert word in str(caught.value)


def test_a_missing_file_is_not_read_as_a_name(tmp_path: Path) -> None:
    with pytest.raises(MaskMatchError, match=r"There is no label file .*labels\.csv"):
        load_labels(tmp_path / "labels.csv")


@pytest.mark.parametrize("nothing", ["", " , ,"])
def test_an_empty_list_raises(nothing: str) -> None:
    with pytest.raises(MaskMatchError, match="There are no labels"):
        load_labels(nothing)


def test_a_json_mapping_with_any_script(tmp_path: Path) -> None:
    labels = {"refund": "money back", "東京": ["Tokyo"]}
    path = write(tmp_path, "labels.json", json.dumps(labels))
    assert load_labels(path).label("東京").texts == ("東京", "Tokyo")


def test_round_trip_through_the_json_of_labels_show(tmp_path: Path) -> None:
    labels = LabelSet(
        (
            Label("card_lost", description="it is gone", phrases=("stolen card", "missing card")),
            Label(3, "refund", words=("money", "back"), examples=("Where is my money?", "a | b")),
            Label(("fee", 1), "card fee"),
            Label(True, "yes"),
            Label(2.5),
        )
    )
    printed = json.dumps([label_to_json(label) for label in labels.labels], ensure_ascii=False, indent=2)
    loaded = load_labels(write(tmp_path, "labels.json", printed))
    assert loaded == labels
    assert list(map(repr, loaded)) == list(map(repr, labels)), "1, 1.0 and True are equal, but different ids"


def test_the_table_of_labels_show_is_a_label_file(tmp_path: Path) -> None:
    table = "label\treads\tdescription\tphrases\twords\texamples\ncard_lost\tcard lost\tit is gone\tstolen card\t\t\n"
    path = write(tmp_path, "labels.tsv", table)
    assert load_labels(path).labels == (Label("card_lost", description="it is gone", phrases=("stolen card",)),)


def test_nul_characters() -> None:
    assert "NUL character" in refusal(load_labels, "~a\0, b")
