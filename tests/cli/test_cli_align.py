"""``maskmatch align``: what it learns from, what it saves, what it refuses."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from cli_tools import Result, Run, Tiny, fails, is_wrong_usage, write_csv
from maskmatch import Alignment, MaskMatcher, align
from maskmatch.model.adapter import Adapter
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from pathlib import Path

QUICK = ["--steps", "1", "--rank", "2"]
SET = {"kind": "topic", "labels": {"refund": ["it is pending"], "card lost": ["block it"]}}


@pytest.fixture(scope="module")
def earlier(tiny: Tiny) -> Alignment:
    return align(TEXTS, model=tiny("bert"), steps=1, draws=1, rank=2)


def write_sets(folder: Path, **sets: Any) -> Path:
    folder.mkdir()
    for name, data in sets.items():
        (folder / f"{name}.json").write_text(json.dumps(data))
    return folder


class TestAlign:
    def test_an_encoder_is_aligned_and_can_be_used(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
        folder = tmp_path / "aligned"
        result = run("align", toy, "-o", folder, "--model", tiny("bert"), *QUICK)
        assert result.code == 0, result.err
        assert result.out.startswith("aligned in 1 steps, ")
        assert f"saved in {folder}; use it with --model {folder}" in result.out
        assert {path.name for path in folder.iterdir()} == {
            "README.md", "adapter_config.json", "adapter_model.safetensors",
        }  # fmt: skip
        assert f"- the texts of {toy.name}" in (folder / "README.md").read_text()
        assert Adapter.load(folder).rank == 2
        classified = run("classify", "--model", folder, "--labels", "refund,card lost", "--text", "my card")
        assert classified.rows()[0]["label"] in ("refund", "card lost")
        trained = run("train", toy, "-o", tmp_path / "m", "--model", folder, "--epochs", 1)
        assert trained.code == 0, trained.err

    def test_json(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
        result = run("align", toy, "-o", tmp_path / "a", "--model", tiny("bert"), *QUICK, "--json")
        data = json.loads(result.out)
        assert data.pop("seconds") >= 0
        assert data == {"folder": str(tmp_path / "a"), "steps": 1, "before": None, "after": None}

    def test_check_measures_before_and_after(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
        arguments = ["align", toy, "--model", tiny("bert"), "--check", toy, "--task", "intent"]
        many = ["--steps", 5, "--learning-rate", 0.05]
        result = run(*arguments, "-o", tmp_path / "a", *many, "--json")
        assert result.code == 0, result.err
        data = json.loads(result.out)
        for model, figure in ((tiny("bert"), data["before"]), (tmp_path / "a", data["after"])):
            matcher = MaskMatcher.from_pretrained(model, LABELS, task="intent")
            assert figure == pytest.approx(matcher.evaluate(TEXTS, TRUTH).accuracy)
        told = run(*arguments, "-o", tmp_path / "b", *many).out
        assert f"zero-shot accuracy on {toy}: {data['before']:.4f} before, {data['after']:.4f} after" in told

    def test_every_option_reaches_the_alignment(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        rows = write_csv(tmp_path / "rows.csv", TEXTS, TRUTH, header="question,topic")
        sets = write_sets(tmp_path / "sets", bank=SET)
        options = ["--labels", "refund,card lost", "--label-sets", sets, "--text-field", "question"]
        options += ["--steps", 2, "--matching-steps", 3, "--rank", 5, "--learning-rate", 0.005, "--seed", 7]
        result = run("align", rows, "-o", tmp_path / "a", "--model", tiny("bert"), *options, "--json")
        assert json.loads(result.out)["steps"] == 5
        card = (tmp_path / "a" / "README.md").read_text()
        for setting in ("steps | 2", "matching steps | 3", "rank | 5", "learning rate | 0.005", "seed | 7"):
            assert f"| {setting} |" in card
        for source in (
            f"the texts of {rows.name}",
            "the label names of refund,card lost",
            f"the label sets of {sets.name}",
        ):
            assert f"- {source}" in card

    def test_steps_for_label_sets_need_label_sets(self, run: Run, toy: Path, tmp_path: Path) -> None:
        result = run("align", toy, "-o", tmp_path / "a", "--matching-steps", 5)
        assert result.code == 2
        assert "--label-sets" in result.err
        assert not (tmp_path / "a").exists()

    def test_lines_of_text_will_do(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        (tmp_path / "lines.txt").write_text("\n".join(TEXTS))
        assert run("align", tmp_path / "lines.txt", "-o", tmp_path / "a", "--model", tiny("bert"), *QUICK).code == 0
        piped = run("align", "-", "-o", tmp_path / "b", "--model", tiny("bert"), *QUICK, "--format", "txt",
                    stdin="\n".join(TEXTS))  # fmt: skip
        assert piped.code == 0, piped.err

    def test_rows_that_are_left_out_are_told(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        (tmp_path / "rows.csv").write_text('text\none text\n""\nanother text\n')
        arguments = ["align", tmp_path / "rows.csv", "-o", tmp_path / "a", "--model", tiny("bert"), *QUICK]
        fails(run(*arguments), "line 3", "--skip-bad-rows")
        result = run(*arguments, "--skip-bad-rows")
        assert result.code == 0
        assert "skipped: " in result.err

    def test_the_same_seed_makes_the_same_files(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
        weights = []
        for name, seed in (("a", 1), ("b", 1), ("c", 2)):
            assert run("align", toy, "-o", tmp_path / name, "--model", tiny("bert"), *QUICK, "--seed", seed).code == 0
            weights.append((tmp_path / name / "adapter_model.safetensors").read_bytes())
        assert weights[0] == weights[1] != weights[2]

    def test_checkpoints_and_resume(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
        arguments = ["align", toy, "--model", tiny("bert"), "--steps", 2, "--checkpoints", tmp_path / "c"]
        assert run(*arguments, "-o", tmp_path / "one").code == 0
        assert list((tmp_path / "c").glob("checkpoint-*"))
        assert run(*arguments, "-o", tmp_path / "two", "--resume").code == 0
        one, two = ((tmp_path / name / "adapter_model.safetensors").read_bytes() for name in ("one", "two"))
        assert one == two
        fails(run(*arguments, "-o", tmp_path / "three"), "earlier run")

    def test_an_aligned_encoder_is_aligned_further(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
        assert run("align", toy, "-o", tmp_path / "one", "--model", tiny("bert"), *QUICK).code == 0
        assert run("align", toy, "-o", tmp_path / "two", "--model", tmp_path / "one", *QUICK).code == 0
        assert Adapter.load(tmp_path / "two").base == str(tmp_path / "one")
        shutil.rmtree(tmp_path / "one")
        fails(run("classify", "--model", tmp_path / "two", "--labels", "a,b", "--text", "x"), tmp_path / "one")

    def test_help(self, run: Run) -> None:
        result = run("align", "--help")
        assert result.code == 0
        assert "answer at its mask" in result.out


class TestAlignRefusals:
    @pytest.fixture
    def align(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
        """Runs align; a run that gets as far as the training itself fails the test."""

        def too_late(*_: Any, **__: Any) -> None:
            raise AssertionError("the training began")

        monkeypatch.setattr("maskmatch.training.loop.MatchTrainer", too_late)

        def call(rows: object = toy, *arguments: object) -> Result:
            output = [] if "-o" in arguments else ["-o", tmp_path / "new"]
            model = [] if "--model" in arguments else ["--model", tiny("bert")]
            result = run("align", rows, *model, *output, *QUICK, *arguments)
            assert not (tmp_path / "new").exists()
            return result

        return call

    def test_texts(self, align: Run, toy: Path, tmp_path: Path) -> None:
        fails(align("nowhere.csv"), "nowhere.csv")
        fails(align(tmp_path), tmp_path)
        fails(align(toy, "--text-field", "body"), "body")
        (tmp_path / "one.txt").write_text("one\none\n")
        fails(align(tmp_path / "one.txt"), "fewer than two different texts")
        (tmp_path / "empty.txt").write_text("")
        fails(align(tmp_path / "empty.txt"), "empty.txt")

    def test_labels_and_label_sets(self, align: Run, toy: Path, tmp_path: Path) -> None:
        fails(align(toy, "--labels", "nowhere.json"), "nowhere.json")
        fails(align(toy, "--labels", ","), "no labels")
        fails(align(toy, "--label-sets", tmp_path / "nowhere"), "no label sets", tmp_path / "nowhere")
        wrong = {
            "'forecast'": {**SET, "kind": "forecast"},
            "set.json": {**SET, "labels": {"a": "b"}},
            "text_b": {**SET, "kind": "nli"},
        }
        for number, (words, data) in enumerate(wrong.items()):
            fails(align(toy, "--label-sets", write_sets(tmp_path / f"sets{number}", set=data)), words)

    def test_models(self, align: Run, toy: Path, model: Path, tmp_path: Path) -> None:
        fails(align(toy, "--model", model), model, "trained classifier")
        fails(align(toy, "--model", tmp_path / "nowhere"), tmp_path / "nowhere")

    def test_outputs(self, align: Run, toy: Path, tmp_path: Path) -> None:
        foreign = tmp_path / "thesis"
        foreign.mkdir()
        (foreign / "README.md").write_text("precious")
        fails(align(toy, "-o", foreign), foreign, "choose another folder")
        fails(align(toy, "-o", toy), toy)
        fails(align(toy, "-o", toy / "model"), toy)
        assert (foreign / "README.md").read_text() == "precious"

    def test_an_earlier_adapter_may_be_replaced_but_not_by_what_rests_on_it(
        self, align: Run, earlier: Alignment, toy: Path, tmp_path: Path
    ) -> None:
        one = tmp_path / "one"
        earlier.save(one)
        with pytest.raises(AssertionError, match="the training began"):
            align(toy, "-o", one)
        fails(align(toy, "-o", one, "--model", one), one, "choose another folder")

    def test_a_classifier_is_not_replaced(self, align: Run, toy: Path, own: Path) -> None:
        before = {path.name: path.read_bytes() for path in own.iterdir()}
        fails(align(toy, "-o", own), own, "choose another folder")
        assert {path.name: path.read_bytes() for path in own.iterdir()} == before

    def test_check(self, align: Run, toy: Path, tmp_path: Path) -> None:
        fails(align(toy, "--check", "nowhere.csv"), "nowhere.csv")
        fails(align(toy, "--check", toy, "--task", "topics"), "'topics'")
        (tmp_path / "lines.txt").write_text("no label\nhere\n")
        fails(align(toy, "--check", tmp_path / "lines.txt"), "label")

    def test_check_rows_of_several_labels(self, align: Run, toy: Path, tmp_path: Path) -> None:
        several = [{"text": text, "label": [label, "money"]} for text, label in zip(TEXTS, TRUTH, strict=True)]
        (tmp_path / "several.jsonl").write_text("\n".join(map(json.dumps, several)))
        fails(align(toy, "--check", tmp_path / "several.jsonl"), "several labels")

    def test_settings(self, align: Run, toy: Path) -> None:
        is_wrong_usage(align(toy, "--learning-rate", "0"), "learning_rate is 0")
        is_wrong_usage(align(toy, "--seed", "-1"), "seed is -1")
        is_wrong_usage(align(toy, "--resume"), "checkpoints")

    def test_usage(self, align: Run, toy: Path, run: Run) -> None:
        is_wrong_usage(align(toy, "--steps", "0"), "--steps")
        is_wrong_usage(align(toy, "--rank", "0"), "--rank")
        is_wrong_usage(align(toy, "--field", "text"), "FIELD=COLUMN")
        is_wrong_usage(align(toy, "--no-such-option"), "--no-such-option")
        is_wrong_usage(run("align", toy), "--output")
        is_wrong_usage(run("align"), "FILE")


class TestChecks:
    """Rows to check with that are not of the form of the texts."""

    def test_texts_and_rows_in_files_of_different_forms(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
        (tmp_path / "lines.txt").write_text("\n".join(TEXTS))
        options = ["--check", toy, "--label-field", "label", "--json"]
        result = run("align", tmp_path / "lines.txt", "-o", tmp_path / "a", "--model", tiny("bert"), *QUICK, *options)
        assert result.code == 0, result.err
        assert 0 <= json.loads(result.out)["before"] <= 1

    def test_pairs(self, run: Run, tiny: Tiny, toy: Path, tmp_path: Path) -> None:
        (tmp_path / "pairs.csv").write_text("text,two,label\na b,a b,same\nc d,e f,different\n")
        options = ["--check", tmp_path / "pairs.csv", "--task", "paraphrase", "--field", "text_b=two", "--json"]
        result = run("align", toy, "-o", tmp_path / "a", "--model", tiny("bert"), *QUICK, *options)
        assert result.code == 0, result.err
        assert 0 <= json.loads(result.out)["before"] <= 1
