"""The result of a label diff, as text, JSON and a web page."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.evaluation.display import LabelNames, counted, shorten, shorten_name
from maskmatch.files import write_text

if TYPE_CHECKING:
    from collections.abc import Hashable

MOVES_IN_TEXT = 12
WIDTH = 110


@dataclass(frozen=True)
class ChangedText:
    """A text that gets another label.

    Attributes:
        row: Its row, counted from 0.
        text: The start of the text.
        before: The probability of the old label before.
        after: The probability of the new label after.
        true: Its true label, if the truth is known.
    """

    row: int
    text: str
    before: float
    after: float
    true: Hashable = None


@dataclass(frozen=True)
class Move:
    """The texts that go from one label to another.

    Attributes:
        before: The label before, as it is called now if it was renamed.
        after: The label after.
        count: How many texts.
        mended: How many of them become right; None if the truth is not known.
        broken: How many of them become wrong.
        examples: Some of them, the most confident first.
    """

    before: Hashable
    after: Hashable
    count: int
    mended: int | None
    broken: int | None
    examples: tuple[ChangedText, ...]


@dataclass(frozen=True)
class LabelCount:
    """The number of texts per label: before and after the edit, won and lost."""

    label: Hashable
    before: int
    after: int
    won: int
    lost: int
    is_new: bool = False
    is_removed: bool = False


@dataclass(frozen=True)
class PairedAccuracy:
    """Accuracy before and after on the same texts.

    Attributes:
        rows: How many texts there are; a true label that is unknown counts as wrong.
        before: The accuracy before.
        after: The accuracy after.
        mended: How many texts become right.
        broken: How many texts become wrong.
        p: The p-value of the exact McNemar test that both are equally likely.
    """

    rows: int
    before: float
    after: float
    mended: int
    broken: int
    p: float

    def __str__(self) -> str:
        clear = "a clear difference" if self.p < 0.05 else "no clear difference"
        return (
            f"accuracy {self.before:.1%} → {self.after:.1%} ({100 * (self.after - self.before):+.1f} points): "
            f"{self.mended:,} mended, {self.broken:,} broken, p = {self.p:.3f} (exact McNemar test), {clear}"
        )


@dataclass(frozen=True)
class LabelDiff:
    """The result of a label diff. Print it, or `save` it as a web page.

    Attributes:
        rows: How many texts were classified.
        changed: How many get another label. A label that was renamed is the same label.
        moves: From which label to which, the most frequent first.
        labels: Per label, how many texts it has before and after; the largest changes first.
        confidence: The mean probability of the predicted label before and after.
        shift: The mean absolute change of that probability over texts that keep their label.
        accuracy: Accuracy before and after, if the truth is known.
        renamed: Old labels with their new ids.
    """

    rows: int
    changed: int
    moves: tuple[Move, ...]
    labels: tuple[LabelCount, ...]
    confidence: tuple[float, float]
    shift: float
    accuracy: PairedAccuracy | None
    renamed: tuple[tuple[Hashable, Hashable], ...] = ()

    @property
    def headline(self) -> str:
        """The result in a sentence."""
        share = self.changed / self.rows if self.rows else 0.0
        return f"{self.changed:,} of {counted(self.rows, 'text')} get another label ({share:.1%})."

    def __str__(self) -> str:
        names = LabelNames(each.label for each in self.labels)
        lines = [self.headline]
        if self.accuracy is not None:
            lines.append(f"On {counted(self.accuracy.rows, 'labelled text')}: {self.accuracy}.")
        lines.append(
            f"Mean probability of the predicted label {self.confidence[0]:.2f} → {self.confidence[1]:.2f}; where the "
            f"label stays, it changes by {self.shift:.2f} on average."
        )
        for each in self.moves[:MOVES_IN_TEXT]:
            became = "" if each.mended is None else f" ({each.mended:,} mended, {each.broken:,} broken)"
            old, new = (shorten_name(names[label], 40) for label in (each.before, each.after))
            lines += ["", f"{each.count:>5,}  {old} → {new}{became}"]
            lines += [
                f"       {one.before:.2f} → {one.after:.2f}  {shorten(one.text, WIDTH - 22)}" for one in each.examples
            ]
        if len(self.moves) > MOVES_IN_TEXT:
            lines += ["", f"and {len(self.moves) - MOVES_IN_TEXT:,} more pairs of labels"]
        touched = [each for each in self.labels if each.won or each.lost or each.is_new or each.is_removed]
        if touched:
            lines += ["", "texts per label, before → after"]
        for count in touched[:MOVES_IN_TEXT]:
            note = " (new)" if count.is_new else " (removed)" if count.is_removed else ""
            lines.append(f"{count.before:>5,} → {count.after:<5,}  {shorten_name(names[count.label], 60)}{note}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The whole result as a JSON object."""
        return {
            "rows": self.rows,
            "changed": self.changed,
            "confidence": list(self.confidence),
            "shift": self.shift,
            "accuracy": None if self.accuracy is None else asdict(self.accuracy),
            "renamed": [list(pair) for pair in self.renamed],
            "moves": [asdict(each) for each in self.moves],
            "labels": [asdict(each) for each in self.labels],
        }

    def to_html(self) -> str:
        """One web page that needs no other file, no script and no network."""
        from maskmatch.evaluation.label_diff.page import diff_page

        return diff_page(self)

    def save(self, path: str | Path) -> Path:
        """Write the web page to a file. The write is atomic."""
        path = Path(path).expanduser()
        write_text(path, self.to_html(), errors="replace")
        return path
