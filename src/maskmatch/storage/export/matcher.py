"""ExportedMatcher: a classifier from an export, without torch."""

from __future__ import annotations

import copy
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError
from maskmatch.files import locked, recover, resolved, write_folder
from maskmatch.labels import LabelSet, label_from_json, label_to_json
from maskmatch.labels.calibration import Calibration
from maskmatch.prediction.editing import EditablePredictor
from maskmatch.prediction.runtimes import runtime_row
from maskmatch.storage.export.folder import FILES, INDEX_FILE, is_export, read_export, write_export
from maskmatch.storage.export.old_formats import FIXED
from maskmatch.storage.integrity import revision
from maskmatch.storage.layout import EXPORT_FILE, check_target, check_unchanged

if TYPE_CHECKING:
    from maskmatch.config.matcher import LongTexts, MatcherConfig, SearchKind
    from maskmatch.labels import LabelsLike
    from maskmatch.prediction.graph_bank import GraphBank
    from maskmatch.prediction.pipeline import Pipeline
    from maskmatch.storage.export.folder import Export, LoadedExport


class ExportedMatcher(EditablePredictor):
    """A classifier from an export: it predicts and evaluates like the MaskMatcher it was made from, without torch.

    Labels can be edited: the graph of the export reads their names.

    Args:
        loaded: The export.
        name: What reports call it.
        verbose: Whether long calls show their progress.
    """

    def __init__(self, loaded: LoadedExport, name: str, *, verbose: bool = True) -> None:
        super().__init__(verbose=verbose)
        self.export: Export = loaded.export
        self.loaded_from: tuple[Path, dict[str, Any]] | None = None
        self._loaded = loaded
        self._saved = None if loaded.bank is None else loaded.bank.version
        self._name = name

    @classmethod
    def from_pretrained(
        cls,
        folder: str | Path,
        labels: LabelsLike | None = None,
        *,
        threshold: float | None = None,
        abstain: float | None = None,
        search: SearchKind | None = None,
        long_texts: LongTexts | None = None,
        runtime: str = "onnx",
        verify: bool = True,
        verbose: bool = True,
    ) -> ExportedMatcher:
        """Load an export.

        Args:
            folder: The folder that ``maskmatch export`` wrote.
            labels: Other labels than the export's own: names, ``{name: description}``, ``{name: [phrases]}``, or a
                LabelSet.
            threshold: With several labels per text: the probability from which a label applies.
            abstain: With one label per text: the probability from which the best label is the answer.
            search: How the nearest labels are found: "auto", "exact" or "approximate"; None: as in the classifier.
            long_texts: What to do with long texts: "cut" or "windows"; None: as in the classifier.
            runtime: What computes input vectors.
            verify: Whether to check that all files are as they were written.
            verbose: Whether long calls show their progress.
        """
        path = Path(folder).expanduser()
        recover(path)
        loaded = read_export(path, with_index=search != "exact", runtime=runtime, verify=verify)
        matcher = cls(loaded, str(path), verbose=verbose)
        matcher.loaded_from = resolved(path), {"runtime": runtime, "verify": verify}
        given = {"threshold": threshold, "abstain": abstain, "search": search, "long_texts": long_texts}
        matcher._reconfigure(given)
        if threshold is not None:
            matcher.check_multi_label()
        if labels is not None:
            matcher.bank.replace(LabelSet.of(labels))
        return matcher

    def _reconfigure(self, options: dict[str, Any]) -> None:
        """Apply other settings."""
        pipeline, bank = self._loaded.pipeline, self._loaded.bank
        config, calibration = pipeline.config.changed(options), pipeline.calibration
        if config == pipeline.config:
            return
        if options["threshold"] is not None and calibration is not None:  # one threshold for all labels
            calibration = replace(calibration, thresholds={})
        if bank is None:
            self._loaded = replace(self._loaded, old=replace(pipeline, config=config, calibration=calibration))
            return
        index, bank = bank.current_index(), bank.with_config(config)
        if calibration is not bank.calibration:
            bank.learn(calibration=calibration)
        if index is not None:
            bank.take_index(index)
        self._loaded, self._saved = replace(self._loaded, bank=bank), bank.version

    def save_pretrained(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Save the export with its labels as they are now, whole or not at all.

        Args:
            folder: The folder.
            overwrite: Whether to replace what someone else saved there since this export was loaded.
        """
        bank, path = self.bank, Path(folder).expanduser()
        assert self.loaded_from is not None
        source, options = self.loaded_from
        graph = runtime_row(options["runtime"]).file
        with locked(path):
            if resolved(path) == source and not overwrite:
                check_unchanged(path, self.export.revision, EXPORT_FILE)
            check_target(path, is_export, "an export")
            with bank.lock, write_folder(path, ours=(graph, *FILES, INDEX_FILE)) as scratch:
                if revision(source / EXPORT_FILE) != self.export.revision:
                    raise MaskMatchError(f"{source} was changed after it was loaded; load it again.")
                # Within a folder it stays the same file, so that sessions can still be started from it.
                _place(source / graph, scratch / graph, linked=resolved(path) == source)
                write_export(bank, bank.pipeline, bank.logits, self.export, scratch)
                self._saved = bank.version
            self.export = replace(self.export, revision=revision(path / EXPORT_FILE))
        self._name, self.loaded_from = str(path), (resolved(path), options)
        return path

    def __reduce__(self) -> Any:
        """Copies for other processes load the same folder, and then take the labels of now."""
        if self.loaded_from is None:
            raise MaskMatchError("Only an export that was loaded from a folder can be sent to another process.")
        folder, options = self.loaded_from
        several = self.config.multi_label and not self.pipeline.thresholds
        options = {
            **options,
            "threshold": self.config.threshold if several else None,
            "abstain": self.config.abstain,
            "search": self.config.search,
            "long_texts": self.config.long_texts,
            "verbose": self.verbose,
        }
        return _copied, (type(self), str(folder), self.export.revision, options, self._edits())

    def _edits(self) -> dict[str, Any] | None:
        """The labels of now as plain data; None if they are those of the folder."""
        bank = self._loaded.bank
        if bank is None or bank.version == self._saved:
            return None
        with bank.lock:
            arrays, metadata = bank.state_dict(kept_texts=False)
            labels, calibration = bank.known_labels, bank.calibration
            return {
                "labels": [label_to_json(label) for label in labels.labels],
                "arrays": arrays,
                "metadata": metadata,
                "calibration": None if calibration is None else calibration.to_json(labels),
            }

    def take_labels(self, edits: dict[str, Any]) -> None:
        """Take the labels of a copy in another process."""
        bank, labels = self.bank, LabelSet(tuple(label_from_json(label) for label in edits["labels"]))
        bank.start_with(labels)
        if edits["arrays"]:
            bank.load_state_dict(edits["arrays"], edits["metadata"], same_weights=True)
        saved = edits["calibration"]
        bank.learn(calibration=None if saved is None else Calibration.from_json(saved, labels))

    def __copy__(self) -> ExportedMatcher:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> ExportedMatcher:
        twin = copy.copy(self)
        if self._loaded.bank is not None:  # only its labels can change
            bank = self._loaded.bank.with_config(self.config)
            vars(twin).update(_loaded=replace(self._loaded, bank=bank), _saved=None)
        return twin

    @property
    def bank(self) -> GraphBank:
        """All that is known of labels: their vectors, centroids, version."""
        if self._loaded.bank is None:
            raise MaskMatchError(f"{FIXED}, so they cannot be edited; export the classifier again.")
        return self._loaded.bank

    def pipeline_with(self, bank: GraphBank) -> Pipeline:
        """The prediction pipeline with other labels."""
        return bank.pipeline

    @property
    def labels(self) -> LabelSet:
        """The labels, in the order of ``predict_proba``'s columns."""
        return self._loaded.pipeline.labels

    @property
    def config(self) -> MatcherConfig:
        """Task, prompts, method, similarity."""
        return self._loaded.pipeline.config

    @property
    def name(self) -> str:
        """What reports call it."""
        return self._name

    @property
    def notes(self) -> list[str]:
        """What a reader of its metrics should know, in sentences."""
        return self.export.notes

    @property
    def pipeline(self) -> Pipeline:
        """The prediction pipeline with the labels of now."""
        return self._loaded.pipeline


def _place(source: Path, target: Path, *, linked: bool) -> None:
    """Link a file, if asked for and possible; otherwise copy it."""
    if linked:
        try:
            os.link(source, target)
            return
        except OSError:  # not every file system has links
            pass
    shutil.copyfile(source, target)


def _copied(
    cls: type[ExportedMatcher], folder: str, known: str | None, options: dict[str, Any], edits: dict[str, Any] | None
) -> ExportedMatcher:
    """The same export in another process; MaskMatchError if the folder holds another one now."""
    if revision(Path(folder) / EXPORT_FILE) != known:
        raise MaskMatchError(f"{folder} was changed after it was loaded; load it again in this process.")
    matcher = cls.from_pretrained(folder, **options)
    if edits is not None:
        matcher.take_labels(edits)
    return matcher
