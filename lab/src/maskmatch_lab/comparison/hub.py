"""Public hub datasets for the paper's kinds of task, converted to plain rows.

All of them are loaded by one function, :func:`load_split`; nothing else here uses the network.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from maskmatch.config.tasks import find_task
from maskmatch.data import draw_fraction
from maskmatch.errors import MaskMatchError
from maskmatch_lab.comparison.splits import Rows, Splits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Row = Mapping[str, Any]
HELD_OUT = 0.1
"""The fraction of train that becomes dev if a dataset has no other labelled split; always the same rows."""


@dataclass(frozen=True)
class HubDataset:
    """A dataset on the hub, and how its columns become the fields of a task.

    Attributes:
        name: Its name in tables.
        task: The task preset.
        hub: Its hub name.
        columns: The column of each field of the task.
        label: The column of the label.
        parts: The configs to read, each with fields that all its rows share.
        splits: The dataset's own name of each of our splits. If the test rows of a benchmark have no labels, its
            validation rows are test; without dev, a tenth of train is held out.
        names: Our names of the labels by the dataset's own names. Empty: the dataset's own names.
        convert: Converts a row with another structure to rows with ``text`` and so on; None: not needed.
    """

    name: str
    task: str
    hub: str
    columns: Mapping[str, str]
    label: str = "label"
    parts: Sequence[tuple[str | None, Mapping[str, str]]] = ((None, {}),)
    splits: Mapping[str, str] = field(default_factory=lambda: {"train": "train", "test": "test"})
    names: Mapping[str, str] = field(default_factory=dict)
    convert: Callable[[Row], Iterator[Row]] | None = None


def load_split(hub: str, config: str | None, split: str) -> Any:
    """A split of a hub dataset. Tests replace this function."""
    from datasets import load_dataset

    return load_dataset(hub, config, split=split)


def load_hub_dataset(dataset: HubDataset) -> Splits:
    """All splits of a dataset, with labels as names; rows without a label are left out."""
    rows = {split: _rows(dataset, theirs) for split, theirs in dataset.splits.items()}
    if "dev" not in rows:
        held_out = set(draw_fraction(rows["train"].labels, HELD_OUT, seed=0))
        whole = rows["train"]
        rows["dev"] = whole.select(sorted(held_out))
        rows["train"] = whole.select([place for place in range(len(whole)) if place not in held_out])
    return Splits(dataset.name, find_task(dataset.task), rows["train"], rows["test"], rows["dev"])


def paper_datasets(names: Sequence[str] = ()) -> list[HubDataset]:
    """The datasets of these names, or all."""
    unknown = [name for name in names if name not in PAPER_DATASETS]
    if unknown:
        raise MaskMatchError(f"There is no dataset {unknown[0]!r} here; choose from {', '.join(PAPER_DATASETS)}.")
    return [PAPER_DATASETS[name] for name in names or PAPER_DATASETS]


def _rows(dataset: HubDataset, split: str) -> Rows:
    texts: list[Any] = []
    labels: list[str] = []
    numbers: list[int] = []
    fields = find_task(dataset.task).fields
    number = -1
    for config, shared in dataset.parts:
        table = _load(dataset, config, split)
        class_names = _class_names(table, dataset.label)
        for row in table:
            number += 1
            for each in dataset.convert(row) if dataset.convert else (row,):
                label = _label(each[dataset.label], class_names)
                if label is not None:
                    cells = {name: each[column] for name, column in dataset.columns.items() if column in each}
                    cells.update(shared)
                    texts.append(cells["text"] if fields == ("text",) else cells)
                    labels.append(dataset.names.get(label, label))
                    numbers.append(number)
    if not texts:
        raise MaskMatchError(f"The split {split!r} of {dataset.hub} has no row with a label; another version may.")
    return Rows(texts, labels, numbers)


def _load(dataset: HubDataset, config: str | None, split: str) -> Iterable[Row]:
    named = f"{dataset.hub}{f' ({config})' if config else ''}"
    try:
        table: Any = load_split(dataset.hub, config, split)
    except ImportError as error:
        raise MaskMatchError('Datasets of the hub need one more library: pip install "maskmatch[datasets]".') from error
    except Exception as error:  # the library raises many kinds if the network, name or split is missing
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise MaskMatchError(
            f"The dataset {named}, split {split}, could not be loaded: {reason} (the hub must be reachable, or the "
            "dataset must be in the cache of the datasets library)."
        ) from error
    wanted = {dataset.label, *dataset.columns.values()} if dataset.convert is None else set()
    missing = sorted(wanted - set(getattr(table, "column_names", None) or wanted))
    if missing:
        raise MaskMatchError(
            f"The dataset {named} has no column {missing[0]!r}; it has {', '.join(table.column_names)}."
        )
    return table  # type: ignore[no-any-return]


def _class_names(table: Any, label: str) -> Sequence[str] | None:
    """The class names of a column of label numbers, or of lists of them."""
    feature = (getattr(table, "features", None) or {}).get(label)
    return getattr(getattr(feature, "feature", feature), "names", None)


def _label(value: Any, class_names: Sequence[str] | None) -> str | None:
    if value is None or value == -1:  # -1: the label is secret, or annotators disagreed
        return None
    return str(class_names[value] if class_names and isinstance(value, int) else value)


_TAGGED = re.compile(r"^(.*)<(e[12])>(.*)</\2>(.*)<(e[12])>(.*)</\5>(.*)$", flags=re.DOTALL)


def relation_rows(row: Row) -> Iterator[Row]:
    """A sentence with ``<e1>`` and ``<e2>`` around two entities, as text, head and tail with their spans."""
    match = _TAGGED.match(str(row["sentence"]).strip().strip('"'))
    if match is None:
        return
    before, first, one, between, _, two, after = match.groups()
    start = len(before) + len(one) + len(between)
    spans = [(len(before), len(before) + len(one)), (start, start + len(two))]
    head, tail = (0, 1) if first == "e1" else (1, 0)
    words = (one, two)
    yield {
        "text": before + one + between + two + after,
        "head": words[head],
        "head_span": list(spans[head]),
        "tail": words[tail],
        "tail_span": list(spans[tail]),
        "relation": row["relation"],
    }


def entity_rows(row: Row) -> Iterator[Row]:
    """A row per entity mention in a sentence with tagged words: neighbours with the same tag are one mention."""
    tokens = [str(token) for token in row["tokens"]]
    text, place = " ".join(tokens), 0
    for tag, group in groupby(zip(row["fine_ner_tags"], tokens, strict=True), key=lambda pair: pair[0]):
        words = " ".join(token for _, token in group)
        if tag not in (0, "O"):
            yield {"text": text, "entity": words, "entity_span": [place, place + len(words)], "fine_ner_tags": tag}
        place += len(words) + 1


PAIR = {"text": "sentence1", "text_b": "sentence2"}
TARGETS = {
    "abortion": "legalization of abortion",
    "atheism": "atheism",
    "climate": "climate change is a real concern",
    "feminist": "feminist movement",
    "hillary": "Hillary Clinton",
}
RELATIONS = {
    "Cause-Effect": ("causes", "is caused by"),
    "Component-Whole": ("is a component of", "has as a component"),
    "Content-Container": ("is contained in", "contains"),
    "Entity-Destination": ("is moved to", "is the destination of"),
    "Entity-Origin": ("originates from", "is the origin of"),
    "Instrument-Agency": ("is used by", "uses"),
    "Member-Collection": ("is a member of", "has as a member"),
    "Message-Topic": ("is a message about", "is the topic of"),
    "Product-Producer": ("is produced by", "produces"),
}
"""The relations of SemEval-2010 task 8 in words, from head to tail and from tail to head."""

VALIDATION_IS_TEST = {"train": "train", "test": "validation"}
ALL_SPLITS = {"train": "train", "dev": "validation", "test": "test"}

PAPER_DATASETS = {
    dataset.name: dataset
    for dataset in (
        HubDataset("agnews", "topic", "fancyzhx/ag_news", {"text": "text"}),
        HubDataset("dbpedia", "topic", "fancyzhx/dbpedia_14", {"text": "content"}),
        HubDataset(
            "sst2",
            "sentiment",
            "nyu-mll/glue",
            {"text": "sentence"},
            parts=(("sst2", {}),),
            splits=VALIDATION_IS_TEST,
        ),
        HubDataset("sst5", "sentiment", "SetFit/sst5", {"text": "text"}, label="label_text", splits=ALL_SPLITS),
        HubDataset("rte", "nli", "nyu-mll/glue", PAIR, parts=(("rte", {}),), splits=VALIDATION_IS_TEST),
        HubDataset(
            "mnli",
            "nli",
            "nyu-mll/glue",
            {"text": "premise", "text_b": "hypothesis"},
            parts=(("mnli", {}),),
            splits={"train": "train", "test": "validation_matched"},
        ),
        HubDataset("mrpc", "paraphrase", "nyu-mll/glue", PAIR, parts=(("mrpc", {}),), splits=ALL_SPLITS),
        HubDataset(
            "qqp",
            "paraphrase",
            "nyu-mll/glue",
            {"text": "question1", "text_b": "question2"},
            parts=(("qqp", {}),),
            splits=VALIDATION_IS_TEST,
        ),
        HubDataset(
            "wic",
            "word-in-context",
            "aps/super_glue",
            {**PAIR, "entity": "word"},
            parts=(("wic", {}),),
            splits=VALIDATION_IS_TEST,
            names={"False": "different meaning", "True": "same meaning"},
        ),
        HubDataset(
            "semeval2010",
            "relation",
            "SemEvalWorkshop/sem_eval_2010_task_8",
            {name: name for name in ("text", "head", "head_span", "tail", "tail_span")},
            label="relation",
            names={
                "Other": "other",
                **{f"{name}(e1,e2)": words[0] for name, words in RELATIONS.items()},
                **{f"{name}(e2,e1)": words[1] for name, words in RELATIONS.items()},
            },
            convert=relation_rows,
        ),
        HubDataset(
            "fewnerd",
            "entity-typing",
            "DFKI-SLT/few-nerd",
            {name: name for name in ("text", "entity", "entity_span")},
            label="fine_ner_tags",
            parts=(("supervised", {}),),
            splits=ALL_SPLITS,
            convert=entity_rows,
        ),
        HubDataset(
            "stance",
            "stance",
            "cardiffnlp/tweet_eval",
            {"text": "text"},
            parts=tuple((f"stance_{name}", {"text_b": target}) for name, target in TARGETS.items()),
            splits=ALL_SPLITS,
        ),
    )
}
"""Two datasets for most of the paper's eight kinds of task, and one for each of the last three."""
