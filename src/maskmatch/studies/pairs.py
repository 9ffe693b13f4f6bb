"""Sentence pairs: designs in which labels see the pair, or in which the two sides are read and compared."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from maskmatch.comparison import Variant
from maskmatch.errors import MaskMatchError
from maskmatch.studies.pictures import dot_plot
from maskmatch.studies.study import Conclusion, Found, Part, Study
from maskmatch.studies.words import HOW_TESTED, against, few_seeds, percent, points, sentence_case

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.tasks import Task

PLAIN = "plain prompt"
FINE_TUNING = "fine-tuning"
SEE_PAIR = "labels see the pair"
READ_APART = "sides read apart"
PAIR_AND_SIDES = "the pair, and its sides apart"
DESIGNS = (SEE_PAIR, READ_APART, PAIR_AND_SIDES)
PAIR_MATCHING = (READ_APART, PAIR_AND_SIDES)

BY_NAME = {"epochs": 7.0, "example_share": 0.0}
"""Labels that see the pair cannot move towards training texts: so they do in no design."""

LEARNED = {"learning_rate": 2e-4}
"""The usual rate, which suits fine-tuning better here than 5e-5, by dev rows; with 5e-4 it learned next to nothing."""

CAREFUL = {"learning_rate": 2e-5, "dropout": False}
"""How labels that see the pair learn, as pair-matching does: at the usual rate, or with dropout, they did not learn."""

WANTED_SHARE, WANTED_GAIN = 2 / 3, 0.03
"""On what share of datasets a design has to reach fine-tuning, and by how much to pass the plain prompt on average."""


def pair_variants(task: Task) -> list[Variant]:
    """The plain prompt, fine-tuning, and every design beyond them, that in which labels see the pair the last."""
    if task.fields[:2] != ("text", "text_b"):
        raise MaskMatchError(f"The study of pairs takes tasks with a text and a text_b; {task.name} is none.")
    sides = task.pair_prompts
    matchers: dict[str, dict[str, Any]] = {
        PLAIN: {},
        READ_APART: {"prompt": sides},
        PAIR_AND_SIDES: {"prompt": [task.prompt, *sides]},
        FINE_TUNING: {},
        SEE_PAIR: {"label_prompt": task.prompt.replace("{mask}", "{label}, {mask}")},
    }
    methods = {**dict.fromkeys(PAIR_MATCHING, "pair-matching"), FINE_TUNING: "fine-tuning"}
    return [
        Variant(
            name,
            methods.get(name, "mask-matching"),
            matcher={**matcher, "max_length": 96},
            training={FINE_TUNING: LEARNED, SEE_PAIR: {**BY_NAME, **CAREFUL}}.get(name, BY_NAME),
        )
        for name, matcher in matchers.items()
    ]


def _seeing(task: Task) -> list[Variant]:
    return [variant for variant in pair_variants(task) if variant.name == SEE_PAIR]


def _others(task: Task) -> list[Variant]:
    return [variant for variant in pair_variants(task) if variant.name != SEE_PAIR]


def conclude(found: Found) -> Conclusion:
    """Each design against the plain prompt and against fine-tuning, and whether one of them is good enough."""
    sentences: list[str | None] = []
    answer: list[str] = []
    figures: dict[str, Any] = {}
    for regime in found.regimes:
        designs = [name for name in found.methods(regime) if name in DESIGNS]
        apart = [name for name in designs if name != SEE_PAIR]
        seeing = [data for data, own, name in found.comparison.groups() if (own, name) == (regime, SEE_PAIR)]
        about = f"Labels that see the pair (on {', '.join(seeing)})"
        sentences += [
            against(found, PLAIN, [*apart, FINE_TUNING], regime, about="Against the plain prompt"),
            against(found, FINE_TUNING, [PLAIN, *apart], regime, about="Against fine-tuning"),
            against(found, READ_APART, [name for name in apart if name != READ_APART], regime, about="Three readings"),
            against(found, PLAIN, [SEE_PAIR], regime, datasets=seeing, about=about) if seeing else None,
        ]
        figures[regime] = {name: told for name in designs if (told := _reached(found, name, regime))}
        everywhere = {name: told for name, told in figures[regime].items() if name != SEE_PAIR}
        answer += filter(None, [_verdict(everywhere, regime)])
        sentences.append(_largest_class(found))
    pictures = [dot_plot(found, regime, found.methods(regime)) for regime in found.regimes]
    said = [*answer, *filter(None, sentences), HOW_TESTED, *few_seeds(found)]
    return Conclusion(said, {"designs": figures}, pictures, answer)


def _reached(found: Found, name: str, regime: str) -> dict[str, Any] | None:
    """On which datasets a design is at or above fine-tuning, and its mean gain over the plain prompt."""
    both, gains = [], []
    for dataset in found.datasets:
        own, tuned, plain = (found.comparison.accuracy(each, regime, [dataset]) for each in (name, FINE_TUNING, PLAIN))
        if own is not None and tuned is not None and own >= tuned:
            both.append(dataset)
        if own is not None and plain is not None:
            gains.append(own - plain)
    if not gains:
        return None
    return {"at or above fine-tuning": both, "datasets": len(gains), "gain": sum(gains) / len(gains)}


def _largest_class(found: Found) -> str:
    """What a classifier would reach on the measured rows that always gives the most frequent answer."""
    answers = {cell.dataset: cell.answers.true for cell in found.comparison.cells}
    shares = {name: max(Counter(true).values()) / len(true) for name, true in answers.items()}
    told = ", ".join(f"{name} {percent(share)}" for name, share in shares.items())
    return f"Who always gave the most frequent answer would be right in: {told}."


def _verdict(reached: dict[str, Any], regime: str) -> str | None:
    """Whether a design passes, and which is the best."""
    if not reached or not any(each["at or above fine-tuning"] or each["gain"] for each in reached.values()):
        return None
    order: Sequence[str] = sorted(
        reached, key=lambda name: (len(reached[name]["at or above fine-tuning"]), reached[name]["gain"]), reverse=True
    )
    best, told = order[0], reached[order[0]]
    count = len(told["at or above fine-tuning"])
    words = (
        f"{best} is at or above fine-tuning on {count} of {told['datasets']} datasets, and {points(told['gain'])} "
        "points from the plain prompt on average"
    )
    if count >= WANTED_SHARE * told["datasets"] and told["gain"] >= WANTED_GAIN:
        return f"{sentence_case(regime)}: {words}: it is the design to take."
    return f"{sentence_case(regime)}: no design is good enough to be taken without a second thought; the best, {words}."


PAIRS = Study(
    name="pairs",
    question="Plain matching gains little on sentence pairs: which design does?",
    parts=(
        Part(
            {
                "rte": "nli",
                "snli_testonly": "nli",
                "qnli_devonly": "nli",
                "mrpc": "paraphrase",
                "qqp_10k": "paraphrase",
                "wic_trainonly": "word-in-context",
            },
            _others,
            ("100 shots",),
        ),
        Part(
            {"snli_testonly": "nli", "qqp_10k": "paraphrase", "wic_trainonly": "word-in-context"},
            _seeing,
            ("100 shots",),
            seeds=1,
        ),
    ),
    reference=PLAIN,
    conclude=conclude,
    cut=(
        "100 rows a label and 7 epochs instead of all rows and more steps. Fine-tuning has its usual epochs, 15 here.",
        "Where labels see the pair, a step reads every pair once more for each label: tried on three of the six sets, "
        "those with short texts, and with one seed.",
        "A prompt is read up to 96 tokens, so long sides that are read apart are cut less than a long pair. Measured "
        "on 500 test rows at most.",
        "How the sides are compared, and the learning rates of this and of fine-tuning, were chosen by dev rows of "
        "these datasets, with as many training rows. The plain prompt learns at the usual rate, which on dev rows of "
        "qqp_10k was better than a quarter and a tenth of it; labels that see the pair at a tenth and without dropout, "
        "as they learned nothing there at the usual rate, nor at a tenth with dropout.",
        "Training texts have no share in label vectors (example_share 0), as they cannot where labels see the pair.",
    ),
    test_rows=500,
    minutes=100,
)
