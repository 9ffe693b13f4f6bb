"""EditablePredictor: a predictor whose labels can be added, renamed and removed, and whose edits can be previewed."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from maskmatch.data import Examples, take_examples, take_texts
from maskmatch.errors import MaskMatchError
from maskmatch.files import locked, resolved
from maskmatch.labels import Label, LabelSet
from maskmatch.labels.targets import row_labels
from maskmatch.prediction.pipeline import paired_answers
from maskmatch.prediction.predictor import Predictor
from maskmatch.progress import showing_progress

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from maskmatch.evaluation.label_diff import LabelDiff
    from maskmatch.labels import LabelsLike
    from maskmatch.labels.bank import LabelBank
    from maskmatch.prediction.pipeline import Pipeline

Own = TypeVar("Own", bound="EditablePredictor")


class EditablePredictor(Predictor):
    """Classifies texts by labels that can be edited: a MaskMatcher, or an export."""

    @property
    def bank(self) -> LabelBank:
        """All that is known of labels: their vectors, centroids, version."""
        raise NotImplementedError

    def save_pretrained(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Save it in a folder, whole or not at all."""
        raise NotImplementedError

    def pipeline_with(self, bank: Any) -> Pipeline:
        """The prediction pipeline with other labels."""
        raise NotImplementedError

    def add_labels(self: Own, labels: LabelsLike) -> Own:
        """Add labels, which can be predicted at once: only the new names are encoded."""
        self.bank.add(labels)
        return self._edited()

    def rename_label(self: Own, old: Hashable, new: Hashable) -> Own:
        """Give a label another name.

        A label that is known by its name is known by the new one from then on; one with an id of its own, as in
        ``{3: "refund"}``, keeps the id.
        """
        self.bank.rename(old, new)
        return self._edited()

    def remove_labels(self: Own, labels: Sequence[Hashable]) -> Own:
        """Remove labels."""
        self.bank.remove(labels)
        return self._edited()

    def edit_labels(
        self: Own,
        *,
        add: LabelsLike | None = None,
        rename: Mapping[Hashable, Hashable] | None = None,
        remove: Sequence[Hashable] = (),
        change: LabelsLike | None = None,
    ) -> Own:
        """Remove labels, rename or change others and add some, all at once: a prediction sees all edits, or none.

        If one of them is wrong, nothing changes.

        Args:
            add: Labels to add.
            rename: New names by the labels that get them.
            remove: Labels to remove.
            change: Labels that keep their ids, with new names, descriptions, phrases, words and examples. What training
                taught about them stays.
        """
        steps = edit_steps(self.bank.known_labels, add, rename or {}, remove, change)
        bank = self.bank
        if bank.learns_rows:  # a copy would share what is edited
            with bank.lock:
                labels = bank.known_labels
                for edits in steps:  # all of them are checked before any is made
                    labels = bank.edited(labels, **edits)[2]
                for edits in steps:
                    bank.edit(**edits)
            return self._edited()
        taken = False
        while not taken:  # until no other thread has edited meanwhile
            version, trial = bank.version, bank.copy()
            for edits in steps:
                trial.edit(**edits)
            self.pipeline_with(trial)  # encodes new names, while predictions go on
            taken = bank.take(trial, version)
        return self._edited()

    @classmethod
    @contextmanager
    def editing(cls: type[Own], folder: str | Path, **options: Any) -> Iterator[Own]:
        """Load a saved classifier, or an export, to edit it, and save it if the block succeeds.

        No other process or thread that edits this way, or saves, gets in between::

            with MaskMatcher.editing("my-classifier") as matcher:
                matcher.add_labels(["chargeback"])

        Args:
            folder: The folder.
            **options: Options of :meth:`from_pretrained`.
        """
        path = resolved(Path(folder))  # the block may change the working directory
        with locked(path):
            loader: Any = cls
            matcher = loader.from_pretrained(path, **options)
            yield matcher
            matcher.save_pretrained(path)

    # -- vectors ---------------------------------------------------------------------------------------------

    def text_states(self, texts: Any) -> NDArray[np.float32]:
        """The input vectors of texts: (n, masks, dim)."""
        bank, texts = self.bank, take_texts(texts, self.config.fields)
        if bank.labels is None:  # input vectors do not depend on labels
            bank = bank.copy()
            bank.start_with(LabelSet.of(["any"]))
        pipeline, prompts = self._tokenize(texts, self.pipeline_with(bank))
        with showing_progress(self.verbose):
            return pipeline.all_vectors(prompts)

    def phrase_states(self, phrases: Sequence[str]) -> NDArray[np.float32]:
        """The vectors that phrases would have as names of labels: (n, masks, dim)."""
        self.bank.check_editable("it reads no names")
        if not phrases:
            raise MaskMatchError("There are no phrases; give at least one.")
        with showing_progress(self.verbose):
            return self.bank.read(list(phrases))

    def _edited(self: Own) -> Own:
        """Called after every edit of labels."""
        return self

    def preview(
        self,
        texts: Any,
        truth: Any = None,
        *,
        add: LabelsLike | None = None,
        rename: Mapping[Hashable, Hashable] | None = None,
        remove: Sequence[Hashable] = (),
        labels: LabelsLike | None = None,
    ) -> LabelDiff:
        """Which predictions would change if labels changed; the classifier stays as it is.

        Args:
            texts: Strings or dicts of fields; or a data frame or a Dataset that may hold the true labels too.
            truth: The true label of each text, if known, or the name of a column: accuracy is then compared.
            add: Labels to add.
            rename: New names by the labels that get them.
            remove: Labels to remove.
            labels: Other labels altogether, instead of edits; a label with the same id stays the same label.
        """
        from maskmatch.evaluation.label_diff import diff_predictions

        if labels is not None and (add is not None or rename or remove):
            raise MaskMatchError("Give edits (add, rename, remove), or other labels altogether, not both.")
        if labels is None and add is None and not rename and not remove:
            raise MaskMatchError("There is nothing to preview; give labels to add, rename or remove.")
        pipeline, own = self.pipeline, self.bank  # the pipeline first: a classifier may have to be trained
        own.check_editable("an edit cannot be previewed")
        bank = own.copy()
        ids = None
        if labels is not None:
            bank.replace(own.known_labels.with_own_ids(LabelSet.of(labels)))
        else:
            ids = bank.edit(add=add, rename=rename or {}, remove=remove)
        fields = self.config.fields
        examples = Examples(take_texts(texts, fields)) if truth is None else take_examples(texts, truth, fields)
        with showing_progress(self.verbose):
            before, after = paired_answers(pipeline, self.pipeline_with(bank), examples.texts)
        return diff_predictions(
            examples.texts,
            before,
            after,
            old_labels=own.known_labels,
            new_labels=bank.known_labels,
            truth=None if truth is None else row_labels(examples, own.known_labels, False),
            ids=ids,
        )


def edit_steps(
    labels: LabelSet,
    add: LabelsLike | None,
    rename: Mapping[Hashable, Hashable],
    remove: Sequence[Hashable],
    change: LabelsLike | None,
) -> list[dict[str, Any]]:
    """The edits of a label bank that make all of these edits, one after the other.

    Labels that change get a name that no label has first: so they may exchange their names and words.
    """
    last: dict[str, Any] = {"add": add, "rename": dict(rename), "remove": remove}
    if change is None:
        return [last]
    changed = LabelSet.of(change)
    for id_ in changed:
        labels.position(id_)  # raises if there is no such label
        if id_ in rename or (id_ in remove and not isinstance(remove, str)):
            raise MaskMatchError(f"The label {id_!r} cannot be changed and renamed or removed at once.")
    between = {id_: Label(id_, f"(changed {number})") for number, id_ in enumerate(changed)}
    final = {**rename, **{label.id: label for label in changed.labels}}
    return [{"add": None, "rename": between, "remove": remove}, {"add": add, "rename": final, "remove": ()}]
