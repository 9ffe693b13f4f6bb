"""``maskmatch labels edit`` and ``labels apply``: how labels read is changed, and nothing else."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cli_tools import Result, Run, Tiny, fails, is_wrong_usage
from maskmatch import ExportedMatcher, Label, LabelSet, MaskMatcher, MaskMatchError, export
from maskmatch.cli.label_edits import print_labels
from maskmatch.label_tools.file_edits import LabelEdits, read_label_file
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from pathlib import Path

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6) | st.sampled_from(
    ["a|b", '["x"]', "=1", 'say "x"', "[", "a\tb", "Cause-Effect(e1,e2)"]
)
TEXT = WORDS | st.sampled_from(["two\nlines", "tab\there", "\r"]) | st.just('"')
IDS = WORDS | st.integers(0, 9) | st.booleans() | st.tuples(st.integers(0, 3), WORDS)


@st.composite
def label_sets(draw: st.DrawFn) -> LabelSet:
    made = []
    for id_ in draw(st.lists(IDS, min_size=1, max_size=4, unique_by=str)):
        parts = [draw(st.lists(kind, max_size=2)) for kind in (WORDS, TEXT)]
        try:
            made.append(Label(id_, draw(WORDS | st.just("")), draw(TEXT | st.just("")), parts[0], (), parts[1]))
        except MaskMatchError:  # blank parts
            assume(False)
    try:
        return LabelSet(tuple(made))
    except MaskMatchError:  # two with the same name
        assume(False)
        raise


@settings(max_examples=150, deadline=None)
@given(labels=label_sets(), as_json=st.booleans())
def test_what_is_shown_changes_nothing(labels: LabelSet, as_json: bool) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        print_labels(labels.labels, as_json)
    new, fields = read_label_file(out.getvalue())
    edits = LabelEdits.between(labels, new, fields, remove_missing=True)
    assert not edits, (str(edits), out.getvalue())
    assert edits.applied(labels) == labels


@pytest.mark.parametrize(
    ("source", "fields"),
    [
        ('"label","reads","description"\n"refund","money back","x"\n', {"name", "description"}),
        ('"label"\t"phrases"\r\n"refund"\t"money back"\r\n', {"phrases"}),
        ('label,"description"\nrefund,"a, b"\n', {"description"}),
        ('["a {b}", "c"]', set()),
        ("[a\n{b\n", set()),
        ("card lost, stolen\nrefund\n", set()),
        ('{"refund": "money back"}', {"description"}),
        ('{"refund": ["money back"]}', {"phrases"}),
        ('{"refund": null}', set()),
        ('{"refund": {"words": ["back"]}}', {"words"}),
        ('{"0": "refund"}', {"name"}),
        ('[{"id": "refund"}, {"id": "card",\n "examples": ["lost"]}]', {"examples"}),
    ],
)
def test_what_a_file_says_about_labels(source: str, fields: set[str], tmp_path: Path) -> None:
    labels, found = read_label_file(source)
    assert found == fields
    if source.startswith(("{", '["', "[{")):
        (tmp_path / "l.json").write_text(source)
        assert read_label_file(str(tmp_path / "l.json")) == (labels, found)


class TestEdit:
    def shown(self, run: Run, folder: Path) -> dict[Any, Any]:
        return {label["id"]: label for label in json.loads(run("labels", "show", folder, "--json").out)}

    def test_a_label_keeps_its_id_and_what_was_learned(self, run: Run, own: Path) -> None:
        before = MaskMatcher.from_pretrained(own)
        result = run("labels", "edit", own, "refund", "--reads", "money back", "--description", "paid back",
                     "--phrase", "reimbursement", "--phrase", "repayment")  # fmt: skip
        assert result.code == 0, result.err
        assert result.out.splitlines()[0] == "~ refund"
        assert "    reads: 'refund' -> 'money back'" in result.out
        assert self.shown(run, own)["refund"] == {
            "id": "refund",
            "name": "money back",
            "description": "paid back",
            "phrases": ["reimbursement", "repayment"],
        }
        after = MaskMatcher.from_pretrained(own)
        assert list(after.labels or ()) == list(before.labels or ())
        assert after.bank.centroids.ids == before.bank.centroids.ids
        np.testing.assert_array_equal(after.bank.centroids.vectors, before.bank.centroids.vectors)
        assert after.bank.calibration == before.bank.calibration
        assert after.predict(TEXTS) == TRUTH

    def test_lists_are_replaced_added_to_and_emptied(self, run: Run, own: Path) -> None:
        run("labels", "edit", own, "refund", "--phrase", "a", "--example", "Where is my money?")
        run("labels", "edit", own, "refund", "--phrase", "b", "--more")
        assert self.shown(run, own)["refund"]["phrases"] == ["a", "b"]
        run("labels", "edit", own, "refund", "--phrase", "c", "--example", "")
        assert self.shown(run, own)["refund"] == {"id": "refund", "name": "refund", "phrases": ["c"]}

    def test_refusals(self, run: Run, own: Path, tmp_path: Path) -> None:
        before = (own / "maskmatch.json").read_bytes()
        fails(run("labels", "edit", own, "refnd", "--reads", "x"), "There is no label 'refnd'", "Did you mean")
        fails(run("labels", "edit", own, "refund", "--reads", LABELS[1]), "share the name")
        fails(run("labels", "edit", tmp_path / "none", "refund", "--reads", "x"), "There is no folder")
        is_wrong_usage(run("labels", "edit", own, "refund"), "--reads")
        is_wrong_usage(run("labels", "edit", own, "refund", "--reads", " "), "needs a name")
        assert (own / "maskmatch.json").read_bytes() == before


class TestApply:
    def ids(self, result: Result, kind: str) -> list[Any]:
        assert result.code == 0, result.err
        return [each["id"] for each in json.loads(result.out)[kind]]

    def test_show_to_apply_changes_no_byte(self, run: Run, own: Path) -> None:
        run("labels", "edit", own, "refund", "--phrase", "a|b", "--example", 'Say "refund",\ttwice.\nOr not.')
        before = (own / "maskmatch.json").read_bytes()
        for json_ in ((), ("--json",)):
            shown = run("labels", "show", own, *json_).out
            for more in ((), ("--remove-missing",), ("--dry-run",)):
                result = run("labels", "apply", own, "-", *more, stdin=shown)
                assert (result.code, result.out) == (0, "nothing changes\n"), result
        assert (own / "maskmatch.json").read_bytes() == before

    def test_what_standard_input_lacks_stays(self, run: Run, own: Path) -> None:
        name = LABELS[0]
        run("labels", "edit", own, name, "--description", "what it is", "--phrase", "in other words")
        before = run("labels", "show", own, "--json").out
        for stdin in (json.dumps([*LABELS]), json.dumps({name: "what it is"}), json.dumps({name: ["in other words"]})):
            assert run("labels", "apply", own, "-", stdin=stdin).out == "nothing changes\n"
        assert run("labels", "show", own, "--json").out == before
        edited = f'"label","reads","description"\n"{name}","another name","another, too"\n'
        assert self.ids(run("labels", "apply", own, "-", "--json", stdin=edited), "added") == []
        shown = {each["id"]: each for each in json.loads(run("labels", "show", own, "--json").out)}
        expected = {"name": "another name", "description": "another, too", "phrases": ["in other words"]}
        assert shown[name] == {"id": name, **expected}

    def test_an_edited_file(self, run: Run, own: Path, tmp_path: Path) -> None:
        first, second, third = sorted(LABELS)
        file = tmp_path / "labels.csv"
        file.write_text(f"label,reads,description\n{second},other words,\nparcel,,a box\n{first},{first},new\n")
        dry = run("labels", "apply", own, file, "--dry-run")
        assert "+ parcel (description 'a box')" in dry.out
        assert f"not in the file, and unchanged: {third}" in dry.err
        assert "nothing is saved" in dry.err
        assert len(MaskMatcher.from_pretrained(own).labels or ()) == 3
        result = run("labels", "apply", own, file, "--json")
        assert self.ids(result, "added") == ["parcel"]
        assert [each["to"]["id"] for each in json.loads(result.out)["changed"]] == [second, first]
        matcher = MaskMatcher.from_pretrained(own)
        assert list(matcher.labels or ()) == [first, second, third, "parcel"]
        assert matcher.predict(TEXTS) == TRUTH
        assert set(matcher.bank.centroids.ids) == {first, second, third}
        gone = run("labels", "apply", own, file, "--remove-missing", "--json")
        assert self.ids(gone, "removed") == [third]
        assert list(MaskMatcher.from_pretrained(own).labels or ()) == [first, second, "parcel"]

    def test_columns_that_a_file_lacks_stay(self, run: Run, own: Path, tmp_path: Path) -> None:
        run("labels", "edit", own, "refund", "--reads", "money back", "--description", "d", "--phrase", "p")
        for name, content in (
            ("a.txt", "\n".join(LABELS)),
            ("b.json", json.dumps(LABELS)),
            ("c.csv", "label\n" + "\n".join(LABELS)),
        ):
            (tmp_path / name).write_text(content)
            assert run("labels", "apply", own, tmp_path / name).out == "nothing changes\n"
        (tmp_path / "d.csv").write_text("label,description\nrefund,other\n")
        assert run("labels", "apply", own, tmp_path / "d.csv").code == 0
        label = (MaskMatcher.from_pretrained(own).labels or LabelSet.of(["x"])).label("refund")
        assert (label.name, label.description, label.phrases) == ("money back", "other", ("p",))

    def test_names_change_places(self, run: Run, own: Path, tmp_path: Path) -> None:
        first, second, _ = sorted(LABELS)
        (tmp_path / "l.csv").write_text(f"label,reads\n{first},{second}\n{second},{first}\n")
        assert run("labels", "apply", own, tmp_path / "l.csv").code == 0
        labels = MaskMatcher.from_pretrained(own).labels or LabelSet.of(["x"])
        assert (labels.label(first).name, labels.label(second).name) == (second, first)

    def test_exports(self, run: Run, own: Path, tmp_path: Path) -> None:
        pytest.importorskip("onnxruntime")
        export(MaskMatcher.from_pretrained(own), tmp_path / "e")
        shown = run("labels", "show", tmp_path / "e").out
        assert run("labels", "apply", tmp_path / "e", "-", stdin=shown).out == "nothing changes\n"
        assert run("labels", "edit", tmp_path / "e", "refund", "--reads", "money back").code == 0
        assert run("labels", "apply", tmp_path / "e", "-", stdin=shown + "parcel\t\t\t\t\t\n").code == 0
        labels = ExportedMatcher.from_pretrained(tmp_path / "e").labels
        assert [label.name for label in labels.labels] == [*sorted(LABELS), "parcel"]

    def test_refusals(self, run: Run, own: Path, tiny: Tiny, tmp_path: Path) -> None:
        before = (own / "maskmatch.json").read_bytes()
        (tmp_path / "l.csv").write_text("label,reads\nrefund,card lost\n")
        fails(run("labels", "apply", own, tmp_path / "l.csv"), "share the name")
        fails(run("labels", "apply", own, tmp_path / "none.csv"), "There is no file", "labels show")
        fails(run("labels", "apply", tmp_path / "none", tmp_path / "l.csv"), "There is no folder")
        (tmp_path / "odd.csv").write_text("label,colour\nrefund,red\n")
        fails(run("labels", "apply", own, tmp_path / "odd.csv"), "colour")
        (tmp_path / "new.csv").write_text("label\nnew\n")
        fails(run("labels", "apply", own, tmp_path / "new.csv", "--remove-missing"), "Only 'new' would be left")
        assert (own / "maskmatch.json").read_bytes() == before

    def test_numbers_are_found(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        MaskMatcher.from_pretrained(tiny("bert"), {3: "refund", 4: "card"}).save_pretrained(tmp_path / "m")
        shutil.copytree(tmp_path / "m", tmp_path / "copy")
        assert run("labels", "edit", tmp_path / "m", "3", "--reads", "money").code == 0
        (tmp_path / "l.csv").write_text("label,reads\n3,cash\n4,card\n")
        assert run("labels", "apply", tmp_path / "m", tmp_path / "l.csv").code == 0
        labels = MaskMatcher.from_pretrained(tmp_path / "m").labels or LabelSet.of(["x"])
        assert [(label.id, label.name) for label in labels.labels] == [(3, "cash"), (4, "card")]


class TestPython:
    def test_edits_in_one_step(self, matcher: MaskMatcher) -> None:
        version = matcher.bank.version
        with pytest.raises(MaskMatchError, match="There is no label 'x'"):
            matcher.edit_labels(change=[Label("x")])
        with pytest.raises(MaskMatchError, match="changed and renamed"):
            matcher.edit_labels(change=["refund"], rename={"refund": "y"})
        with pytest.raises(MaskMatchError, match="already a label"):
            matcher.edit_labels(change={"refund": "other"}, add=["refund"])
        assert matcher.bank.version == version
        matcher.edit_labels(change={"refund": "paid back"}, add=["parcel"], remove=["card lost"])
        labels = matcher.labels or LabelSet.of(["x"])
        assert labels.label("refund").description == "paid back"
        assert set(labels) == ({*LABELS} - {"card lost"}) | {"parcel"}
