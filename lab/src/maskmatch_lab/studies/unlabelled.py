"""Unlabelled texts: what they add to names alone and to a few examples, how many it takes, and where they do harm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskmatch_lab.comparison import Unlabelled, Variant
from maskmatch_lab.studies.label_readout import BARE_ENCODER, ENCODERS
from maskmatch_lab.studies.pictures import Lines, line_plot
from maskmatch_lab.studies.study import Conclusion, Evidence, Part, Study
from maskmatch_lab.studies.words import HOW_TESTED, against, few_seeds, percent, points, sentence_case

if TYPE_CHECKING:
    from collections.abc import Sequence

METHODS = ("mask-matching", "mask-mean-matching", "mean-matching")
MAIN = METHODS[0]
USUAL = 4000
"""How many unlabelled texts most variants learn from."""

COUNTS = (10, 100, 1000, USUAL, 20_000)
ZERO_SHOT = "zero-shot"
SELF_TRAINED = "self-trained"

EIGHT = {
    "agnews": "topic",
    "banking77": "intent",
    "trec6": "question",
    "trec50": "question",
    "sst2": "sentiment",
    "newsgroups20": "topic",
    "crossner_typing": "entity-typing",
    "sst5": "sentiment",
}
SHORT = {name: task for name, task in EIGHT.items() if name != "newsgroups20"}
"""Those with short texts."""

HARD = {"goemotions": "emotion", "semeval2010_re": "relation"}
"""Feelings with skewed labels, and relations that names describe badly."""

TRAINED = {"banking77": "intent", "trec50": "question", "agnews": "topic", "semeval2010_re": "relation"}
LARGE = {"sst2": "sentiment"}
"""The one with the most unlabelled texts."""

FOREIGN = {
    "banking77+agnews": "intent",
    "agnews+trec6": "topic",
    "trec6+clinc150": "question",
    "sst2+banking77": "sentiment",
    "trec6+sst2": "question",
}
"""Labels of one dataset, with unlabelled texts of another."""


def alone(method: str = MAIN) -> str:
    """The name of a variant without unlabelled texts."""
    return f"{method} alone"


def adapted(method: str = MAIN, texts: int = USUAL) -> str:
    """The name of a variant that adapts to unlabelled texts if they speak for it."""
    return f"{method} adapted to {texts:,}"


def forced(texts: int = USUAL, method: str = MAIN) -> str:
    """The name of a variant that adapts to unlabelled texts in any case."""
    return f"{method} forced to adapt to {texts:,}"


def self_trained(method: str = MAIN) -> str:
    """The name of a variant that adapts, then trains on confident texts."""
    return f"{method} adapted to {USUAL:,} and {SELF_TRAINED}"


def _alone(method: str = MAIN) -> Variant:
    return Variant(alone(method), method)


def _adapted(method: str = MAIN) -> Variant:
    return Variant(adapted(method), method, unlabelled=Unlabelled(USUAL))


def _forced(*counts: int, method: str = MAIN) -> list[Variant]:
    return [Variant(forced(count, method), method, unlabelled=Unlabelled(count, force=True)) for count in counts]


def _self_trained() -> Variant:
    return Variant(self_trained(), MAIN, unlabelled=Unlabelled(USUAL, self_training=True))


def _bare() -> list[Variant]:
    """Variants of the encoder without this project's adapter."""
    return [
        Variant(f"{name(method)}{BARE_ENCODER}", method, matcher=ENCODERS[BARE_ENCODER], unlabelled=texts)
        for method in ("mask-matching", "semantic-matching")
        for name, texts in ((alone, None), (adapted, Unlabelled(USUAL)))
    ]


PAIRS = [variant for method in METHODS for variant in (_alone(method), _adapted(method))]


def conclude(evidence: Evidence) -> Conclusion:
    """Where unlabelled texts do harm, what they add, how that grows with their number and with examples."""
    answer = [
        *_harm(evidence),
        *_gains(evidence),
        *_with_examples(evidence),
        *_foreign(evidence),
        *_self_training(evidence),
    ]
    tests = []
    for regime in evidence.regimes:
        for method in METHODS:
            tests.append(
                against(evidence, alone(method), [adapted(method)], regime, datasets=_own(evidence), about=method)
            )
        tests.append(against(evidence, alone(), [alone(other) for other in METHODS[1:]], regime, about="Views"))
    pictures = [_curves(evidence), _shots(evidence)]
    return Conclusion(
        [*answer, *filter(None, tests), HOW_TESTED, *few_seeds(evidence)],
        {"gains": _gain_table(evidence), "decisions": _decisions(evidence)},
        [picture for picture in pictures if picture],
        answer,
    )


def _own(evidence: Evidence) -> list[str]:
    """The datasets whose unlabelled texts are their own."""
    return [name for name in evidence.datasets if "+" not in name]


def _gain(
    evidence: Evidence, name: str, reference: str, regime: str, datasets: Sequence[str] | None = None
) -> float | None:
    """The difference of accuracies over the datasets and seeds that both ran with."""
    comparison = evidence.comparison
    ran = [
        each
        for each in (_own(evidence) if datasets is None else datasets)
        if comparison.accuracy(name, regime, [each]) is not None
        and comparison.accuracy(reference, regime, [each]) is not None
    ]
    pairs = [comparison.difference_by_seed(name, reference, regime, [each]) for each in ran]
    known = [sum(each) / len(each) for each in pairs if each]
    return sum(known) / len(known) if known else None


def _gain_table(evidence: Evidence) -> dict[str, Any]:
    """By regime, variant and dataset: the difference from the same method alone."""
    table: dict[str, Any] = {}
    for regime in evidence.regimes:
        for name in evidence.methods(regime):
            reference = alone(name.split(" ", 1)[0]) + (BARE_ENCODER if name.endswith(BARE_ENCODER) else "")
            if name == reference:
                continue
            gains = {each: _gain(evidence, name, reference, regime, [each]) for each in evidence.datasets}
            table.setdefault(regime, {})[name] = {
                each: round(gain, 4) for each, gain in gains.items() if gain is not None
            }
    return table


def _decisions(evidence: Evidence) -> list[dict[str, Any]]:
    """What the texts themselves advised, per cell."""
    return [
        {"dataset": cell.dataset, "method": cell.method, "regime": cell.regime, "seed": cell.seed}
        | {name: cell.figures.adaptation[name] for name in ("adapted", "advised", "changed", "agreement", "seconds")}
        for cell in evidence.comparison.cells
        if cell.figures.adaptation is not None
    ]


def _harm(evidence: Evidence) -> list[str]:
    """The datasets on which adapting in any case costs accuracy, and those on which the classifier still adapts."""
    gains = {}
    for each in _own(evidence):
        found = [_gain(evidence, name, alone(), ZERO_SHOT, [each]) for name in (forced(), adapted())]
        gains[each] = next((gain for gain in found if gain is not None), None)
    worse = sorted((gain, each) for each, gain in gains.items() if gain is not None and gain < 0)
    if not worse:
        return []
    decided = {each: _gain(evidence, adapted(), alone(), ZERO_SHOT, [each]) for _, each in worse}
    parts = [f"{each} ({points(gain)}; as decided {points(decided[each] or 0.0)})" for gain, each in worse]
    return [f"Adapting {MAIN} in any case to {USUAL:,} texts does harm on {', '.join(parts)}."]


def _gains(evidence: Evidence) -> list[str]:
    """The mean gain without examples, of each method."""
    sentences = []
    eight = [each for each in EIGHT if each in evidence.datasets]
    for method in METHODS:
        gains = {each: _gain(evidence, adapted(method), alone(method), ZERO_SHOT, [each]) for each in eight}
        known = {each: gain for each, gain in gains.items() if gain is not None}
        before = evidence.comparison.accuracy(alone(method), ZERO_SHOT, list(known))
        if not known or before is None:
            continue
        mean, worst = sum(known.values()) / len(known), min(known, key=lambda each: known[each])
        sentences.append(
            f"{sentence_case(ZERO_SHOT)}, {method} goes from {percent(before)} with names alone to "
            f"{percent(before + mean)} with {USUAL:,} unlabelled texts on {len(known)} datasets ({points(mean)}; worst "
            f"{worst} {points(known[worst])})."
        )
    return sentences


def _with_examples(evidence: Evidence) -> list[str]:
    """The mean gain after training."""
    sentences = []
    for regime in evidence.regimes:
        if regime == ZERO_SHOT:
            continue
        for method in METHODS:
            gains = {each: _gain(evidence, adapted(method), alone(method), regime, [each]) for each in TRAINED}
            known = {each: gain for each, gain in gains.items() if gain is not None}
            if known:
                parts = ", ".join(f"{each} {points(gain)}" for each, gain in known.items())
                mean = sum(known.values()) / len(known)
                sentences.append(
                    f"After training with {regime}, unlabelled texts add {points(mean)} to {method}: {parts}."
                )
    return sentences


def _foreign(evidence: Evidence) -> list[str]:
    """What texts of another dataset do."""
    names = [each for each in evidence.datasets if "+" in each]
    in_any_case, decided = (_gain(evidence, name, alone(), ZERO_SHOT, names) for name in (forced(), adapted()))
    if in_any_case is None or decided is None:
        return []
    return [
        f"Unlabelled texts of another dataset cost {points(in_any_case)} if the classifier must adapt, and "
        f"{points(decided)} if it decides ({', '.join(names)})."
    ]


def _self_training(evidence: Evidence) -> list[str]:
    """What self-training adds to adapting."""
    sentences = []
    for regime in evidence.regimes:
        gains = {each: _gain(evidence, self_trained(), adapted(), regime, [each]) for each in _own(evidence)}
        known = {each: gain for each, gain in gains.items() if gain is not None}
        if known:
            parts = ", ".join(f"{each} {points(gain)}" for each, gain in known.items())
            sentences.append(f"Self-training after adapting, {regime}: {parts}.")
    return sentences


def _curves(evidence: Evidence) -> str:
    """Accuracy by the number of unlabelled texts, in any case, per dataset."""
    lines: dict[str, dict[float, float]] = {}
    for each in _own(evidence):
        found = {float(count): evidence.comparison.accuracy(forced(count), ZERO_SHOT, [each]) for count in COUNTS}
        known = {count: accuracy for count, accuracy in found.items() if accuracy is not None}
        names = evidence.comparison.accuracy(alone(), ZERO_SHOT, [each])
        if known and names is not None:
            lines[each] = {1.0: names, **known}
    panel = Lines(f"{MAIN}, {ZERO_SHOT}, adapted in any case (left: names alone)", lines)
    return line_plot([panel], "unlabelled texts", logarithmic=True)


def _shots(evidence: Evidence) -> str:
    """Accuracy by the number of examples, with and without unlabelled texts."""
    places = {ZERO_SHOT: 0.0, "1 shot": 1.0, "5 shots": 5.0, "10 shots": 10.0}
    panels = []
    for each in TRAINED:
        lines = {}
        for title, name in (("alone", alone()), (f"with {USUAL:,} unlabelled texts", adapted())):
            found = {place: evidence.comparison.accuracy(name, regime, [each]) for regime, place in places.items()}
            lines[title] = {place: accuracy for place, accuracy in found.items() if accuracy is not None}
        panels.append(Lines(each, lines))
    return line_plot(panels, "texts per label")


UNLABELLED = Study(
    name="unlabelled",
    question="What do unlabelled texts add to label names and to a few examples, and where do they do harm?",
    parts=(
        Part({**EIGHT, **HARD}, PAIRS, (ZERO_SHOT,), seeds=1, quick=(alone(), adapted())),
        Part({"goemotions": "emotion"}, _bare(), (ZERO_SHOT,), seeds=1, quick=()),
        Part(TRAINED, [_alone(), _adapted()], ("5 shots",)),
        Part({**SHORT, **HARD}, _forced(USUAL), (ZERO_SHOT,), seeds=1),
        Part(FOREIGN, [_alone(), _adapted(), *_forced(USUAL)], (ZERO_SHOT,), seeds=1, quick=()),
        Part(TRAINED, [_alone(), _adapted()], ("1 shot", "10 shots"), seeds=1, quick=()),
        Part(TRAINED, [_alone(method) for method in METHODS[1:]], ("5 shots",), seeds=1, quick=()),
        Part({**SHORT, **HARD}, _forced(10, 100, 1000), (ZERO_SHOT,), seeds=1, quick=()),
        Part(LARGE, _forced(20_000), (ZERO_SHOT,), seeds=1, quick=()),
        Part(
            {"agnews": "topic", "trec6": "question"},
            [_self_trained()],
            (ZERO_SHOT,),
            seeds=1,
        ),
        Part({"agnews": "topic"}, [_self_trained()], ("5 shots",), seeds=1, quick=()),
    ),
    reference=alone(),
    conclude=conclude,
    cut=(
        "Everything but 5 shots of mask-matching has one seed: one draw of unlabelled texts, and of examples.",
        "The number of texts is not varied on newsgroups20, whose texts are long.",
        "No dataset here has more than 50,000 texts. A classifier uses at most 20,000, drawn at random.",
        "The constants of adapting were chosen on dev rows, or rows held out of train, of the same datasets.",
        "Unlabelled texts are train texts; the examples are among them.",
        "The default encoder was trained on train rows of goemotions, so the bare encoder is measured there, too.",
        "Evaluated on at most 1,000 test rows.",
    ),
    minutes=110,
)
