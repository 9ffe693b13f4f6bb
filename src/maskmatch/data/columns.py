"""Which column of a table holds which field of the task, and which one the label."""

from __future__ import annotations

import difflib
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from maskmatch.data.spans import lies_in_text, span_column
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

logger = logging.getLogger("maskmatch")

_LABEL = "label"


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Names in lower case that mean one thing wherever they are met.
_ALIASES: dict[str, frozenset[str]] = {
    "text": _names(
        "sentence utterance utt query question content body comment message review tweet post document "
        "passage article texts input input_text"
    ),
    "text_b": _names("sentence2 sentence_2 sentence_b hypothesis question2 text2 text_2 textb target topic claim"),
    "head": _names("subject subj head_entity entity1 entity_1 e1"),
    "tail": _names("object obj tail_entity entity2 entity_2 e2"),
    "entity": _names("mention entity_mention word target_word target_mention"),
    _LABEL: _names(
        "labels gold_label label_name intent category class topic sentiment emotion relation relation_type "
        "stance type entity_type is_duplicate"
    ),
}
# The first half of a pair is "the text" only where the second half is used as well.
_FIRST_OF_PAIR = _names("sentence1 sentence_1 sentence_a premise question1 text1 text_1 texta text_a")
# Columns that number or sort the rows, or that are another field by their name, are never taken for want of
# a better one.
_BOOKKEEPING = _names("id ids idx index guid uid uuid row row_id split fold level_0 __index_level_0__") | {"unnamed: 0"}
_OTHER_FIELDS = _names("text_b head tail entity")


@dataclass(frozen=True)
class Columns:
    """The columns of a table that are used.

    Attributes:
        fields: The column of each task field; the span of a field, where the table has one, as "FIELD_span".
        label: The column of the labels, or None if none is wanted.
    """

    fields: dict[str, str]
    label: str | None


def guess_columns(
    columns: Sequence[str],
    fields: Sequence[str],
    *,
    named: Mapping[str, str] | None = None,
    label: str | None = None,
    want_label: bool = True,
) -> Columns:
    """Find the columns of the task's fields and of the label, where it is obvious.

    A field takes the column the user named, or the one of its own name, or the one with a well known other
    name (a "sentence" is a text, an "intent" is a label), or, if a single field has no column and a single
    column has no use, that one. Where two columns come into question, none is taken.

    Examples:
        >>> guess_columns(["Sentence", "intent"], ["text"])
        Columns(fields={'text': 'Sentence'}, label='intent')

    Args:
        columns: The columns there are.
        fields: The fields of the task, such as "text" and "text_b".
        named: The column of a field, as the user said.
        label: The column of the label, as the user said.
        want_label: Whether a label column is needed. If not, an obvious one is still not taken for a text.

    Raises:
        MaskMatchError: If a named column does not exist, or the column of a field is not obvious.
    """
    wanted = [*fields, _LABEL]
    search = _Search(list(columns), pair="text_b" in fields)
    search.take_named(named or {}, label, fields, label_needed=want_label)
    search.take_own_names(wanted)
    for name in fields:
        search.take_alias(name)
    if want_label:
        search.take_alias(_LABEL)
    search.take_spans(fields)
    search.take_left_over(wanted if want_label else fields)
    if want_label:
        _tell_unread(search.unused(), fields)
    label_column = search.found.pop(_LABEL, None)
    return Columns(search.found, label_column if want_label else None)


@dataclass
class _Search:
    """The columns found so far; a column is used once."""

    columns: list[str]
    pair: bool
    found: dict[str, str] = field(default_factory=dict)

    def unused(self) -> list[str]:
        taken = set(self.found.values())
        return [column for column in self.columns if column not in taken]

    def take_named(
        self, named: Mapping[str, str], label: str | None, fields: Sequence[str], *, label_needed: bool
    ) -> None:
        """Take the columns the user named, if they exist and each is named once."""
        allowed = [*fields, *(span_column(name) for name in fields)]
        for name, column in named.items():
            if name not in allowed:
                raise MaskMatchError(
                    f"The task has no field {name!r} to take from column {column!r}; its fields are "
                    f"{', '.join(fields)}."
                )
            self._take(name, column)
        # Where no label is needed, a file to predict may well lack the column that the training data had.
        if label is not None and (label_needed or label in self.columns):
            self._take(_LABEL, label)

    def _take(self, name: str, column: str) -> None:
        if column not in self.columns:
            raise MaskMatchError(_no_such_column(column, self.columns))
        for other, taken in self.found.items():
            if taken == column:
                raise MaskMatchError(
                    f"The column {column!r} is named for {other} and for {name}; name one column for each."
                )
        self.found[name] = column

    def take_own_names(self, wanted: Sequence[str]) -> None:
        """Take the columns named like their field: as it is written, else in other letter case."""
        for name in wanted:
            if name not in self.found and name in self.unused():
                self.found[name] = name
        for name in wanted:
            if name not in self.found:
                same = [column for column in self.unused() if column.strip().casefold() == name.casefold()]
                if len(same) == 1:
                    self.found[name] = same[0]

    def take_alias(self, name: str) -> None:
        """Take the one column that goes by a well known other name of the field."""
        if name in self.found:
            return
        aliases = _ALIASES.get(name, frozenset()) | {name.casefold()}
        if name == "text" and self.pair:
            aliases |= _FIRST_OF_PAIR
        matches = [column for column in self.unused() if column.strip().casefold() in aliases]
        if len(matches) == 1:
            self.found[name] = matches[0]
        elif matches:
            raise MaskMatchError(_not_obvious(name, self.columns, matches))

    def take_spans(self, fields: Sequence[str]) -> None:
        """Take the optional columns that say where in the text a field stands."""
        for name in map(span_column, fields):
            if name not in self.found:
                same = [column for column in self.unused() if column.strip().casefold() == name.casefold()]
                if same:
                    self.found[name] = name if name in same else same[0]

    def take_left_over(self, needed: Sequence[str]) -> None:
        """Take the only column without a use for the only field without a column; guess no more."""
        missing = [name for name in needed if not self._has_column(name)]
        if not missing:
            return
        unused = [column for column in self.unused() if _may_hold_content(column)]
        # Where no label is needed, columns that look like one are not texts.
        content = [column for column in unused if column.strip().casefold() not in _ALIASES[_LABEL]]
        candidates = unused if missing == [_LABEL] else content
        if not candidates and len(self.columns) == 1:
            candidates = self.unused()
        if len(missing) > 1 or len(candidates) != 1:
            raise MaskMatchError(_not_obvious(missing[0], self.columns, []))
        self.found[missing[0]] = candidates[0]

    def _has_column(self, name: str) -> bool:
        """Tell whether a field is found; one that is marked in the text need not be written out as well."""
        return name in self.found or (lies_in_text(name) and span_column(name) in self.found)


def _tell_unread(unused: Sequence[str], fields: Sequence[str]) -> None:
    """Warn of a column that is a field by its name, but of another task: who gives it may expect it to be read."""
    unread = [column for column in unused if column.strip().casefold() in _OTHER_FIELDS - set(fields)]
    if unread:
        logger.warning(
            "Not read: %s. The classifier's prompt names %s alone; `maskmatch tasks` lists tasks that read more.",
            ", ".join(map(repr, unread)),
            " and ".join(fields),
        )


def _may_hold_content(column: str) -> bool:
    folded = column.strip().casefold()
    return folded not in _BOOKKEEPING | _OTHER_FIELDS and not folded.endswith("_span")


def _not_obvious(name: str, columns: Sequence[str], matches: Sequence[str]) -> str:
    options = {
        "text": "--text-field COLUMN (text_field= in Python)",
        _LABEL: "--label-field COLUMN (label_field= in Python)",
    }
    option = options.get(name, f"--field {name}=COLUMN (named={{{name!r}: …}} in Python)")
    choice = f"{' and '.join(map(repr, matches))} come into question" if matches else "none is obvious"
    return (
        f"Cannot tell which column holds the {name}: {choice} among the columns {_listed(columns)}; "
        f"name it with {option}."
    )


def _no_such_column(column: str, columns: Sequence[str]) -> str:
    by_folded = {name.casefold(): name for name in columns}
    near = difflib.get_close_matches(column.casefold(), by_folded, n=1)
    hint = f" (did you mean {by_folded[near[0]]!r}?)" if near else ""
    return f"There is no column {column!r}{hint}; the columns are {_listed(columns)}."


def _listed(columns: Sequence[str]) -> str:
    """List the columns, the first twenty of them if a table has many."""
    shown = ", ".join(map(repr, columns[:20]))
    return shown if len(columns) <= 20 else f"{shown} and {len(columns) - 20} more"
