"""Sentence pairs: designs in which label prompts contain the pair, or in which the two sides are read and compared."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError
from maskmatch_lab.comparison import Variant
from maskmatch_lab.studies.pictures import Panel, dot_plot
from maskmatch_lab.studies.study import Conclusion, Evidence, Part, Study
from maskmatch_lab.studies.words import HOW_TESTED, against, few_seeds, percent, points, sentence_case

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.config.tasks import Task

PLAIN = "plain prompt"
FINE_TUNING = "fine-tuning"
SEE_PAIR = "labels see the pair"
READ_APART = "sides read apart"
PAIR_AND_SIDES = "the pair, and its sides apart"
DESIGNS = (SEE_PAIR, READ_APART, PAIR_AND_SIDES)
PAIR_MATCHING = (READ_APART, PAIR_AND_SIDES)

BY_NAME = {"epochs": 7.0, "example_share": 0.0}
"""Label vectors that depend on the pair cannot shift towards training texts, so they do not shift in any design."""

LEARNED = {"learning_rate": 2e-4}
"""The usual rate. On dev rows fine-tuning is worse with 5e-5, and learns almost nothing with 5e-4."""

CAREFUL = {"learning_rate": 2e-5, "dropout": False}
"""The settings of pair-matching, for labels that see the pair: at the usual rate or with dropout they did not learn."""

WANTED_SHARE, WANTED_GAIN = 2 / 3, 0.03
"""The share of datasets on which a design has to reach fine-tuning, and its mean gain over the plain prompt."""


def pair_variants(task: Task) -> list[Variant]:
    """The plain prompt, fine-tuning, and the designs; the one in which labels see the pair comes last."""
    if task.fields[:2] != ("text", "text_b"):
        raise MaskMatchError(f"The study of pairs needs a task with text and text_b; {task.name} has other fields.")
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


def conclude(evidence: Evidence) -> Conclusion:
    """Each design against the plain prompt and against fine-tuning, and whether one of them is good enough."""
    sentences: list[str | None] = []
    answer: list[str] = []
    figures: dict[str, Any] = {}
    for regime in evidence.regimes:
        designs = [name for name in evidence.methods(regime) if name in DESIGNS]
        apart = [name for name in designs if name != SEE_PAIR]
        seeing = [data for data, own, name in evidence.comparison.groups() if (own, name) == (regime, SEE_PAIR)]
        about = f"Labels that see the pair (on {', '.join(seeing)})"
        sentences += [
            against(evidence, PLAIN, [*apart, FINE_TUNING], regime, about="Against the plain prompt"),
            against(evidence, FINE_TUNING, [PLAIN, *apart], regime, about="Against fine-tuning"),
            against(
                evidence,
                READ_APART,
                [name for name in apart if name != READ_APART],
                regime,
                about="The pair and its sides",
            ),
            against(evidence, PLAIN, [SEE_PAIR], regime, datasets=seeing, about=about) if seeing else None,
        ]
        figures[regime] = {name: result for name in designs if (result := _reached(evidence, name, regime))}
        everywhere = {name: result for name, result in figures[regime].items() if name != SEE_PAIR}
        answer += filter(None, [_verdict(everywhere, regime)])
        sentences.append(_largest_class(evidence))
    picture = dot_plot(evidence, [Panel(regime) for regime in evidence.regimes], evidence.all_methods, PLAIN)
    everything = [*answer, *filter(None, sentences), HOW_TESTED, *few_seeds(evidence)]
    return Conclusion(everything, {"designs": figures}, [picture], answer)


def _reached(evidence: Evidence, name: str, regime: str) -> dict[str, Any] | None:
    """On which datasets a design is at or above fine-tuning, and its mean gain over the plain prompt."""
    both, gains = [], []
    for dataset in evidence.datasets:
        own, tuned, plain = (
            evidence.comparison.accuracy(each, regime, [dataset]) for each in (name, FINE_TUNING, PLAIN)
        )
        if own is not None and tuned is not None and own >= tuned:
            both.append(dataset)
        if own is not None and plain is not None:
            gains.append(own - plain)
    if not gains:
        return None
    return {"at or above fine-tuning": both, "datasets": len(gains), "gain": sum(gains) / len(gains)}


def _largest_class(evidence: Evidence) -> str:
    """The accuracy of always predicting the most frequent label."""
    answers = {cell.dataset: cell.answers.true for cell in evidence.comparison.cells}
    shares = {name: max(Counter(true).values()) / len(true) for name, true in answers.items()}
    baselines = ", ".join(f"{name} {percent(share)}" for name, share in shares.items())
    return f"Always predicting the most frequent label would reach: {baselines}."


def _verdict(reached: dict[str, Any], regime: str) -> str | None:
    """Whether a design reaches the target, and which is the best."""
    if not reached or not any(each["at or above fine-tuning"] or each["gain"] for each in reached.values()):
        return None
    order: Sequence[str] = sorted(
        reached, key=lambda name: (len(reached[name]["at or above fine-tuning"]), reached[name]["gain"]), reverse=True
    )
    best, result = order[0], reached[order[0]]
    count = len(result["at or above fine-tuning"])
    words = (
        f"“{best}” is at or above fine-tuning on {count} of {result['datasets']} datasets, and differs by "
        f"{points(result['gain'])} points from the plain prompt on average"
    )
    if count >= WANTED_SHARE * result["datasets"] and result["gain"] >= WANTED_GAIN:
        return f"{sentence_case(regime)}: {words}. It is the recommended design."
    return f"{sentence_case(regime)}: no design reaches the target; the best, {words}."


PAIRS = Study(
    name="pairs",
    question="Plain matching gains little on sentence pairs: which design is better?",
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
        "Training uses 100 rows per label and 7 epochs. Fine-tuning has its usual epochs, 15 here.",
        "If labels see the pair, a step encodes every pair once per label. This design is tried on three of the six "
        "datasets, those with short texts, and with one seed.",
        "A prompt has at most 96 tokens, so sides that are read apart are truncated less than a long pair. Evaluated "
        "on at most 500 test rows.",
        "The comparison of the sides and the learning rates of these designs and of fine-tuning were chosen on dev "
        "rows of these datasets, with as many training rows. The plain prompt has the usual rate, which was better on "
        "dev rows of qqp_10k than a quarter or a tenth of it. Labels that see the pair have a tenth of it and no "
        "dropout: they learned nothing at the usual rate, nor at a tenth of it with dropout.",
        "Training texts do not shift label vectors (example_share 0), because they cannot if labels see the pair.",
    ),
    test_rows=500,
    minutes=100,
)
