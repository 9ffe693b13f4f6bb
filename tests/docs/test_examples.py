"""The examples run (on a tiny encoder, to be quick), fit on a page, and what they print is what they found."""

from __future__ import annotations

import math
import re
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from maskmatch.demo import demo_rows

if TYPE_CHECKING:
    from maskmatch_lab.comparison import Comparison

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py"))

pytestmark = pytest.mark.usefixtures("tiny_default")


def run(script: str, **arguments: Any) -> Any:
    return runpy.run_path(str(EXAMPLES / script))["main"](**arguments)


def line_of(printed: str, beginning: str, place: int = 0) -> list[str]:
    """What stands in a line of a table behind its first cell."""
    lines = [line for line in printed.splitlines() if line.startswith(beginning)]
    return lines[place].removeprefix(beginning).split()


def means(found: Comparison) -> dict[tuple[str, str], str]:
    figures = {(row.regime, row.method): row.figures["accuracy"] for row in found.table}
    return {place: f"{figure.mean:.3f}" for place, figure in figures.items() if figure is not None}


def test_the_page_of_examples_names_each_and_each_fits_on_a_page() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"^python examples/(\w+\.py)$", page, flags=re.MULTILINE)
    assert sorted(named) == SCRIPTS
    for script in SCRIPTS:
        assert len((EXAMPLES / script).read_text(encoding="utf-8").splitlines()) <= 70, script


def test_mask_states_by_hand_are_those_of_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = run("mask_states.py", epochs=1)
    printed = capsys.readouterr().out
    texts = runpy.run_path(str(EXAMPLES / "mask_states.py"))["TEXTS"]
    for look, cosines in enumerate((before, after)):
        assert cosines.shape == (len(texts), 2)
        for text, cosine in zip(texts, cosines.tolist(), strict=True):
            positive, negative, by_hand, of_the_library = map(float, line_of(printed, text, look))
            assert (positive, negative) == pytest.approx(cosine, abs=0.006)
            assert by_hand == pytest.approx(of_the_library, abs=0.011)
            assert by_hand == pytest.approx(1 / (1 + math.exp((cosine[1] - cosine[0]) / 0.05)), abs=0.006)
    assert not torch.allclose(before, after, atol=1e-3)


def test_both_methods_learn_from_the_same_rows(capsys: pytest.CaptureFixture[str]) -> None:
    found = run("against_fine_tuning.py", shots=1, seeds=2, epochs=1)
    printed = capsys.readouterr().out
    cells = {(cell.method, cell.regime, cell.seed): cell for cell in found.cells}
    assert set(cells) == {
        ("mask-matching", "zero-shot", 0),
        *((method, "1 shot", seed) for method in ("mask-matching", "fine-tuning") for seed in (0, 1)),
    }
    intents = set(demo_rows("train").labels or ())
    assert {cell.figures.training_texts for key, cell in cells.items() if key[1] == "1 shot"} == {len(intents)}
    assert line_of(printed, "zero-shot") == [means(found)["zero-shot", "mask-matching"], "-"]
    told = line_of(printed, "1 shot")
    assert [told[0], told[3]] == [means(found)["1 shot", method] for method in ("mask-matching", "fine-tuning")]
    assert told[1] == told[4] == "±"
    difference = float(line_of(printed, "mask-matching minus fine-tuning, 1 shot:")[0])
    assert difference == pytest.approx(float(told[0]) - float(told[3]), abs=0.002)
    passes = {variant["name"]: variant["training"]["epochs"] for variant in found.about["methods"]}
    assert passes == {"mask-matching": 1, "fine-tuning": 3}  # as it says
    assert "three times\nas long" in printed


def test_every_label_prompt_is_measured_with_and_without_examples(capsys: pytest.CaptureFixture[str]) -> None:
    found = run("label_prompts.py", shots=1, seeds=1, epochs=1)
    printed = capsys.readouterr().out
    prompts = runpy.run_path(str(EXAMPLES / "label_prompts.py"))["PROMPTS"]
    assert [variant["matcher"]["label_prompt"] for variant in found.about["methods"]] == list(prompts)
    assert found.reference == prompts[0] == "{label} is {mask}."
    for prompt in prompts:
        assert line_of(printed, f"{prompt} ") == [means(found)[regime, prompt] for regime in ("zero-shot", "1 shot")]
    first, second = (float(means(found)["zero-shot", prompt]) for prompt in prompts[:2])
    tested = line_of(printed, f"{prompts[1]} ", place=1)
    assert tested[0] == "zero-shot"
    assert float(tested[1]) == pytest.approx(first - second, abs=0.002)
    assert len({cell.answers.predicted for cell in found.cells if cell.regime == "zero-shot"}) > 1  # prompts matter
