"""Running studies: the cells, the files, and that the conclusion follows from the cells."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from maskmatch import MaskMatchError
from maskmatch.labels import Label, LabelSet
from maskmatch_lab.comparison import LabelChange, Variant
from maskmatch_lab.studies import STUDIES, Conclusion, Evidence, Part, Study, find_study, run_study
from maskmatch_lab.studies.pictures import Panel, dot_plot
from maskmatch_lab.studies.running import load_dataset
from maskmatch_lab.studies.words import against, paired_tests
from study_tools import evidence_of, stand_ins

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from maskmatch_lab.comparison import LabelContext

NAMED, NUMBERED = "as they are", "numbered"


def _numbered(context: LabelContext) -> LabelSet:
    return LabelSet(tuple(Label(id_, f"label {place + context.seed}") for place, id_ in enumerate(context.labels)))


def _conclude(evidence: Evidence) -> Conclusion:
    sentences = [against(evidence, NAMED, [NUMBERED], regime) for regime in evidence.regimes]
    return Conclusion(
        [*filter(None, sentences)], {"half": 0.5}, [dot_plot(evidence, [Panel("zero-shot")], [NAMED, NUMBERED], NAMED)]
    )


SMALL = Study(
    "small",
    "Are names worth <anything>?",
    (
        Part(
            {"bank": "intent", "shop": "topic"},
            (Variant(NAMED), Variant(NUMBERED, labels=LabelChange("numbered", _numbered, drawn=True))),
            ("zero-shot", "1 shot"),
        ),
    ),
    reference=NAMED,
    conclude=_conclude,
    cut=("Nearly everything.",),
    seeds=2,
)


def test_a_study_runs_is_kept_and_tells_its_conclusion(
    tiny: Callable[[str], Path], tmp_path: Path, ran: list[str]
) -> None:
    study = replace(SMALL, parts=(replace(SMALL.parts[0], datasets={"bank": "intent"}),))
    data = stand_ins(study)
    result = run_study(study, data, tmp_path, model=tiny("bert"), quick=False, resamples=200, command="maskmatch study")
    # Names that the seed draws run with every seed, also where nothing is trained.
    assert len(ran) == 1 + 2 + 2 * 2
    written = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert written["answer"] + written["conclusion"] == result.sentences
    assert written["findings"] == {"half": 0.5}
    assert written["cut"] == ["Nearly everything."]
    assert {row["method"]: len(row["seeds"]) for row in written["table"] if row["regime"] == "zero-shot"} == {
        NAMED: 1,
        NUMBERED: 2,
    }
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Are names worth &lt;anything&gt;?" in page
    assert "data:image/svg+xml" in page
    for sentence in result.sentences:
        assert sentence.replace("<", "&lt;") in page
    assert (tmp_path / "conclusion.txt").read_text(encoding="utf-8").splitlines()[0] == study.question
    labels = {cell.settings["labels"] for cell in result.comparison.cells if cell.method == NUMBERED}
    assert len(labels) == 2  # a digest for each seed's names
    ran.clear()
    (tmp_path / "picture-9.svg").write_text("of an earlier run")
    again = run_study(study, data, tmp_path, model=tiny("bert"), resamples=200)
    assert ran == []
    assert again.sentences == result.sentences
    assert [path.name for path in tmp_path.glob("picture-*.svg")] == ["picture-1.svg"]
    with pytest.raises(MaskMatchError, match="holds the study 'small'; name another folder"):
        run_study(replace(study, name="other"), data, tmp_path, model=tiny("bert"))


def test_what_is_said_is_what_the_cells_show() -> None:
    regime = "zero-shot"

    def told(named: dict[str, float], numbered: dict[str, float]) -> str:
        values = {(data, NAMED, regime): each for data, each in named.items()}
        values |= {(data, NUMBERED, regime): each for data, each in numbered.items()}
        return " ".join(_conclude(evidence_of(SMALL, values)).sentences)

    low, high = {"bank": 0.3, "shop": 0.2}, {"bank": 0.8, "shop": 0.6}
    assert told(high, low).startswith(
        "Zero-shot: “as they are” has an accuracy of 70.0 %; worse: numbered (-45.0, p < 0.001"
    )
    assert "better: numbered (+45.0" in told(low, high)
    assert "no clear difference: numbered" in told(low, low)
    assert told(high, {"bank": 0.3}).count("-50.0") == 1  # where only one dataset has both, it alone is compared


def test_many_tests_raise_p() -> None:
    names = [f"variant {number}" for number in range(20)]
    values = {("bank", NAMED, "zero-shot"): 0.50} | {("bank", name, "zero-shot"): 0.55 for name in names}
    found = evidence_of(SMALL, values, items=300)
    alone = paired_tests(found, NAMED, names[:1], "zero-shot")[0]
    among = paired_tests(found, NAMED, names, "zero-shot")[0]
    assert among.p > alone.p == alone.result.p


def test_parts_and_datasets(tmp_path: Path) -> None:
    assert SMALL.cells == 2 * (1 + 2 + 2 * 2)
    assert replace(SMALL, parts=SMALL.parts * 2).cells == SMALL.cells  # what two parts name is run once
    assert SMALL.on({"shop": "topic"}).datasets == {"shop": "topic"}
    assert SMALL.on({"other": "sentiment"}).datasets == {"other": "sentiment"}
    other = Part({"bank": "intent"}, (Variant(NAMED, "semantic-matching"),), ("zero-shot",))
    with pytest.raises(MaskMatchError, match="Two cells are called"):
        run_study(replace(SMALL, parts=(*SMALL.parts, other)), stand_ins(SMALL))
    with pytest.raises(MaskMatchError, match="no study 'unknown'"):
        find_study("unknown")
    lost = Variant(NAMED, labels=LabelChange("lost", lambda context: context.labels.removed(["refund"])))
    with pytest.raises(MaskMatchError, match="lack 'refund'"):
        run_study(replace(SMALL, parts=(replace(SMALL.parts[0], variants=(lost,)),)), stand_ins(SMALL))


def test_a_dataset_may_be_cut_to_some_of_its_labels() -> None:
    data = {"bank": stand_ins(SMALL)["bank"]}
    cut = load_dataset(data, "bank@2", "intent")
    assert (cut.name, len(cut.labels), len(cut.test)) == ("bank@2", 2, 6)
    assert set(cut.train.labels) == set(cut.labels) < set(data["bank"].labels)
    assert load_dataset(data, "bank@2", "intent").test.texts == cut.test.texts
    for name, words in (("bank@x", "number of labels"), ("bank@9", "cannot be cut to 9"), ("shop", "not among those")):
        with pytest.raises(MaskMatchError, match=words):
            load_dataset(data, name, "intent")


@pytest.mark.parametrize("name", list(STUDIES))
@pytest.mark.usefixtures("tiny_default")
def test_every_study_runs_quickly(name: str, tmp_path: Path) -> None:
    study = STUDIES[name]
    result = run_study(study, stand_ins(study), tmp_path, quick=True, resamples=100)
    assert result.sentences[0].startswith("This was a quick run")
    assert len(result.sentences) > 2
    told = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert told["study"] == name
    assert told["quick"] is True
    assert "data:image/svg+xml" in (tmp_path / "report.html").read_text(encoding="utf-8")
