"""What a label name is worth: names made better and worse, and scores that should tell it before any training."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from maskmatch.comparison import Variant
from maskmatch.comparison.statistics import holm
from maskmatch.studies.informativeness import SCORES, name_scores
from maskmatch.studies.learned_from import unseen
from maskmatch.studies.names import AS_THEY_ARE, CHANGES, NUMBERED
from maskmatch.studies.pictures import dot_plot, line_plot, scatter_plot
from maskmatch.studies.rank_correlation import FEWEST, RankCorrelation, rank_correlation
from maskmatch.studies.study import Conclusion, Found, Part, Study
from maskmatch.studies.words import HOW_TESTED, Tested, against, compared, corrected, few_seeds, points, trials

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ZERO = "zero-shot"
REGIMES = {ZERO: 0.0, "1 shot": 1.0, "5 shots": 2.0, "20 shots": 3.0, "full data": 4.0}
"""Where a regime stands in the picture."""

HALF = 0.5
SOME = (AS_THEY_ARE, "vowels dropped", NUMBERED, "shuffled")
"""The names that are also tried with 1 and 20 shots and with all data."""

WANTED_ORDER = 0.7
HOW_CHANGED = (
    "Training was short: half of the usual epochs, and one epoch on all data. 'Expanded' names have a gloss beside "
    "them, and 'synonyms' are other wordings, both written by hand."
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
"""Label sets that the scores are tried on; those that the default encoder has learned from decide on nothing."""

LEAST_ROWS = 5
"""How many test rows a label has to have for its recall to be looked at."""

LEAST_LABELS = 10
"""How many such labels a set has to have for the order of their recalls to be looked at."""


def name_variants(names: Sequence[str], **options: Any) -> list[Variant]:
    """Names made better or worse, by what was done to them."""
    return [Variant(name, labels=CHANGES[name], **options) for name in names]


def conclude(found: Found) -> Conclusion:
    """What each change costs in each regime, how long names matter, and what the scores foretell."""
    changed = [cell.dataset for cell in found.comparison.cells if cell.method not in (AS_THEY_ARE, NUMBERED)]
    curves = list(dict.fromkeys(changed))
    others = [name for name in CHANGES if name != AS_THEY_ARE]
    about = f"Names on {', '.join(curves)}"
    sentences: list[str | None] = [
        against(found, AS_THEY_ARE, others, regime, datasets=curves, about=about) for regime in found.regimes
    ]
    answer = [_worth(found, curves), _shuffled(found, curves)]
    sentences += [HOW_CHANGED if curves else None]
    worth, share = _worth_by_dataset(found), _worth_by_dataset(found, of_room=True)
    scores = {
        name: {data: score(found.datasets[data], found.model) for data in worth} for name, score in SCORES.items()
    }
    judged = unseen(worth, found.model)
    orders = _orders(scores, worth, judged)
    raised = holm([order.p for order in orders.values() if order is not None])
    chances = dict(zip([name for name, order in orders.items() if order is not None], raised, strict=True))
    beside = {
        f"over all {len(worth)}": _orders(scores, worth, list(worth)),
        "with what names bring as a share of what numbers leave to gain": _orders(scores, share, judged),
    }
    sentences += [
        _order_sentence(
            name,
            order,
            len(judged),
            chances.get(name, 1.0),
            {told: other[name] for told, other in beside.items() if other != orders},
        )
        for name, order in orders.items()
    ]
    within = _within_sets(found)
    sentences += [_seen_sentence(worth, judged), _within_sentence(within)]
    answer.append(_bar_sentence(orders))
    short = [told for told in answer if told is not None]
    figures = {
        "worth of names, zero-shot": worth,
        "worth as a share of what numbers leave to gain": share,
        "scores": scores,
        "label sets that decide": judged,
        "rank correlation": _as_figures(orders),
        **{f"rank correlation {told}": _as_figures(other) for told, other in beside.items()},
        "rank correlation of a name's score and its recall": _as_figures(within),
    }
    pictures = [_curves(found, curves), *(scatter_plot(values, worth, name) for name, values in scores.items())]
    pictures.insert(1, dot_plot(found, ZERO, list(CHANGES), "Names, zero-shot", datasets=curves))
    said = [*short, *filter(None, sentences), HOW_TESTED, *few_seeds(found)]
    return Conclusion(said, figures, [each for each in pictures if each], short)


def _worth(found: Found, datasets: Sequence[str]) -> str | None:
    """From which regime on names make no difference that could be told."""
    rows = _by_regime(found, AS_THEY_ARE, datasets)
    if not rows:
        return None
    told = ", ".join(f"{points(row.result.difference)} points {regime}" for regime, row in rows)
    last = [regime for regime, row in rows if row.verdict > 0]
    if not last:
        return f"Names instead of numbers bring {told}: in none of these can a gain be told from chance."
    if len(last) == len(rows):
        return f"Names instead of numbers bring {told}: they help in all that was tried."
    return f"Names instead of numbers bring {told}: a gain can be told up to {last[-1]}, and not beyond."


def _by_regime(found: Found, names: str, datasets: Sequence[str]) -> list[tuple[str, Tested]]:
    """Names against numbers in each regime."""
    rows = [(regime, row) for regime in found.regimes for row in trials(found, NUMBERED, [names], regime, datasets)]
    tested = corrected([row for _, row in rows])
    return [(regime, row) for (regime, _), row in zip(rows, tested, strict=True)]


def _shuffled(found: Found, datasets: Sequence[str]) -> str | None:
    """Whether wrong names are worse than none, and whether training overcomes them."""
    told = []
    for regime, row in _by_regime(found, "shuffled", datasets):
        words = {1: "better than", -1: "worse than", 0: "not to be told apart from"}[row.verdict]
        told.append(f"{words} numbers {regime} ({points(row.result.difference)})")
    return f"Names at the wrong labels are {', '.join(told)}." if told else None


def _worth_by_dataset(found: Found, *, of_room: bool = False) -> dict[str, float]:
    """How much more accurate names are than numbers zero-shot, on each dataset; or which part of what was to gain."""
    worth = {}
    for dataset in found.datasets:
        scores = [found.comparison.accuracy(name, ZERO, [dataset]) for name in (AS_THEY_ARE, NUMBERED)]
        if scores[0] is not None and scores[1] is not None:
            worth[dataset] = (scores[0] - scores[1]) / (max(1 - scores[1], 1e-9) if of_room else 1.0)
    return worth


def _orders(
    scores: Mapping[str, Mapping[str, float]], worth: Mapping[str, float], datasets: Sequence[str]
) -> dict[str, RankCorrelation | None]:
    """The rank correlation of each score with the worth of names over some datasets; None if these are too few."""
    if len(datasets) < FEWEST:
        return dict.fromkeys(scores)
    values = [worth[data] for data in datasets]
    return {name: rank_correlation([own[data] for data in datasets], values) for name, own in scores.items()}


def _as_figures(orders: Mapping[str, RankCorrelation | None]) -> dict[str, Any]:
    return {name: None if order is None else asdict(order) for name, order in orders.items()}


def _within_sets(found: Found) -> dict[str, RankCorrelation]:
    """For each set, the rank correlation of the scores of its names and the recall that they bring zero-shot."""
    orders = {}
    for cell in found.comparison.cells:
        if (cell.regime, cell.method) != (ZERO, AS_THEY_ARE) or cell.dataset in orders:
            continue
        rows: dict[str, list[bool]] = {}
        for true, right in zip(cell.answers.true, cell.answers.right.tolist(), strict=True):
            rows.setdefault(str(cell.answers.labels[true]), []).append(right)
        recalls = {label: sum(own) / len(own) for label, own in rows.items() if len(own) >= LEAST_ROWS}
        if len(recalls) >= LEAST_LABELS:
            data = found.datasets[cell.dataset]
            scores = dict(zip(map(str, data.labels), name_scores(data, found.model), strict=True))
            orders[cell.dataset] = rank_correlation([scores[label] for label in recalls], list(recalls.values()))
    return orders


def _within_sentence(orders: Mapping[str, RankCorrelation]) -> str | None:
    """What the score of a single name foretells."""
    if not orders:
        return None
    told = ", ".join(f"{data} {order.value:+.2f} (p {compared(order.p)})" for data, order in orders.items())
    return (
        "The score of a single name, by names alone, and how many of its texts are found zero-shot, have within a "
        f"label set a rank correlation of: {told}."
    )


def _seen_sentence(worth: Mapping[str, float], judged: Sequence[str]) -> str | None:
    """Which label sets were left out of the judgement."""
    left = [data for data in worth if data not in judged]
    if not left:
        return None
    return (
        f"The default encoder has learned from train rows of {', '.join(left)}, so these count only where all label "
        "sets are told of."
    )


def _order_sentence(
    name: str,
    order: RankCorrelation | None,
    sets: int,
    p: float,
    beside: Mapping[str, RankCorrelation | None],
) -> str:
    """What a score foretells of the worth of names, by a chance that is corrected for all scores."""
    begin = f"The score {name!r}, computed before any training,"
    if order is None:
        return f"{begin} was tried on {sets} label sets: too few to tell whether it foretells what names bring."
    told = (
        f"rank correlation {order.value:+.2f} (95 % interval {order.low:+.2f} to {order.high:+.2f}, "
        f"p {compared(p)}) over {order.pairs} label sets"
    )
    told += "".join(f"; {other.value:+.2f} {how}" for how, other in beside.items() if other is not None)
    if order.low <= 0 <= order.high or p >= 0.05:
        return f"{begin} cannot be shown to foretell what names bring zero-shot: {told}."
    way = "foretells" if order.value > 0 else "goes against"
    return f"{begin} {way} what names bring zero-shot: {told}."


def _bar_sentence(orders: Mapping[str, RankCorrelation | None]) -> str | None:
    """Which scores are good enough to go by."""
    known = {name: order.value for name, order in orders.items() if order is not None}
    if not known:
        return None
    good = [name for name, value in known.items() if value >= WANTED_ORDER]
    told = f"reached by {', '.join(repr(name) for name in good)}" if good else "reached by none"
    return f"Wanted of a score is a rank correlation of at least {WANTED_ORDER}: {told}."


def _curves(found: Found, datasets: Sequence[str]) -> str:
    lines = {
        name: {
            REGIMES.get(regime, float(place)): score
            for place, regime in enumerate(found.regimes)
            if (score := found.comparison.accuracy(name, regime, datasets)) is not None
        }
        for name in CHANGES
    }
    ticks = {REGIMES.get(regime, float(place)): regime for place, regime in enumerate(found.regimes)}
    return line_plot(lines, f"Names on {', '.join(datasets)}", "training rows a label", ticks=ticks)


NAMES = Study(
    name="names",
    question="What is a label name worth, and can that be told before any training?",
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
        "Curves on one dataset, trec50: its 50 names are short, and there is room to make them better and worse.",
        "Trained for half of the usual epochs, and for one epoch on all data; with 1 and 20 shots and with all data "
        "only names as they are, without vowels, numbered and shuffled.",
        "Synonyms and glosses are a table that was written by hand from the names alone; random words come from a list "
        "of everyday things; abbreviations are the first four letters of each word.",
        "Scores are compared with what names bring zero-shot, which costs no training; not with few shots. How "
        "informativeness is computed was chosen by dev rows of the same label sets, and here it is tried on their test "
        "rows: that it suits these sets may be part of what is found, so take its correlation for somewhat too high.",
        "Measured on 1,000 test rows at most.",
    ),
    minutes=50,
)
