"""The figures on the page about calibration, labels that are added later, and texts that no label fits."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from maskmatch.evaluation.display import counted
from maskmatch_lab.benchmarks.calibration import SEEN_BY_ADAPTER, SIX
from maskmatch_lab.benchmarks.markdown import origin, results_of, table

if TYPE_CHECKING:
    from collections.abc import Mapping

NOT_RUN = "Not measured yet."
WAYS = {"uncalibrated": "not calibrated", "without_dev": "without dev rows", "with_dev": "with dev rows"}


def figures() -> str:
    """All tables of the page."""
    results = results_of("calibration")
    if results is None:
        return NOT_RUN
    blocks = [
        "## Names alone",
        "Expected calibration error (15 bins; 0 is best) and log loss on test rows, before and after. The calibration "
        "of each kind of task was fitted on dev rows of one to three datasets, most of them below.",
        zero_shot_table(results),
        "## Five texts per label",
        few_shot_table(results),
        "## Right as often as asked",
        "The probability from which on it answers was chosen on dev rows, with a confidence of 95 %; the accuracy of "
        "the answers is that on test rows.",
        abstention_table(results),
        "## Several labels per text",
        several_table(results),
        "## Labels that are added after training",
        "A quarter of the labels is left out of training (5 texts per label) and added afterwards. All labels can be "
        f"predicted each time. {' and '.join(SEEN_BY_ADAPTER)} is read by the encoder without adapter, since the "
        "adapter has learned from its train rows.",
        left_out_table(results),
        origin(results),
        "## Texts that no label fits",
        out_of_scope_table(),
        "## Following the label check",
        label_check_table(),
    ]
    return "\n\n".join(blocks)


def _cells(results: Mapping[str, Any], part: str) -> list[dict[str, Any]]:
    return [cell for cell in results["cells"] if cell["part"] == part]


def _by_dataset(cells: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for cell in cells:
        found.setdefault(cell["dataset"], []).append(cell)
    return found


def zero_shot_table(results: Mapping[str, Any]) -> str:
    """Calibration error and log loss with names alone."""
    cells = _cells(results, "zero_shot")
    rows = [
        (
            cell["dataset"],
            f"{cell['calibrated']['accuracy']:.3f}",
            *(f"{cell[way]['ece']:.3f}" for way in ("uncalibrated", "calibrated")),
            *(f"{cell[way]['log_loss']:.3f}" for way in ("uncalibrated", "calibrated")),
        )
        for cell in cells
    ]
    six = [cell for cell in cells if cell["dataset"] in SIX]
    means = [f"**{fmean(cell[way]['ece'] for cell in six):.3f}**" for way in ("uncalibrated", "calibrated")]
    rows.append((f"**mean of {', '.join(cell['dataset'] for cell in six)}**", "", *means, "", ""))
    return table(("dataset", "accuracy", "error before", "after", "log loss before", "after"), rows)


def few_shot_table(results: Mapping[str, Any]) -> str:
    """Calibration error after training on five texts per label."""
    cells = _by_dataset(_cells(results, "few_shot"))
    if not cells:
        return NOT_RUN
    rows = [
        (
            name,
            str(len(own)),
            f"{fmean(cell['with_dev']['accuracy'] for cell in own):.3f}",
            *(f"{fmean(cell[way]['ece'] for cell in own):.3f}" for way in WAYS),
            *(f"{fmean(cell[way]['log_loss'] for cell in own):.3f}" for way in WAYS),
        )
        for name, own in cells.items()
    ]
    each = [[fmean(cell[way]["ece"] for cell in own) for own in cells.values()] for way in WAYS]
    means = [f"**{fmean(values):.3f}**" for values in each]
    rows.append(("**mean of datasets**", "", "", *means, "", "", ""))
    heads = [f"error, {name}" for name in WAYS.values()] + [f"log loss, {name}" for name in WAYS.values()]
    return table(("dataset", "draws", "accuracy", *heads), rows)


def abstention_table(results: Mapping[str, Any]) -> str:
    """How often answers above the chosen probability are right."""
    rows = []
    for part, name in (("zero_shot", "names alone"), ("few_shot", "5 shots"), ("abstain", "1,000 rows")):
        for cell in _cells(results, part):
            found = cell["abstention"]
            if found["threshold"] is None or not found["answered"]:
                rows.append((cell["dataset"], name, f"{found['right']:.0%}", "no probability is good enough", ""))
                continue
            share = found["answered"] / cell["rows"]
            rows.append((cell["dataset"], name, f"{found['right']:.0%}", f"{share:.0%}", f"{found['accuracy']:.1%}"))
    return table(("dataset", "classifier", "asked for", "texts answered", "answers that are right"), rows)


def several_table(results: Mapping[str, Any]) -> str:
    """Probabilities of labels that each stand for themselves, before and after."""
    cells = _cells(results, "several")
    if not cells:
        return NOT_RUN
    rows = []
    for way, title in (("uncalibrated", "not calibrated"), ("without_dev", "calibrated on folds")):
        own = [cell[way] for cell in cells]
        held = [each["high_that_hold"] for each in own if each["high_that_hold"] is not None]
        rows.append(
            (
                title,
                str(len(own)),
                f"{fmean(each['ece'] for each in own):.3f}",
                f"{fmean(each['high'] for each in own):.0f}",
                f"{fmean(held):.1%}" if held else "",
                f"{fmean(each['micro_f1'] for each in own):.3f}",
            )
        )
    about = "500 rows of goemotions with several labels each, without dev rows. Over all labels of all test texts:"
    heads = ("", "draws", "calibration error", "probabilities above 0.9", "of these, right", "micro-F1")
    return "\n\n".join([about, table(heads, rows)])


def left_out_table(results: Mapping[str, Any]) -> str:
    """Accuracy on seen and unseen labels."""
    if not _cells(results, "left_out"):
        return NOT_RUN
    rows = []
    groups = [
        (name, method, own)
        for part, method in (("left_out", "mask-matching"), ("left_out_semantic", "semantic-matching"))
        for name, own in _by_dataset(_cells(results, part)).items()
    ]
    for name, method, own in groups:
        for key, title in (
            ("added_later", "added after training"),
            ("names_alone", "names alone"),
            ("trained_on_all", "trained on all labels"),
        ):
            seen, unseen = (fmean(cell[key][group] for cell in own) for group in ("seen", "unseen"))
            harmonic = 2 * seen * unseen / (seen + unseen) if seen + unseen else 0.0
            error = f"{fmean(cell['calibrated']['ece'] for cell in own):.3f}" if key == "added_later" else ""
            rows.append((name, method, str(len(own)), title, f"{seen:.3f}", f"{unseen:.3f}", f"{harmonic:.3f}", error))
    heads = ("dataset", "method", "draws", "", "seen labels", "labels left out", "harmonic mean", "calibration error")
    return table(heads, rows)


def out_of_scope_table() -> str:
    """The area under the ROC curve of novelty and other scores."""
    results = results_of("out_of_scope")
    if results is None:
        return NOT_RUN
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for cell in results["cells"]:
        groups.setdefault((cell["dataset"], cell["regime"], cell["method"]), []).append(cell)
    kinds = ("novelty", "maximum probability", "logistic regression on embeddings")
    rows = [
        (
            *key,
            str(len(own)),
            *(f"{fmean(cell['auroc'][kind] for cell in own):.3f}" if kind in own[0]["auroc"] else "" for kind in kinds),
        )
        for key, own in groups.items()
    ]
    about = (
        "Area under the ROC curve for telling texts out of scope. clinc150 has out-of-scope rows; it is read by the "
        "encoder without adapter, since the adapter has learned from its train rows. In banking77, 27 of 77 intents "
        "are left out, and their texts are near to the others."
    )
    heads = ("dataset", "training", "method", "draws", *kinds)
    return "\n\n".join([about, table(heads, rows), origin(results)])


def label_check_table() -> str:
    """The accuracy before and after all advice of the label check."""
    results = results_of("label_check")
    if results is None:
        return NOT_RUN
    rows = [
        (
            cell["dataset"],
            cell["names"],
            *(f"{value:.3f}" for value in cell["accuracy"]),
            ", ".join(f"{count} {kind}" for kind, count in cell["advice"].items()),
        )
        for cell in results["cells"]
    ]
    about = (
        f"`maskmatch labels check --test` saw {results['rows']} train rows; accuracy of names alone on as many test "
        "rows, before and after all of its advice. Made worse: three fifths of the names became numbers, lost their "
        "vowels, or were cut to four letters."
    )
    return "\n\n".join([about, table(("dataset", "names", "before", "after", "advice"), rows), origin(results)])


def readme_rows() -> list[tuple[str, str]]:
    """Rows for the table of the README."""
    results = results_of("calibration")
    if results is None or "few_shot, without_dev" not in results["means"]:
        return []
    means = results["means"]
    few = _by_dataset(_cells(results, "few_shot"))
    least, most = min(map(len, few.values())), max(map(len, few.values()))
    draws = counted(most, "draw") if least == most else f"{least} to {most} draws each"
    rows = [
        (
            f"expected calibration error with 5 texts per label and no dev rows, mean of {len(few)} datasets, {draws}",
            f"**{means['few_shot, without_dev']:.3f}** (not calibrated: {means['few_shot, uncalibrated']:.3f})",
        )
    ]
    left = [
        (name, method, own)
        for part, method in (("left_out", ""), ("left_out_semantic", ", `semantic-matching`"))
        for name, own in _by_dataset(_cells(results, part)).items()
    ]
    for name, method, own in left:
        seen, unseen, alone, whole = (
            fmean(cell[key][group] for cell in own)
            for key, group in (
                ("added_later", "seen"),
                ("added_later", "unseen"),
                ("names_alone", "unseen"),
                ("trained_on_all", "seen"),
            )
        )
        rows.append(
            (
                f"a quarter of the labels of {name} added after training{method}, {counted(len(own), 'draw')}: "
                "accuracy on these labels",
                f"**{unseen:.3f}** (names alone: {alone:.3f}); on the other labels {seen:.3f} "
                f"(trained on all: {whole:.3f})",
            )
        )
    return rows
