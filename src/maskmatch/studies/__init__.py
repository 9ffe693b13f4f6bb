"""Studies: questions that are answered by measuring, each a list of variants, datasets, a picture and a conclusion."""

from maskmatch.studies.registry import STUDIES, find_study
from maskmatch.studies.running import StudyResult, run_study
from maskmatch.studies.study import Conclusion, Found, Part, Study

__all__ = ["STUDIES", "Conclusion", "Found", "Part", "Study", "StudyResult", "find_study", "run_study"]
