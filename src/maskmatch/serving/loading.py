"""Load what is served."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError
from maskmatch.storage.layout import EXPORT_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.prediction.editing import EditablePredictor


@dataclass(frozen=True)
class Loaded:
    """What is served: a classifier or an export, its name, and its folder if it has labels of its own."""

    name: str
    predictor: EditablePredictor
    folder: Path | None = None


def load_all(models: Sequence[str], task: str) -> list[Loaded]:
    """Load classifiers and exports; or the embedded default, which needs labels in each request."""
    if not models:
        from maskmatch.serving.default_export import default_export

        return [Loaded("default", load_predictor(str(default_export(task))))]
    names = [Path(model).expanduser().resolve().name for model in models]
    if len(set(names)) < len(names):
        raise MaskMatchError(f"Two of the classifiers have the same name ({', '.join(names)}); rename a folder.")
    return [
        Loaded(name, load_predictor(model), Path(model).expanduser()) for name, model in zip(names, models, strict=True)
    ]


def load_predictor(model: str) -> EditablePredictor:
    """Load a classifier or an export."""
    import maskmatch

    exported = (Path(model).expanduser() / EXPORT_FILE).exists()
    kind: Any = maskmatch.ExportedMatcher if exported else maskmatch.MaskMatcher
    loaded: EditablePredictor = kind.from_pretrained(model, verbose=False)
    _ = loaded.pipeline  # what cannot be used is reported at the start
    return loaded
