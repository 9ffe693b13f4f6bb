"""The batches of an alignment: their prompts, targets and random draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from alignment_tools import BANK, PAIRS
from maskmatch.config.matcher import MatcherConfig
from maskmatch.config.methods import METHODS
from maskmatch.config.tasks import TASKS
from maskmatch.data import LabelledTexts
from maskmatch.model.matching import MatchingModel
from maskmatch.prompts import Prompt, PromptTokenizer
from maskmatch.training.alignment import AlignmentConfig
from maskmatch.training.alignment.batches import LABEL_PROMPTS, PROMPTS, AlignmentData
from maskmatch.training.alignment.material import AlignmentMaterial

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from maskmatch.model.encoder import Encoder

    Make = Callable[..., AlignmentData]

TEXTS = ["where is my refund", "my card was lost", "the exchange rate", "it is still pending", "two weeks ago"]
NAMES = ["refund", "card", "money", "question"]
CONFIG = AlignmentConfig(steps=2, matching_steps=30, draws=2, texts_a_draw=4, names_a_draw=3)
FIRST_MATCHING = 4
"""The number of the first matching draw, with this config."""


def vector_of(text: str) -> torch.Tensor:
    """Return a different vector for each text."""
    found = torch.randn(16, generator=torch.Generator().manual_seed(sum(map(ord, text))))
    return found / found.norm()


@pytest.fixture
def make(encoder: Callable[[str], Encoder]) -> Make:
    """Make the batches of an alignment of the tiny BERT."""

    def call(
        texts: Sequence[str] = TEXTS, sets: Sequence[LabelledTexts] = (), config: AlignmentConfig = CONFIG
    ) -> AlignmentData:
        single = [text for each in sets for part in each.texts for text in part if isinstance(text, str)]
        names = [name for each in sets for part in each.names for name in part]
        found = encoder("bert")
        return AlignmentData(
            PromptTokenizer(found.tokenizer, 60),
            AlignmentMaterial(texts, NAMES, sets),
            vectors={text: vector_of(text) for text in [*texts, *NAMES, *single, *names]},
            encoder_digest="of the tiny BERT",
            config=config,
            pad_id=found.pad_id,
        )

    return call


@pytest.fixture
def rows(encoder: Callable[[str], Encoder]) -> Callable[[dict[str, Any]], list[str]]:
    """Decode the rows of a batch, in order and without masks."""

    def call(batch: dict[str, Any]) -> list[str]:
        tokenizer = encoder("bert").tokenizer
        found: dict[int, str] = {}
        for group in batch["groups"]:
            assert group.rows.tolist() == sorted(group.rows.tolist())
            for index, row in enumerate(group.rows.tolist()):
                ids = group.input_ids[index][group.attention_mask[index].bool()].tolist()
                masks = [at for at, id_ in enumerate(ids) if id_ == tokenizer.mask_token_id]
                assert masks == group.mask_positions[index].tolist()
                text = str(tokenizer.decode([id_ for id_ in ids if id_ != tokenizer.mask_token_id], True))
                found[row] = text.strip()
        assert sorted(found) == list(range(len(found)))
        return [found[row] for row in sorted(found)]

    return call


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return (
        one["texts"] == other["texts"]
        and len(one["groups"]) == len(other["groups"])
        and all(torch.equal(a.input_ids, b.input_ids) for a, b in zip(one["groups"], other["groups"], strict=True))
        and torch.equal(one["anchors"].vectors, other["anchors"].vectors)
        and torch.equal(one.get("targets", torch.zeros(0)), other.get("targets", torch.zeros(0)))
    )


class TestDraws:
    def test_the_number_of_draws(self, make: Make) -> None:
        assert len(make()) == 2 * 2  # without label sets there are no matching steps
        assert len(make(sets=[BANK])) == (2 + 30) * 2
        data = make(sets=[BANK])
        assert ["targets" in data.batch([number]) for number in range(6)] == [False] * 4 + [True] * 2

    def test_draws_depend_on_seed_and_number_only(self, make: Make) -> None:
        numbers = [0, 3, FIRST_MATCHING, 20, 63]
        forwards, backwards = make(sets=[BANK, PAIRS]), make(sets=[BANK, PAIRS])
        found = {number: forwards.batch([number]) for number in numbers}
        again = {number: backwards.batch([number]) for number in reversed(numbers)}
        assert all(same(found[number], again[number]) for number in numbers)
        torch.manual_seed(7)
        assert same(forwards.batch([20]), found[20])

    def test_another_number_or_seed_gives_another_draw(self, make: Make) -> None:
        data = make(sets=[BANK])
        other = make(sets=[BANK], config=AlignmentConfig(**{**CONFIG.recipe, "seed": 1}))
        assert not same(data.batch([0]), data.batch([1]))
        assert not same(data.batch([10]), data.batch([11]))
        assert any(not same(data.batch([number]), other.batch([number])) for number in (0, 1))
        assert any(not same(data.batch([number]), other.batch([number])) for number in (10, 11))

    def test_the_digest_identifies_a_run(self, make: Make) -> None:
        digests = {
            make().digest(),
            make(texts=TEXTS[:-1]).digest(),
            make(sets=[BANK]).digest(),
            make(sets=[PAIRS]).digest(),
            make(config=AlignmentConfig(**{**CONFIG.recipe, "anchor": 0.5})).digest(),
        }
        assert len(digests) == 5
        assert make(sets=[BANK]).digest() in digests
        moved = AlignmentConfig(**CONFIG.recipe, checkpoints="elsewhere", resume=True)
        assert make(config=moved).digest() in digests  # the folder of checkpoints is not part of the identity


class TestDistillation:
    def test_every_prompt_is_used(
        self, make: Make, rows: Callable[..., list[str]], encoder: Callable[[str], Encoder]
    ) -> None:
        data = make(config=AlignmentConfig(**{**CONFIG.recipe, "steps": 60}))
        seen: set[str] = set()
        for number in range(len(data)):
            batch = data.batch([number])
            found = rows(batch)
            assert (batch["texts"], len(found)) == (4, 7)
            assert all(sum(text in row for text in TEXTS) == 1 for row in found[:4])
            assert all(any(name in row for name in NAMES) for row in found[4:])
            seen |= set(found)
        tokenizer = encoder("bert").tokenizer
        for prompts, field, words in ((PROMPTS, "text", TEXTS), (LABEL_PROMPTS, "label", NAMES)):
            for template in prompts:
                filled = [template.replace(f"{{{field}}}", word).replace("{mask}", "") for word in words]
                assert seen & {str(tokenizer.decode(tokenizer(text)["input_ids"], True)).strip() for text in filled}

    def test_each_row_has_the_target_vector_of_its_text(self, make: Make, rows: Callable[..., list[str]]) -> None:
        for number in range(4):
            batch = make().batch([number])
            anchors = batch["anchors"]
            assert anchors.rows.tolist() == list(range(7))
            assert anchors.weight == anchors.contrast == 1.0
            for index, row in enumerate(rows(batch)):
                known = [text for text in (TEXTS if index < 4 else NAMES) if text in row]
                assert any(torch.equal(anchors.vectors[index], vector_of(text)) for text in known)

    def test_few_texts_are_enough(self, make: Make) -> None:
        batch = make(texts=TEXTS[:2]).batch([0])
        assert batch["texts"] == 2


def matching(data: AlignmentData) -> list[dict[str, Any]]:
    return [data.batch([number]) for number in range(FIRST_MATCHING, len(data))]


class TestLabelSets:
    def test_targets_point_at_the_right_names(self, make: Make, rows: Callable[..., list[str]]) -> None:
        for batch in matching(make(sets=[BANK])):
            found, layout = rows(batch), batch["layout"]
            assert batch["texts"] == 4
            assert layout.table.flatten().tolist() == list(range(len(layout.texts)))
            assert 2 <= len(layout.texts) == len(found) - 4 <= 3
            assert all(name in row for name, row in zip(layout.texts, found[4:], strict=True))
            for row, target in zip(found[:4], batch["targets"].tolist(), strict=True):
                (label,) = (label for label, texts in enumerate(BANK.texts) if any(text in row for text in texts))
                assert layout.texts[target] in BANK.names[label]

    def test_every_name_and_text_is_drawn(self, make: Make, rows: Callable[..., list[str]]) -> None:
        batches = matching(make(sets=[BANK]))
        assert {name for batch in batches for name in batch["layout"].texts} == {
            name for names in BANK.names for name in names
        }
        seen = " / ".join(row for batch in batches for row in rows(batch)[:4])
        assert all(text in seen for texts in BANK.texts for text in texts)

    def test_a_draw_uses_one_label_set_and_every_set_is_drawn(self, make: Make) -> None:
        ours = [set().union(*map(set, each.names)) for each in (BANK, PAIRS)]
        found = [set(batch["layout"].texts) for batch in matching(make(sets=[BANK, PAIRS]))]
        assert all(names <= ours[0] or names <= ours[1] for names in found)
        assert all(any(names <= each for names in found) for each in ours)

    def test_texts_of_several_fields_use_the_prompts_of_their_task(
        self, make: Make, rows: Callable[..., list[str]]
    ) -> None:
        seen: set[str] = set()
        for batch in matching(make(sets=[PAIRS])):
            for row, target in zip(rows(batch)[:4], batch["targets"].tolist(), strict=True):
                (label,) = (
                    label
                    for label, texts in enumerate(PAIRS.texts)
                    if any(text["text"] in row and text["text_b"] in row for text in texts)
                )
                assert batch["layout"].texts[target] in PAIRS.names[label]
                seen.add(row)
        task = TASKS["paraphrase"]
        last_words = {row.rpartition("jar")[2] for row in seen}
        assert len(last_words) > 1, (task.paraphrases, seen)

    def test_spans_are_marked(self, make: Make, rows: Callable[..., list[str]]) -> None:
        text = {"text": "my card was lost", "entity": "card", "entity_span": [3, 7]}
        typed = LabelledTexts("types", "entity-typing", (("thing",), ("money",)), ((text,), (text,)))
        for batch in matching(make(sets=[typed])):
            assert all("my * card * was lost" in row for row in rows(batch)[:4])

    def test_only_rows_with_a_target_vector_have_anchors(self, make: Make) -> None:
        for batch in matching(make(sets=[PAIRS])):
            anchors, names = batch["anchors"], batch["layout"].texts
            assert anchors.rows.tolist() == list(range(4, 4 + len(names)))
            assert torch.equal(anchors.vectors, torch.stack([vector_of(name) for name in names]))
        for batch in matching(make(sets=[BANK])):
            assert batch["anchors"].rows.tolist() == list(range(4 + len(batch["layout"].texts)))

    def test_the_weight_of_anchors_in_matching_draws(self, make: Make) -> None:
        data = make(sets=[BANK], config=AlignmentConfig(**{**CONFIG.recipe, "anchor": 0.25}))
        assert data.batch([0])["anchors"].weight == 1.0
        anchors = data.batch([FIRST_MATCHING])["anchors"]
        assert anchors.weight == anchors.contrast == 0.25

    def test_the_number_of_labels_per_draw_is_limited(self, make: Make) -> None:
        huge = LabelledTexts(
            "huge", "topic", tuple((f"name {n}",) for n in range(200)), tuple((f"text {n}",) for n in range(200))
        )
        counts = {len(batch["layout"].texts) for batch in matching(make(sets=[huge]))}
        assert counts == {2, 3}


class TestLoss:
    @pytest.fixture
    def model(self, encoder: Callable[[str], Encoder]) -> MatchingModel:
        METHODS["mask-matching"]
        return MatchingModel(encoder("bert"), MatcherConfig.make(max_length=48, method="mask-matching"))

    def test_the_model_accepts_a_draw(self, make: Make, model: MatchingModel) -> None:
        data = make(sets=[BANK, PAIRS])
        for number in (0, FIRST_MATCHING, FIRST_MATCHING + 1, FIRST_MATCHING + 2):
            with torch.no_grad():
                loss = model(**data.batch([number]))["loss"]
            assert loss.ndim == 0
            assert torch.isfinite(loss)

    def test_the_loss_is_the_sum_of_matching_and_anchors(self, make: Make, model: MatchingModel) -> None:
        batch = make(sets=[BANK]).batch([FIRST_MATCHING])
        with torch.no_grad():
            both = model(**batch)["loss"]
            anchors = model(batch["groups"], batch["texts"], anchors=batch["anchors"])["loss"]
            matched = model(**{**batch, "anchors": None})
        assert both.item() == pytest.approx(anchors.item() + matched["loss"].item(), rel=1e-5)
        assert matched["scores"].shape == (4, len(batch["layout"].texts))


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_the_paraphrases_of_a_task_use_all_its_fields(task: Any) -> None:
    assert len({task.prompt, *task.paraphrases}) == 4
    for template in task.paraphrases:
        prompt = Prompt(template, task.fields)
        assert (set(prompt.fields), prompt.masks) == (set(task.fields), 1)
    assert all(Prompt(template, ("label",)).masks == 1 for template in task.label_paraphrases)
