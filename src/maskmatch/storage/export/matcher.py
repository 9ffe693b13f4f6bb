"""ExportedMatcher: a classifier from an export, without torch."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError
from maskmatch.files import recover, resolved
from maskmatch.prediction.predictor import Predictor
from maskmatch.storage.export.folder import read_export
from maskmatch.storage.integrity import revision
from maskmatch.storage.layout import EXPORT_FILE

if TYPE_CHECKING:
    from maskmatch.config.matcher import MatcherConfig, SearchKind
    from maskmatch.labels import LabelSet
    from maskmatch.prediction.pipeline import Pipeline
    from maskmatch.storage.export.folder import Export


class ExportedMatcher(Predictor):
    """A classifier from an export: it predicts and evaluates like the MaskMatcher it was made from, without torch.

    Args:
        pipeline: The prediction pipeline.
        export: What else is known of the export.
        name: What reports call it.
        verbose: Whether long calls show their progress.
    """

    def __init__(self, pipeline: Pipeline, export: Export, name: str, *, verbose: bool = True) -> None:
        super().__init__(verbose=verbose)
        self.export = export
        self.loaded_from: tuple[Path, dict[str, Any]] | None = None
        self._pipeline = pipeline
        self._name = name

    @classmethod
    def from_pretrained(
        cls,
        folder: str | Path,
        *,
        threshold: float | None = None,
        abstain: float | None = None,
        search: SearchKind | None = None,
        runtime: str = "onnx",
        verify: bool = True,
        verbose: bool = True,
    ) -> ExportedMatcher:
        """Load an export.

        Args:
            folder: The folder that ``maskmatch export`` wrote.
            threshold: With several labels per text: the probability from which a label applies.
            abstain: With one label per text: the probability from which the best label is the answer.
            search: How the nearest labels are found: "auto", "exact" or "approximate"; None: as in the classifier.
            runtime: What computes input vectors.
            verify: Whether to check that all files are as they were written.
            verbose: Whether long calls show their progress.
        """
        path = Path(folder).expanduser()
        recover(path)
        pipeline, export = read_export(path, with_index=search != "exact", runtime=runtime, verify=verify)
        config = pipeline.config.changed({"threshold": threshold, "abstain": abstain, "search": search})
        calibration = pipeline.calibration
        if threshold is not None and calibration is not None:  # one threshold for all labels
            calibration = replace(calibration, thresholds={})
        matcher = cls(replace(pipeline, config=config, calibration=calibration), export, str(path), verbose=verbose)
        matcher.loaded_from = resolved(path), {"runtime": runtime, "verify": verify}
        if threshold is not None:
            matcher.check_multi_label()
        return matcher

    def __reduce__(self) -> Any:
        """Copies for other processes load the same folder."""
        if self.loaded_from is None:
            raise MaskMatchError("Only an export that was loaded from a folder can be sent to another process.")
        folder, options = self.loaded_from
        several = self.config.multi_label and not self._pipeline.thresholds
        options = {
            **options,
            "threshold": self.config.threshold if several else None,
            "abstain": self.config.abstain,
            "search": self.config.search,
            "verbose": self.verbose,
        }
        return _copied, (type(self), str(folder), self.export.revision, options)

    def __copy__(self) -> ExportedMatcher:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> ExportedMatcher:
        return copy.copy(self)  # nothing of it changes

    @property
    def labels(self) -> LabelSet:
        """The labels, in the order of ``predict_proba``'s columns."""
        return self._pipeline.labels

    @property
    def config(self) -> MatcherConfig:
        """Task, prompts, method, similarity."""
        return self._pipeline.config

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
        """The prediction pipeline."""
        return self._pipeline


def _copied(cls: type[ExportedMatcher], folder: str, known: str | None, options: dict[str, Any]) -> ExportedMatcher:
    """The same export in another process; MaskMatchError if the folder holds another one now."""
    if revision(Path(folder) / EXPORT_FILE) != known:
        raise MaskMatchError(f"{folder} was changed after it was loaded; load it again in this process.")
    return cls.from_pretrained(folder, **options)
