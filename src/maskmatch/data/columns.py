"""Find the columns of a table that hold the task's fields and the label."""

from __future__ import annotations

import difflib
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from maskmatch.data.spans import occurs_in_text, span_column
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

logger = logging.getLogger("maskmatch")

_LABEL = "label"
_MAX_LISTED = 20


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Common names of each field's column, in lower case.
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
# The first sentence of a pair is "the text" only if the task also uses the second one.
_FIRST_OF_PAIR = _names("sentence1 sentence_1 sentence_a premise question1 text1 text_1 texta text_a")
# Row ids, splits, and columns named after another field are never chosen as the last column left.
_BOOKKEEPING = _names("id ids idx index guid uid uuid row row_id split fold level_0 __index_level_0__") | {"unnamed: 0"}
_OTHER_FIELDS = _names("text_b head tail entity")


@dataclass(frozen=True)
class Columns:
    """The columns of a table that are read.

    Attributes:
        fields: The column of each task field. The column of a field's span, if there is one, is under "FIELD_span".
        label: The label column, or None if no label is wanted.
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
    """Find the columns of the task's fields and of the label, if they are obvious.

    In this order, a field is read from the column that the user named, from the column with the field's own name,
    from a column with a common alias ("sentence" for the text, "intent" for the label), or, if exactly one field and
    one column are left, from that column. If two columns match an alias, the choice is ambiguous and raises.

    Examples:
        >>> guess_columns(["Sentence", "intent"], ["text"])
        Columns(fields={'text': 'Sentence'}, label='intent')

    Args:
        columns: The columns of the table.
        fields: The fields of the task, such as "text" and "text_b".
        named: The columns that the user named, by field.
        label: The label column, if the user named it.
        want_label: Whether a label column is required. If not, an obvious label column is still not read as a text.

    Raises:
        MaskMatchError: If a named column does not exist, or the column of a field is not obvious.
    """
    wanted = [*fields, _LABEL]
    search = _ColumnSearch(list(columns), pair="text_b" in fields)
    search.use_named_columns(named or {}, label, fields, label_required=want_label)
    search.match_names(wanted)
    for name in fields:
        search.match_alias(name)
    if want_label:
        search.match_alias(_LABEL)
    search.match_spans(fields)
    search.use_last_column(wanted if want_label else fields)
    if want_label:
        _warn_ignored(search.unused(), fields)
    search.warn_about_guesses(want_label=want_label)
    label_column = search.found.pop(_LABEL, None)
    return Columns(search.found, label_column if want_label else None)


@dataclass
class _ColumnSearch:
    """The columns found so far. Each column is used once."""

    columns: list[str]
    pair: bool
    found: dict[str, str] = field(default_factory=dict)
    by_alias: list[str] = field(default_factory=list)
    last: str | None = None

    def unused(self) -> list[str]:
        used = set(self.found.values())
        return [column for column in self.columns if column not in used]

    def use_named_columns(
        self, named: Mapping[str, str], label: str | None, fields: Sequence[str], *, label_required: bool
    ) -> None:
        """Use the columns that the user named; raise if one does not exist or is named twice."""
        allowed = [*fields, *(span_column(name) for name in fields)]
        for name, column in named.items():
            if name not in allowed:
                raise MaskMatchError(
                    f"The task has no field {name!r} to read from column {column!r}; its fields are "
                    f"{', '.join(fields)}."
                )
            self._use(name, column)
        # If no label is required, the file to predict may lack the label column of the training data.
        if label is not None and (label_required or label in self.columns):
            self._use(_LABEL, label)

    def _use(self, name: str, column: str) -> None:
        if column not in self.columns:
            others = {alias for other, aliases in _ALIASES.items() if other != name for alias in (other, *aliases)}
            likely = [each for each in self.columns if _fold(each) not in others - _ALIASES.get(name, frozenset())]
            raise MaskMatchError(_no_such_column(column, self.columns, likely))
        for other, used in self.found.items():
            if used == column:
                raise MaskMatchError(
                    f"The column {column!r} is named for {other} and for {name}; name a different column for each."
                )
        self.found[name] = column

    def match_names(self, wanted: Sequence[str]) -> None:
        """Match columns named like their field: first exactly, then ignoring case."""
        for name in wanted:
            if name not in self.found and name in self.unused():
                self.found[name] = name
        for name in wanted:
            if name not in self.found:
                same = [column for column in self.unused() if _fold(column) == name.casefold()]
                if len(same) == 1:
                    self.found[name] = same[0]

    def match_alias(self, name: str) -> None:
        """Match the column with a common alias of the field; raise if several columns match."""
        if name in self.found:
            return
        aliases = _ALIASES.get(name, frozenset()) | {name.casefold()}
        if name == "text" and self.pair:
            aliases |= _FIRST_OF_PAIR
        matches = [column for column in self.unused() if _fold(column) in aliases]
        if len(matches) == 1:
            self.found[name] = matches[0]
            self.by_alias.append(name)
        elif matches:
            raise MaskMatchError(_not_obvious(name, self.columns, matches))

    def match_spans(self, fields: Sequence[str]) -> None:
        """Match the optional columns with the character spans of fields."""
        for name in map(span_column, fields):
            if name not in self.found:
                same = [column for column in self.unused() if _fold(column) == name.casefold()]
                if same:
                    self.found[name] = name if name in same else same[0]

    def use_last_column(self, required: Sequence[str]) -> None:
        """If one field and one column are left, use the column for the field; raise if a field stays without one."""
        missing = [name for name in required if not self._has_column(name)]
        if not missing:
            return
        unused = [column for column in self.unused() if _may_hold_content(column)]
        # If no label is required, columns that look like labels are not texts.
        content = [column for column in unused if _fold(column) not in _ALIASES[_LABEL]]
        candidates = unused if missing == [_LABEL] else content
        if not candidates and len(self.columns) == 1:
            candidates = self.unused()
        if len(missing) > 1 or len(candidates) != 1:
            raise MaskMatchError(_not_obvious(missing[0], self.columns, []))
        self.found[missing[0]] = candidates[0]
        self.last = missing[0]

    def warn_about_guesses(self, *, want_label: bool) -> None:
        """Warn about a column that was chosen though another one might have been meant."""
        others = [column for column in self.unused() if _may_hold_content(column)]
        if not want_label:  # those that look like labels are not texts
            others = [column for column in others if _fold(column) not in _ALIASES[_LABEL]]
        for name in self.by_alias:
            if name != _LABEL and others:
                logger.warning(
                    "The column %r is read as the %s, and %s not read; name another one with %s.",
                    self.found[name],
                    name,
                    f"{_listed(others)} {'is' if len(others) == 1 else 'are'}",
                    _option(name),
                )
        if self.last == _LABEL and len(self.columns) > len(self.found):
            logger.warning(
                "The column %r is read as the label, because no other column is left; name another one with %s.",
                self.found[_LABEL],
                _option(_LABEL),
            )

    def _has_column(self, name: str) -> bool:
        """Whether a field was found. A field with a span in the text needs no column of its own."""
        return name in self.found or (occurs_in_text(name) and span_column(name) in self.found)


def _fold(column: str) -> str:
    return column.strip().casefold()


def _warn_ignored(unused: Sequence[str], fields: Sequence[str]) -> None:
    """Warn about a column named after a field of another task: the user may expect it to be read."""
    ignored = [column for column in unused if _fold(column) in _OTHER_FIELDS - set(fields)]
    if ignored:
        logger.warning(
            "Ignored columns: %s. The classifier's prompt uses only %s; `maskmatch tasks` lists tasks with more "
            "fields.",
            ", ".join(map(repr, ignored)),
            " and ".join(fields),
        )


def _may_hold_content(column: str) -> bool:
    folded = _fold(column)
    return folded not in _BOOKKEEPING | _OTHER_FIELDS and not folded.endswith("_span")


def _not_obvious(name: str, columns: Sequence[str], matches: Sequence[str]) -> str:
    choice = f"{' and '.join(map(repr, matches))} match" if matches else "none is obvious"
    return (
        f"Cannot tell which column holds the {name}: {choice} among the columns {_listed(columns)}; "
        f"name it with {_option(name)}."
    )


def _option(name: str) -> str:
    """How a user names the column of a field."""
    options = {
        "text": "--text-field COLUMN (text_field= in Python)",
        _LABEL: "--label-field COLUMN (label_field= in Python)",
    }
    return options.get(name, f"--field {name}=COLUMN (named={{{name!r}: …}} in Python)")


def _no_such_column(column: str, columns: Sequence[str], likely: Sequence[str]) -> str:
    by_folded = {name.casefold(): name for name in likely}
    near = difflib.get_close_matches(column.casefold(), by_folded, n=1)
    hint = f" (did you mean {by_folded[near[0]]!r}?)" if near else ""
    return f"There is no column {column!r}{hint}; the columns are {_listed(columns)}."


def _listed(columns: Sequence[str]) -> str:
    """List the column names; of a table with many columns, the first ones."""
    shown = ", ".join(map(repr, columns[:_MAX_LISTED]))
    return shown if len(columns) <= _MAX_LISTED else f"{shown} and {len(columns) - _MAX_LISTED} more"
