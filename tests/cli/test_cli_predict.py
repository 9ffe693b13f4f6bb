"""``maskmatch predict``, ``evaluate`` and ``classify``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cli_tools import Run, Tiny, fails, is_wrong_usage, write_csv
from maskmatch import MaskMatcher
from toy_data import FAST, LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from pathlib import Path


class TestPredict:
    def test_texts_from_the_command_line(self, run: Run, model: Path) -> None:
        result = run("predict", model, "--text", TEXTS[0], "--text", TEXTS[4], "-k", 2)
        first, second = result.rows()
        assert (first["row"], first["label"]) == (0, "refund")
        assert (second["row"], second["label"]) == (1, "card lost")
        assert first["top_k"][0] == {"label": "refund", "probability": first["probability"]}
        assert len(first["top_k"]) == 2
        expected = MaskMatcher.from_pretrained(model).top_k([TEXTS[0]], 1)[0][0][1]
        assert first["probability"] == pytest.approx(expected, abs=1e-5)

    @pytest.mark.parametrize("argument", [[], ["-"]])
    def test_standard_input(self, run: Run, model: Path, argument: list[str]) -> None:
        lines = [TEXTS[0], json.dumps({"text": TEXTS[4]}), "", json.dumps(TEXTS[8])]
        result = run("predict", model, *argument, stdin="\n".join(lines))
        assert [row["label"] for row in result.rows()] == LABELS

    def test_files_of_several_kinds(self, run: Run, model: Path, tmp_path: Path) -> None:
        (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
        (tmp_path / "texts.json").write_text(json.dumps([{"text": text} for text in TEXTS]))
        write_csv(tmp_path / "texts.csv", TEXTS, range(12), header="text,number")
        write_csv(tmp_path / "odd", TEXTS, range(12), header="body,number")
        for arguments in (
            ["texts.txt"], ["texts.json"], ["texts.csv"], ["odd", "--format", "csv", "--text-field", "body"],
        ):  # fmt: skip
            result = run("predict", model, tmp_path / arguments[0], *arguments[1:])
            assert [row["label"] for row in result.rows()] == TRUTH, arguments

    def test_rows_are_numbered_through_over_chunks(
        self, run: Run, model: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import maskmatch.data

        original = maskmatch.data.iter_examples

        def small_chunks(*arguments: Any, **options: Any) -> Any:
            return original(*arguments, **{**options, "chunk_size": 5})

        monkeypatch.setattr(maskmatch.data, "iter_examples", small_chunks)
        rows = run("predict", model, "-", stdin="\n".join(TEXTS)).rows()
        assert [row["row"] for row in rows] == list(range(12))
        assert [row["label"] for row in rows] == TRUTH

    def test_blank_lines_are_skipped_but_count(self, run: Run, model: Path, tmp_path: Path) -> None:
        (tmp_path / "texts.txt").write_text("refund\n\ncard\n\n\n")
        for source, stdin in ((tmp_path / "texts.txt", None), ("-", "refund\n\ncard\n\n\n")):
            result = run("predict", model, source, stdin=stdin)
            assert [row["row"] for row in result.rows()] == [0, 2]

    def test_bad_rows_can_be_left_out(self, run: Run, model: Path, tmp_path: Path) -> None:
        rows = tmp_path / "rows.csv"
        rows.write_text("text,x\nrefund,1\n,2\ncard lost,3\n")
        fails(run("predict", model, rows), "rows.csv, line 3")
        result = run("predict", model, rows, "--skip-bad-rows")
        assert result.code == 0
        assert len(result.rows()) == 2
        assert "skipped: " in result.err
        assert "line 3" in result.err

    def test_long_texts_are_told_on_standard_error(self, run: Run, model: Path) -> None:
        result = run("predict", model, "--text", "refund " * 300)
        assert result.rows()[0]["label"] == "refund"

    def test_blank_texts_are_treated_like_blank_rows(self, run: Run, model: Path) -> None:
        for blank in ("", " \n"):
            fails(run("predict", model, "--text", "refund", "--text", blank), "--text number 2", "blank")
            fails(run("predict", model, "--text", blank, "--skip-bad-rows"), "No text is left")
            result = run("predict", model, "--text", blank, "--text", "refund", "--skip-bad-rows")
            assert [row["row"] for row in result.rows()] == [1]
            assert "skipped: --text number 1" in result.err

    def test_the_threshold_decides_which_labels_apply(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        MaskMatcher.from_pretrained(tiny("bert"), LABELS, multi_label=True).save_pretrained(tmp_path / "m")
        counts = [
            len(run("predict", tmp_path / "m", "--text", "refund", "--threshold", value).rows()[0]["labels"])
            for value in ("0", "0.5", "1")
        ]
        assert counts[0] == 3
        assert counts[0] > counts[1] >= counts[2]
        assert counts[2] == 0

    def test_device_and_threshold_that_cannot_be(self, run: Run, model: Path, toy: Path) -> None:
        assert run("predict", model, "--text", "refund", "--device", "cpu").code == 0
        for command in (["predict", model, "--text", "x"], ["evaluate", model, toy]):
            fails(run(*command, "--device", "abacus"), "'abacus'")
            fails(run(*command, "--threshold", "0.5"), "several labels")
            is_wrong_usage(run(*command, "--threshold", "2"), "--threshold")

    def test_integer_and_tuple_labels_are_json(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        MaskMatcher.from_pretrained(tiny("bert"), {3: "refund", 4: "card"}).save_pretrained(tmp_path / "m")
        assert run("predict", tmp_path / "m", "--text", "refund").rows()[0]["label"] in (3, 4)

    def test_refusals(self, run: Run, model: Path, tiny: Tiny, tmp_path: Path) -> None:
        fails(run("predict", model, "nowhere.csv"), "nowhere.csv")
        fails(run("predict", tmp_path / "nowhere", "--text", "x"), "nowhere")
        fails(run("predict", tmp_path, "--text", "x"), tmp_path, "not a saved classifier")
        fails(run("predict", tiny("bert"), "--text", "x"), "maskmatch.json")
        fails(run("predict", "no-such/model", "--text", "x"), "no-such/model")
        fails(run("predict", model, "-", stdin=""), "standard input")
        (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
        fails(run("predict", model, tmp_path / "rows.csv"), "text")

    def test_a_damaged_model(self, run: Run, own: Path) -> None:
        (own / "maskmatch.json").write_text("{")
        fails(run("predict", own, "--text", "x"), "maskmatch.json", "damaged")

    def test_usage(self, run: Run, model: Path, toy: Path) -> None:
        is_wrong_usage(run("predict", model), "FILE")  # at a terminal
        is_wrong_usage(run("predict", model, toy, "--text", "x"), "not both")
        is_wrong_usage(run("predict", model, "--text", "x", "-k", "0"), "--top-k")
        is_wrong_usage(run("predict", model, "--text", "x", "--batch-size", "0"), "--batch-size")
        is_wrong_usage(run("predict", model, toy, "--field", "text"), "FIELD=COLUMN")
        is_wrong_usage(run("predict"), "--url")


class TestEvaluate:
    def test_text_json_and_files(self, run: Run, model: Path, toy: Path, tmp_path: Path) -> None:
        text = run("evaluate", model, toy)
        assert text.code == 0
        assert "accuracy" in text.out.lower()
        assert "exchange rate" in text.out
        data = json.loads(run("evaluate", model, toy, "--json").out)
        assert data["accuracy"] == 1.0
        assert [row["label"] for row in data["per_label"]] == sorted(LABELS)
        saved = run("evaluate", model, toy, "-o", tmp_path / "report", "--json")
        assert json.loads(saved.out)["rows"] == 12
        assert f"report saved in {tmp_path / 'report'}" in saved.err
        assert json.loads(saved.out)["data"] == str(toy)
        page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
        assert str(model) in page
        assert str(toy) in page
        names = {path.name for path in (tmp_path / "report").iterdir()}
        assert names == {"report.html", "report.json", "report.txt", "predictions.csv", "mistakes.csv"}

    def test_unknown_labels_count_as_wrong(self, run: Run, model: Path, tmp_path: Path) -> None:
        rows = write_csv(tmp_path / "rows.csv", TEXTS[:4], ["refund", "refund", "parcel", "parcel"])
        data = json.loads(run("evaluate", model, rows, "--json").out)
        assert data["accuracy"] == 0.5
        assert data["unseen"] == [{"label": "parcel", "rows": 2}]

    def test_numbers_are_labels_however_a_file_writes_them(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        numbers = [LABELS.index(label) for label in TRUTH]
        rows = write_csv(tmp_path / "rows.csv", TEXTS, numbers)
        lines = [json.dumps({"text": text, "label": n}) for text, n in zip(TEXTS, numbers, strict=True)]
        (tmp_path / "rows.jsonl").write_text("\n".join(lines))
        for name, labels in (("ints", numbers), ("texts", [str(number) for number in numbers])):
            matcher = MaskMatcher.from_pretrained(tiny("bert")).fit(TEXTS, labels, **{**FAST, "epochs": 5})
            expected = matcher.evaluate(TEXTS, labels).accuracy
            assert expected > 0
            matcher.save_pretrained(tmp_path / name)
            for file in (rows, tmp_path / "rows.jsonl"):
                data = json.loads(run("evaluate", tmp_path / name, file, "--json").out)
                assert data["unseen"] == []
                assert data["accuracy"] == expected

    def test_refusals(self, run: Run, model: Path, toy: Path, tmp_path: Path) -> None:
        fails(run("evaluate", model, "nowhere.csv"), "nowhere.csv")
        fails(run("evaluate", tmp_path, toy), "not a saved classifier")
        (tmp_path / "texts.csv").write_text("text\nrefund\n")
        fails(run("evaluate", model, tmp_path / "texts.csv"), "label")
        is_wrong_usage(run("evaluate", model, toy, "-o", toy), "is a file")
        is_wrong_usage(run("evaluate", model), "Missing argument")


class TestClassify:
    def test_label_names_are_enough(self, run: Run, tiny: Tiny) -> None:
        options = ["--model", tiny("bert"), "--labels", "refund, card lost", "-k", 9]
        row = run("classify", *options, "--text", "where is it").rows()[0]
        expected = MaskMatcher.from_pretrained(tiny("bert"), ["refund", "card lost"]).predict(["where is it"])
        assert [row["label"]] == expected
        assert len(row["top_k"]) == 2
        piped = run("classify", *options, stdin="where is it\nwhere is it\n").rows()
        assert [each["label"] for each in piped] == expected * 2

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("labels.txt", "refund\ncard lost\n"),
            ("labels.json", '{"refund": "money back", "card lost": ["gone"]}'),
            ("labels.csv", "label,description,phrases\nrefund,money back,\ncard lost,,gone|stolen\n"),
        ],
    )
    def test_label_files(self, run: Run, tiny: Tiny, tmp_path: Path, name: str, content: str) -> None:
        (tmp_path / name).write_text(content)
        result = run("classify", "--model", tiny("bert"), "--labels", tmp_path / name, "--text", "x")
        assert {pair["label"] for pair in result.rows()[0]["top_k"]} == {"refund", "card lost"}

    @pytest.mark.parametrize(
        "content", ["refund\ncard lost\n", "label\treads\tdescription\nrefund\t\tmoney\ncard lost\tcard gone\t\n"]
    )
    def test_labels_can_be_pasted_or_piped(self, run: Run, tiny: Tiny, content: str) -> None:
        options = ["--model", tiny("bert"), "--text", "x"]
        for result in (
            run("classify", *options, "--labels", content),
            run("classify", *options, "--labels", "-", stdin=content),
        ):
            assert {pair["label"] for pair in result.rows()[0]["top_k"]} == {"refund", "card lost"}

    def test_labels_of_a_classifier(self, run: Run, tiny: Tiny, model: Path) -> None:
        result = run("classify", "--model", tiny("bert"), "--labels", model, "--text", "x", "-k", 99)
        assert {pair["label"] for pair in result.rows()[0]["top_k"]} == set(LABELS)

    def test_pairs_are_read_as_a_whole(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        pair = {"text": "where is it", "text_b": "it is here"}
        (tmp_path / "pairs.jsonl").write_text(json.dumps(pair) + "\n")
        options = [
            "--model",
            tiny("bert"),
            "--labels",
            "same, different",
            "--task",
            "paraphrase",
            tmp_path / "pairs.jsonl",
        ]
        for method in ("mask-matching", "pair-matching"):
            matcher = MaskMatcher.from_pretrained(tiny("bert"), ["same", "different"], task="paraphrase", method=method)
            (expected,) = matcher.predict_proba([pair]).max(axis=1)
            asked = [] if method == "mask-matching" else ["--method", method]
            (row,) = run("classify", *options, *asked).rows()
            assert row["probability"] == pytest.approx(float(expected), abs=1e-4)

    def test_several_labels_can_be_asked_for(self, run: Run, tiny: Tiny) -> None:
        options = ["--model", tiny("bert"), "--labels", "refund, card lost", "--text", "where is it", "--device", "cpu"]
        row = run("classify", *options, "--multi-label", "--threshold", "0").rows()[0]
        assert sorted(row["labels"]) == ["card lost", "refund"]
        fails(run("classify", *options, "--threshold", "0.4"), "several labels")

    def test_a_saved_classifier_with_other_labels_keeps_its_prompts(self, run: Run, tiny: Tiny, tmp_path: Path) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, prompt="{text} {mask} yes", similarity="dot")
        matcher.save_pretrained(tmp_path / "m")
        row = run("classify", "--model", tmp_path / "m", "--labels", "money,parcel", "--text", "x").rows()[0]
        expected = MaskMatcher.from_pretrained(tmp_path / "m", ["money", "parcel"]).top_k(["x"], 1)[0][0]
        assert (row["label"], row["probability"]) == (expected[0], pytest.approx(expected[1], abs=1e-5))

    def test_refusals(self, run: Run, tiny: Tiny) -> None:
        model = ["--model", tiny("bert")]
        fails(run("classify", *model, "--labels", "a,a", "--text", "x"), "'a'")
        fails(run("classify", *model, "--labels", " , ", "--text", "x"), "no labels")
        fails(run("classify", *model, "--labels", "a,b", "nowhere.csv"), "nowhere.csv")
        fails(run("classify", "--model", "./nowhere", "--labels", "a,b", "--text", "x"), "./nowhere")
        fails(run("classify", *model, "--labels", "a,b", "--text", "x", "--method", "fine-tuning"), "trained first")
        fails(run("classify", *model, "--labels", "a,b", "My card is gone."), "'My card is gone.'", "--text")
        is_wrong_usage(run("classify", *model, "--labels", "a,b", "--text", "x", "--task", "topics"), "topics")
        is_wrong_usage(run("classify", *model, "--text", "x"), "--labels")
        is_wrong_usage(run("classify", *model, "--labels", "a,b"), "FILE")
