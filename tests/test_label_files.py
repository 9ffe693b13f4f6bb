"""Labels from files and from the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from maskmatch.errors import MaskMatchError
from maskmatch.label_files import load_labels
from maskmatch.labels import Label

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_names_with_commas_between_them() -> None:
    assert list(load_labels("refund, card lost ,,exchange_rate")) == ["refund", "card lost", "exchange_rate"]
    assert load_labels("U.S., U.K.").labels == (Label("U.S."), Label("U.K."))


@pytest.mark.parametrize("name", ["Mr. Smith", "v2.0", "U.S.", "e.g. this", "and/or", "Node.js"])
def test_a_single_name_with_a_dot_is_a_name(name: str) -> None:
    assert list(load_labels(name)) == [name]


def test_a_folder_is_no_label_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(MaskMatchError, match="d is a folder; name a label file in it"):
        load_labels(tmp_path / "d")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MaskMatchError, match="d is a folder"):
        load_labels("d")
    assert list(load_labels("d, e")) == ["d", "e"]


@pytest.mark.parametrize("name", ["labels.jsonl", "labels.csv.gz", "LABELS.TXT", "./labels", "~/labels", "../x"])
def test_what_can_only_be_a_file_has_to_be_there(name: str) -> None:
    with pytest.raises(MaskMatchError, match="There is no label file"):
        load_labels(name)


def test_a_list_longer_than_the_name_of_a_file_may_be() -> None:
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
    ],
)
def test_labels_come_from_files(tmp_path: Path, name: str, text: str | bytes, expected: list[Any]) -> None:
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
        ("labels.json", '["a", "A"]', ["labels.json: The labels 'a' and 'A' both read"]),
        ("labels.json", '[{"label": "a"}]', ["labels.json", "not hashable"]),
        ("labels.json", '{"a": ["b", 5]}', ["labels.json: The label 'a' has 5 where words belong"]),
        ("labels.txt", "", ["labels.txt has no rows"]),
        ("labels.txt", "a\nb\na\n", ["'a' is there twice"]),
        (
            "labels.csv",
            "name,description\na,b\n",
            ["labels.csv, line 2", "of which label is needed", "name, description"],
        ),
        ("labels.csv", "label,descripton\na,b\n", ["labels.csv, line 2", "this one has label, descripton"]),
        ("labels.csv", "label,name\na,b\n ,c\n", ["labels.csv, line 3"]),
        ("labels.jsonl", '{"label": "a"}\n{"label": null}\n', ["labels.jsonl, line 2", "A label is missing"]),
        ("labels.jsonl", '{"label": ["a"]}\n', ["labels.jsonl, line 1", "not hashable"]),
        ("labels.jsonl", '{"label": "a", "name": 5}\n', ["labels.jsonl, line 1", "has 5 where words belong"]),
        (
            "labels.jsonl",
            '{"label": "a", "phrases": 5}\n',
            ["labels.jsonl, line 1", "has 5 where words belong"],
        ),
        ("labels.jsonl", '{"label": "a", "phrases": ["b", " "]}\n', ["labels.jsonl, line 1", "blank phrase"]),
        ("labels.jsonl", '{"text": ["a"]}\n', ["labels.jsonl, line 1", "not hashable"]),
        ("labels.xyz", "a\nb\n", ["labels.xyz", "does not show its format"]),
    ],
)
def test_a_label_file_that_cannot_be_used_is_refused(
    tmp_path: Path, name: str, text: str | bytes, words: list[str]
) -> None:
    path = write(tmp_path, name, text)
    with pytest.raises(MaskMatchError) as caught:
        load_labels(path)
    for word in words:
        assert word in str(caught.value)


def test_a_file_that_is_not_there_is_not_taken_for_a_name(tmp_path: Path) -> None:
    with pytest.raises(MaskMatchError, match=r"There is no label file .*labels\.csv"):
        load_labels(tmp_path / "labels.csv")


@pytest.mark.parametrize("nothing", ["", " , ,"])
def test_nothing_is_no_label(nothing: str) -> None:
    with pytest.raises(MaskMatchError, match="There are no labels"):
        load_labels(nothing)


def test_what_is_written_as_json_is_read_again(tmp_path: Path) -> None:
    labels = {"refund": "money back", "東京": ["Tokyo"]}
    path = write(tmp_path, "labels.json", json.dumps(labels))
    assert load_labels(path).label("東京").texts == ("東京", "Tokyo")
