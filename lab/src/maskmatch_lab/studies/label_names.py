"""The value of label names: names made better and worse, and scores that should predict their value before training."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from maskmatch_lab.comparison import Variant
from maskmatch_lab.comparison.statistics import holm
from maskmatch_lab.studies.informativeness import SCORES, name_scores
from maskmatch_lab.studies.learned_from import unseen
from maskmatch_lab.studies.names import AS_THEY_ARE, CHANGES, NUMBERED
from maskmatch_lab.studies.pictures import Lines, Panel, dot_plot, interval_plot, line_plot
from maskmatch_lab.studies.rank_correlation import FEWEST, RankCorrelation, rank_correlation
from maskmatch_lab.studies.study import Conclusion, Evidence, Part, Study
from maskmatch_lab.studies.words import HOW_TESTED, Tested, against, corrected, few_seeds, p_text, paired_tests, points

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ZERO = "zero-shot"
REGIMES = {ZERO: 0.0, "1 shot": 1.0, "5 shots": 2.0, "20 shots": 3.0, "full data": 4.0}
"""The place of each regime in the picture."""

HALF = 0.5
SOME = (AS_THEY_ARE, "vowels dropped", NUMBERED, "shuffled")
"""The names that are also tried with 1 and 20 shots and with all data."""

WANTED_ORDER = 0.7
HOW_CHANGED = (
    "Training was short: half of the usual epochs, and one epoch on all data. 'Expanded' names have a gloss as a "
    "second phrase, and 'synonyms' are other words for the same label; both were written by hand."
)

SCORED = {
    "banking77": "intent",
    "trec50": "question",
    "trec6": "question",
    "agnews": "topic",
    "newsgroups20": "topic",
    "snips": "intent",
    "goemotions": "emotion",
    "sst5": "sentiment",
    "crossner_typing": "entity-typing",
    "semeval2010_re": "relation",
    "fewrel_nyt25": "relation",
    "naics1065": "topic",
    "sst2": "sentiment",
    "rte": "nli",
    "snli_testonly": "nli",
    "mrpc": "paraphrase",
    "wic_trainonly": "word-in-context",
    "semeval16_stance": "stance",
}
"""Label sets on which the scores are tested; those that the default encoder was trained on do not count."""

LEAST_ROWS = 5
"""The smallest number of test rows of a label whose recall counts."""

LEAST_LABELS = 10
"""The smallest number of such labels in a set whose recalls are ranked."""


def name_variants(names: Sequence[str], **options: Any) -> list[Variant]:
    """Variants with changed names, by the name of the change."""
    return [Variant(name, labels=CHANGES[name], **options) for name in names]


def conclude(evidence: Evidence) -> Conclusion:
    """The effect of each change in each regime, how long names matter, and what the scores predict."""
    changed = [cell.dataset for cell in evidence.comparison.cells if cell.method not in (AS_THEY_ARE, NUMBERED)]
    curves = list(dict.fromkeys(changed))
    others = [name for name in CHANGES if name != AS_THEY_ARE]
    about = f"Names on {', '.join(curves)}"
    sentences: list[str | None] = [
        against(evidence, AS_THEY_ARE, others, regime, datasets=curves, about=about) for regime in evidence.regimes
    ]
    answer = [_worth(evidence, curves), _shuffled(evidence, curves)]
    sentences += [HOW_CHANGED if curves else None]
    worth, share = _worth_by_dataset(evidence), _worth_by_dataset(evidence, of_room=True)
    scores = {
        name: {data: score(evidence.datasets[data], evidence.model) for data in worth} for name, score in SCORES.items()
    }
    judged = unseen(worth, evidence.model)
    orders = _orders(scores, worth, judged)
    corrected_ps = holm([order.p for order in orders.values() if order is not None])
    ps = dict(zip([name for name, order in orders.items() if order is not None], corrected_ps, strict=True))
    beside = {
        f"over all {len(worth)}": _orders(scores, worth, list(worth)),
        "with the gain as a share of the possible gain": _orders(scores, share, judged),
    }
    sentences += [
        _order_sentence(
            name,
            order,
            len(judged),
            ps.get(name, 1.0),
            {how: other[name] for how, other in beside.items() if other != orders},
        )
        for name, order in orders.items()
    ]
    within = _within_sets(evidence)
    sentences += [_seen_sentence(worth, judged), _within_sentence(within)]
    answer.append(_target_sentence(orders))
    short = [sentence for sentence in answer if sentence is not None]
    figures = {
        "worth of names, zero-shot": worth,
        "worth as a share of what numbers leave to gain": share,
        "scores": scores,
        "label sets that decide": judged,
        "rank correlation": _as_figures(orders),
        **{f"rank correlation {how}": _as_figures(other) for how, other in beside.items()},
        "rank correlation of a name's score and its recall": _as_figures(within),
    }
    pictures = [
        _curves(evidence, curves),
        dot_plot(evidence, [Panel(ZERO, datasets=tuple(curves))], list(CHANGES), AS_THEY_ARE),
        interval_plot(orders, f"Scores of names and their gain over numbers, {len(judged)} label sets", WANTED_ORDER),
    ]
    everything = [*short, *filter(None, sentences), HOW_TESTED, *few_seeds(evidence)]
    return Conclusion(everything, figures, [each for each in pictures if each], short)


def _worth(evidence: Evidence, datasets: Sequence[str]) -> str | None:
    """Up to which regime names are clearly better than numbers."""
    rows = _by_regime(evidence, AS_THEY_ARE, datasets)
    if not rows:
        return None
    gains = ", ".join(f"{points(row.result.difference)} points {regime}" for regime, row in rows)
    last = [regime for regime, row in rows if row.verdict > 0]
    if not last:
        return f"Names instead of numbers change accuracy by {gains}: none of these gains is clear."
    if len(last) == len(rows):
        return f"Names instead of numbers change accuracy by {gains}: names help in every regime."
    return f"Names instead of numbers change accuracy by {gains}: the gain is clear up to {last[-1]}, and not beyond."


def _by_regime(evidence: Evidence, names: str, datasets: Sequence[str]) -> list[tuple[str, Tested]]:
    """Names against numbers in each regime."""
    rows = [
        (regime, row)
        for regime in evidence.regimes
        for row in paired_tests(evidence, NUMBERED, [names], regime, datasets)
    ]
    tested = corrected([row for _, row in rows])
    return [(regime, row) for (regime, _), row in zip(rows, tested, strict=True)]


def _shuffled(evidence: Evidence, datasets: Sequence[str]) -> str | None:
    """Whether wrong names are worse than numbers, and whether training overcomes them."""
    parts = []
    for regime, row in _by_regime(evidence, "shuffled", datasets):
        words = {1: "better than", -1: "worse than", 0: "not clearly different from"}[row.verdict]
        parts.append(f"{words} numbers {regime} ({points(row.result.difference)})")
    return f"Names at the wrong labels are {', '.join(parts)}." if parts else None


def _worth_by_dataset(evidence: Evidence, *, of_room: bool = False) -> dict[str, float]:
    """The gain in accuracy of names over numbers zero-shot, per dataset; or its share of the possible gain."""
    worth = {}
    for dataset in evidence.datasets:
        scores = [evidence.comparison.accuracy(name, ZERO, [dataset]) for name in (AS_THEY_ARE, NUMBERED)]
        if scores[0] is not None and scores[1] is not None:
            worth[dataset] = (scores[0] - scores[1]) / (max(1 - scores[1], 1e-9) if of_room else 1.0)
    return worth


def _orders(
    scores: Mapping[str, Mapping[str, float]], worth: Mapping[str, float], datasets: Sequence[str]
) -> dict[str, RankCorrelation | None]:
    """The rank correlation of each score with the gain of names over some datasets; None if these are too few."""
    if len(datasets) < FEWEST:
        return dict.fromkeys(scores)
    values = [worth[data] for data in datasets]
    return {name: rank_correlation([own[data] for data in datasets], values) for name, own in scores.items()}


def _as_figures(orders: Mapping[str, RankCorrelation | None]) -> dict[str, Any]:
    return {name: None if order is None else asdict(order) for name, order in orders.items()}


def _within_sets(evidence: Evidence) -> dict[str, RankCorrelation]:
    """For each set, the rank correlation of the scores of its names with the zero-shot recall of their labels."""
    orders = {}
    for cell in evidence.comparison.cells:
        if (cell.regime, cell.method) != (ZERO, AS_THEY_ARE) or cell.dataset in orders:
            continue
        rows: dict[str, list[bool]] = {}
        for true, right in zip(cell.answers.true, cell.answers.right.tolist(), strict=True):
            rows.setdefault(str(cell.answers.labels[true]), []).append(right)
        recalls = {label: sum(own) / len(own) for label, own in rows.items() if len(own) >= LEAST_ROWS}
        if len(recalls) >= LEAST_LABELS:
            data = evidence.datasets[cell.dataset]
            scores = dict(zip(map(str, data.labels), name_scores(data, evidence.model), strict=True))
            orders[cell.dataset] = rank_correlation([scores[label] for label in recalls], list(recalls.values()))
    return orders


def _within_sentence(orders: Mapping[str, RankCorrelation]) -> str | None:
    """What the score of a single name predicts."""
    if not orders:
        return None
    values = ", ".join(f"{data} {order.value:+.2f} (p {p_text(order.p)})" for data, order in orders.items())
    return (
        "Within a label set, the score of a single name (computed from names alone) and its zero-shot recall have a "
        f"rank correlation of: {values}."
    )


def _seen_sentence(worth: Mapping[str, float], judged: Sequence[str]) -> str | None:
    """Which label sets do not count."""
    left = [data for data in worth if data not in judged]
    if not left:
        return None
    return (
        f"The default encoder was trained on train rows of {', '.join(left)}, so these count only where the sentence "
        "says that all label sets do."
    )


def _order_sentence(
    name: str,
    order: RankCorrelation | None,
    sets: int,
    p: float,
    beside: Mapping[str, RankCorrelation | None],
) -> str:
    """Whether a score predicts the gain of names, by a p-value that is corrected for all scores."""
    begin = f"The score {name!r}, computed before any training,"
    if order is None:
        return f"{begin} was tested on {sets} label sets: too few to see whether it predicts the gain of names."
    text = (
        f"rank correlation {order.value:+.2f} (95 % interval {order.low:+.2f} to {order.high:+.2f}, "
        f"p {p_text(p)}) over {order.pairs} label sets"
    )
    text += "".join(f"; {other.value:+.2f} {how}" for how, other in beside.items() if other is not None)
    if order.low <= 0 <= order.high or p >= 0.05:
        return f"{begin} does not clearly predict the zero-shot gain of names: {text}."
    way = "predicts" if order.value > 0 else "predicts the opposite of"
    return f"{begin} {way} the zero-shot gain of names: {text}."


def _target_sentence(orders: Mapping[str, RankCorrelation | None]) -> str | None:
    """Which scores reach the target."""
    known = {name: order.value for name, order in orders.items() if order is not None}
    if not known:
        return None
    good = [name for name, value in known.items() if value >= WANTED_ORDER]
    reached = ", ".join(repr(name) for name in good) or "none"
    return f"The target for a score is a rank correlation of at least {WANTED_ORDER}. Reached by: {reached}."


def _curves(evidence: Evidence, datasets: Sequence[str]) -> str:
    lines = {
        name: {
            REGIMES.get(regime, float(place)): score
            for place, regime in enumerate(evidence.regimes)
            if (score := evidence.comparison.accuracy(name, regime, datasets)) is not None
        }
        for name in CHANGES
    }
    ticks = {REGIMES.get(regime, float(place)): regime for place, regime in enumerate(evidence.regimes)}
    return line_plot([Lines(f"Names on {', '.join(datasets)}", lines)], "training rows per label", ticks=ticks)


NAMES = Study(
    name="names",
    question="How much does a good label name help, and can a score predict it before training?",
    parts=(
        Part({"trec50": "question"}, name_variants(list(CHANGES)), (ZERO,)),
        Part({"trec50": "question"}, name_variants(list(CHANGES), epoch_factor=HALF), ("5 shots",), quick=SOME[:1]),
        Part({"trec50": "question"}, name_variants(SOME, epoch_factor=HALF), ("1 shot", "20 shots"), quick=SOME[:1]),
        Part({"trec50": "question"}, name_variants(SOME, training={"epochs": 1}), ("full",), quick=SOME[:1]),
        Part(SCORED, name_variants([AS_THEY_ARE, NUMBERED]), (ZERO,)),
    ),
    reference=AS_THEY_ARE,
    conclude=conclude,
    cut=(
        "The curves are of one dataset, trec50: its 50 names are short and can be made better and worse.",
        "Training takes half of the usual epochs, and one epoch on all data. With 1 and 20 shots and on all data, only "
        "four kinds of names are tried: as they are, without vowels, numbered and shuffled.",
        "Synonyms and glosses are a table that was written by hand from the names alone. Random words come from a list "
        "of everyday things. Abbreviations are the first four letters of each word.",
        "Scores are compared with the zero-shot gain of names, not with the gain in few-shot training. The formula of "
        "informativeness was chosen on dev rows of the same label sets and is tested here on their test rows, so its "
        "correlation may be somewhat too high.",
        "Evaluated on at most 1,000 test rows.",
    ),
    minutes=50,
)
