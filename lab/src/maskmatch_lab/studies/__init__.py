"""Studies: questions answered by experiments. Each has variants, datasets, pictures and a conclusion."""

from maskmatch_lab.studies.registry import STUDIES, find_study
from maskmatch_lab.studies.running import StudyResult, run_study
from maskmatch_lab.studies.study import Conclusion, Evidence, Part, Study

__all__ = ["STUDIES", "Conclusion", "Evidence", "Part", "Study", "StudyResult", "find_study", "run_study"]
