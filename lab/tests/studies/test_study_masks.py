"""The study of several masks."""

from __future__ import annotations

from maskmatch.config.matcher import MatcherConfig
from maskmatch.config.tasks import TASKS
from maskmatch_lab.studies import find_study
from maskmatch_lab.studies.masks import MANY, NAMES, ONE, WAYS, mask_variants, name_of
from study_tools import all_places, evidence_of

STUDY = find_study("masks")


def test_each_way_has_its_masks_where_its_name_says() -> None:
    for task in ("question", "nli", "relation"):
        configs = {}
        for variant in mask_variants(TASKS[task]):
            options = {name: value for name, value in variant.matcher.items() if name != "model"}
            configs[variant.name] = MatcherConfig.make(max_length=64, task=task, method=variant.row, **options)
        assert list(configs) == [ONE, *NAMES]
        assert (configs[ONE].input_masks, configs[ONE].label_masks) == (1, 1)
        for count in MANY:
            for way, (in_text, in_label, join) in WAYS.items():
                config = configs[name_of(count, way)]
                assert config.input_masks == (count if in_text else 1)
                assert config.label_masks == (count if in_label else 1)
                assert config.similarity.masks == join


def test_the_answer_follows_the_cells() -> None:
    places = all_places(STUDY)
    gains = evidence_of(STUDY, {place: 0.8 if "8 masks in both, late" in place[1] else 0.4 for place in places})
    told = STUDY.conclude(gains)
    sentences = " ".join(told.sentences)
    assert (
        "Several masks in both, late, zero-shot: “one mask” has an accuracy of 40.0 %; better: 8 masks in both, late"
        in sentences
    )
    assert "On agnews (topic), zero-shot, 8 masks in both, late (+40.0" in sentences
    assert "at the cost of 7 more tokens per text and 7 per label, label vectors 8 times as long." in sentences
    assert "On trec50 (question), 5 shots, one mask is enough: of 6 ways none is clearly better, none is" in sentences
    assert told.figures["worth it"]["zero-shot"]["agnews"] == "8 masks in both, late"
    assert told.figures["worth it"]["5 shots"]["trec50"] is None
    assert len(told.pictures) == 2
    equal = " ".join(STUDY.conclude(evidence_of(STUDY, dict.fromkeys(places, 0.5))).sentences)
    assert "better: " not in equal
    assert "improves most" not in equal
