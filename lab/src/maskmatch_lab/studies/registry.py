"""The studies by name. Each study is a file of its own and is listed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskmatch.errors import MaskMatchError
from maskmatch_lab.studies.expansion import EXPANSION
from maskmatch_lab.studies.label_count import LABEL_COUNT
from maskmatch_lab.studies.label_names import NAMES
from maskmatch_lab.studies.label_readout import LABEL_READOUT
from maskmatch_lab.studies.masks import MASKS
from maskmatch_lab.studies.pairs import PAIRS
from maskmatch_lab.studies.prompts import PROMPTS
from maskmatch_lab.studies.unlabelled import UNLABELLED

if TYPE_CHECKING:
    from maskmatch_lab.studies.study import Study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        LABEL_READOUT,
        PROMPTS,
        NAMES,
        EXPANSION,
        LABEL_COUNT,
        MASKS,
        PAIRS,
        UNLABELLED,
    )
}


def find_study(name: str) -> Study:
    """A study by its name."""
    if name not in STUDIES:
        raise MaskMatchError(f"There is no study {name!r}; choose one of {', '.join(STUDIES)}.")
    return STUDIES[name]
