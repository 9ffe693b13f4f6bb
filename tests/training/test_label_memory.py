"""Kept label vectors: which labels a step reads, what it keeps, and that the softmax runs over all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_training import Witness, same_weights

from maskmatch import MaskMatcher, MaskMatchError, TrainingConfig
from maskmatch.config.settings import reference_table
from maskmatch.config.similarity import SimilarityConfig
from maskmatch.labels.layout import LabelLayout
from maskmatch.model.matching import lag
from maskmatch.prompts import TokenizedPrompts
from maskmatch.training import label_sampling as label_memory
from maskmatch.training.data import training_data
from maskmatch.training.label_sampling import MEMORY_FILE, LabelMemory, samples_labels
from toy_data import FAST, LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from maskmatch.config.training import LabelEncoding
    from maskmatch.training.data import TrainingData

Tiny = Callable[..., Path]
SHORT = {"learning_rate": 1e-2, "batch_size": 4, "epochs": 4}  # 12 steps
PHRASES = {"refund": ["money back", "parcel back"], "card lost": None, "exchange rate": ["money"]}
MANY = [*LABELS, *(f"label {number}" for number in range(40))]


def memory_of(counts: list[int], hardest: int, drawn: int) -> LabelMemory:
    """Kept vectors of labels with so many phrases."""
    layout = LabelLayout.of([[f"{label}/{phrase}" for phrase in range(n)] for label, n in enumerate(counts)])
    texts = len(layout.texts)
    prompts = TokenizedPrompts(
        [np.arange(1 + row % 3, dtype=np.int32) for row in range(texts)],
        np.zeros((texts, 1), dtype=np.int64),
        np.zeros(texts, dtype=np.bool_),
    )
    return LabelMemory(prompts, layout, torch.zeros(texts, 4), pad_id=0, hardest=hardest, drawn=drawn)


def few(monkeypatch: pytest.MonkeyPatch, hardest: int = 1, drawn: int = 1) -> None:
    monkeypatch.setattr(label_memory, "HARDEST", hardest)
    monkeypatch.setattr(label_memory, "DRAWN", drawn)


def data_of(matcher: MaskMatcher, truth: list[Any] = TRUTH, hold: float = 0.0) -> TrainingData:
    labels = matcher.labels
    assert labels is not None
    return training_data(matcher.bank, TEXTS, truth, hold=hold, label_encoding="sampled")


class TestChoice:
    @settings(max_examples=50, deadline=None)
    @given(st.data())
    def test_own_labels_are_read_and_the_number_is_bounded(self, data: st.DataObject) -> None:
        counts = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=30))
        hardest, drawn = data.draw(st.integers(1, 20)), data.draw(st.integers(0, 20))
        memory = memory_of(counts, hardest, drawn)
        weights = torch.tensor(data.draw(st.lists(st.floats(0, 9), min_size=len(counts), max_size=len(counts))))
        own = torch.tensor(data.draw(st.lists(st.booleans(), min_size=len(counts), max_size=len(counts))))
        chosen, others = (rows.tolist() for rows in memory.choose(weights, own))
        assert set(torch.nonzero(own).flatten().tolist()) <= set(chosen)
        wrong = [weights[label].item() for label in chosen if not own[label]]
        left = [weights[label].item() for label in range(len(counts)) if label not in chosen]
        assert wrong or own.all()  # however many labels the texts have of their own
        assert len(wrong) <= hardest
        assert not wrong or not left or min(wrong) >= max(left)
        assert len(others) <= min(drawn, len(counts) - len(chosen))
        assert others or not drawn or len(chosen) == len(counts)
        assert len({*chosen, *others}) == len(chosen) + len(others)
        owner = [label for label, count in enumerate(counts) for _ in range(count)]
        texts = memory.texts_of(torch.tensor([*chosen, *others], dtype=torch.long)).tolist()
        assert [row for row, label in enumerate(owner) if label in {*chosen, *others}] == sorted(texts)

    def test_every_label_is_drawn_as_often_as_any_other(self) -> None:
        torch.manual_seed(0)
        memory = memory_of([1] * 20, hardest=2, drawn=3)
        times = torch.zeros(20)
        for _ in range(600):
            read, drawn = memory.choose(torch.arange(20.0), torch.zeros(20, dtype=torch.bool))
            assert read.tolist() == [18, 19]
            times[drawn] += 1
        assert times[18:].tolist() == [0, 0]
        assert times[:18].min() > 70  # 100 are to be expected
        assert times[:18].max() < 130

    def test_what_was_read_is_taken_in_when_the_vectors_are_asked_for(self) -> None:
        memory = memory_of([1] * 3, hardest=1, drawn=0)
        before = memory.vectors
        version = before._version
        memory.keep(torch.tensor([1]), torch.ones(1, 4, requires_grad=True))
        assert before._version == version  # the backward pass may still need them
        assert memory.vectors[1].tolist() == [1.0] * 4
        assert not memory.vectors.requires_grad

    @pytest.mark.parametrize(("encoding", "texts", "sampled"), [("full", 10**6, False), ("sampled", 2, True)])
    def test_the_user_can_force_either(self, encoding: Any, texts: int, sampled: bool) -> None:
        assert samples_labels(encoding, texts) is sampled

    def test_small_label_sets_are_read_in_full_by_default(self) -> None:
        assert not samples_labels("auto", label_memory.MAX_FULL)
        assert samples_labels("auto", label_memory.MAX_FULL + 1)
        assert TrainingConfig().label_encoding == "auto"
        assert f"full up to {label_memory.MAX_FULL} label texts" in reference_table(TrainingConfig)
        with pytest.raises(MaskMatchError, match="label_encoding is 'some'; choose one of auto, full, sampled"):
            TrainingConfig(label_encoding="some")  # type: ignore[arg-type]


class TestStep:
    @pytest.mark.parametrize("labels", [LABELS, PHRASES])
    @pytest.mark.parametrize("multi_label", [False, True])
    @pytest.mark.parametrize("hold", [0.0, 0.5])
    def test_with_all_labels_fresh_it_is_the_step_of_full_encoding(
        self, tiny: Tiny, labels: Any, multi_label: bool, hold: float
    ) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), labels, multi_label=multi_label)
        truth: list[Any] = [[label] for label in TRUTH] if multi_label else TRUTH
        assert matcher.labels is not None
        model = matcher.model
        gradients = []
        encodings: tuple[LabelEncoding, ...] = ("full", "sampled")
        for encoding in encodings:
            data = training_data(matcher.bank, TEXTS, truth, hold=hold, label_encoding=encoding)
            output = model(**data.batch(range(5)))
            model.zero_grad()
            output["loss"].backward()
            gradients.append([output["loss"].item(), output["scores"], *(p.grad for p in model.parameters())])
        for one, other in zip(*gradients, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)

    def test_the_softmax_runs_over_all_labels_and_those_kept_move_with_those_drawn(
        self, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        few(monkeypatch)
        matcher = MaskMatcher.from_pretrained(tiny("bert"), MANY)
        data = data_of(matcher)
        assert data.memory is not None
        model = matcher.model
        with torch.no_grad():
            data.memory.vectors.neg_()  # what is kept now differs from what reading would give
            kept = data.memory.vectors.clone()
            output = model(**data.batch([0, 1]))
        texts = matcher.bank.tokenize(TEXTS[:2])
        full = torch.from_numpy(matcher.pipeline.scores(texts))
        fresh = (output["scores"] - full).abs().amax(dim=0) < 1e-3
        changed = (data.memory.vectors - kept).abs().amax(dim=1) > 1e-3
        assert changed.sum() == 3  # the texts' own label, the hardest wrong one, and one that was drawn
        assert fresh[0]
        assert fresh[changed].all()
        # Those not read were kept with opposite scores, and have moved by what the drawn one was off.
        moved = output["scores"][:, ~fresh] + full[:, ~fresh]
        torch.testing.assert_close(moved, moved[:, :1].expand_as(moved), rtol=1e-4, atol=1e-4)
        off = 2 * full[:, changed]  # of all three; that of the drawn one is among them
        assert ((off - moved[:, :1]).abs().amax(dim=0) < 1e-3).any()

    @settings(max_examples=50, deadline=None)
    @given(st.integers(1, 4), st.integers(1, 20), st.integers(0, 99), st.booleans())
    def test_a_move_that_all_scores_share_is_told_exactly(
        self, texts: int, drawn: int, seed: int, multi_label: bool
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        now = 9 * torch.randn(texts, drawn, generator=generator)
        moved = 9 * torch.randn(texts, 1, generator=generator)
        torch.testing.assert_close(lag(now, now - moved, multi_label), moved, rtol=1e-4, atol=1e-3)

    @pytest.mark.parametrize(
        ("multi_label", "join"), [(False, "mean"), (True, "mean"), (False, "max"), (False, "logsumexp")]
    )
    def test_a_step_pulls_on_average_as_one_that_reads_all_labels(
        self, tiny: Tiny, monkeypatch: pytest.MonkeyPatch, multi_label: bool, join: Any
    ) -> None:
        """Though no label but the texts' own has a large share of the probability."""
        few(monkeypatch, hardest=2, drawn=12)
        torch.manual_seed(0)
        several = {**dict.fromkeys(MANY), **PHRASES}
        similarity = SimilarityConfig(phrases=join)
        matcher = MaskMatcher.from_pretrained(tiny("bert"), several, multi_label=multi_label, similarity=similarity)
        truth: list[Any] = [[label] for label in TRUTH] if multi_label else TRUTH
        model = matcher.model.eval()

        def pull(encoding: LabelEncoding) -> torch.Tensor:
            assert matcher.labels is not None
            data = training_data(matcher.bank, TEXTS, truth, label_encoding=encoding)
            model.zero_grad()
            model(**data.batch(range(5)))["loss"].backward()
            return torch.cat([p.grad.flatten() for p in model.encoder.parameters() if p.grad is not None])

        whole = pull("full")
        mean = torch.stack([pull("sampled") for _ in range(40)]).mean(dim=0)
        assert (mean - whole).norm() < 0.2 * whole.norm()

    def test_a_step_reads_no_more_label_texts_than_it_should(self, tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
        """What is not read leaves nothing behind but its vector: no states, no gradient."""
        few(monkeypatch, hardest=2, drawn=2)
        matcher = MaskMatcher.from_pretrained(tiny("bert"), MANY)
        data = data_of(matcher)
        model = matcher.model
        read: list[tuple[int, bool]] = []
        model.prepare()  # which reads something, too

        def count(_: object, __: object, output: object) -> None:
            states: torch.Tensor = output.last_hidden_state  # type: ignore[attr-defined]
            read.append((states.shape[1], states.requires_grad))  # all in one long row, each at its mask alone

        hook = model.encoder.register_forward_hook(count)
        saved: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.numel()) or t, lambda t: t):
            model(**data.batch([0, 1]))["loss"].backward()
        hook.remove()
        assert sum(rows for rows, _ in read) == 2 + 1 + 2 + 2  # texts, their own label, hard ones, drawn ones
        assert all(gradient for _, gradient in read)
        table = model.encoder.get_input_embeddings().weight.numel()
        assert max(saved) <= max(table, len(MANY) * 16)  # the kept vectors themselves, not copies with a length


class TestTraining:
    @pytest.mark.parametrize("multi_label", [False, True])
    def test_it_learns_among_many_labels(self, tiny: Tiny, monkeypatch: pytest.MonkeyPatch, multi_label: bool) -> None:
        few(monkeypatch, hardest=8, drawn=4)
        matcher = MaskMatcher.from_pretrained(tiny("bert"), MANY, multi_label=multi_label)
        truth: list[Any] = [[label] for label in TRUTH] if multi_label else TRUTH
        matcher.fit(TEXTS, truth, **{**FAST, "epochs": 120, "learning_rate": 5e-3}, label_encoding="sampled")
        assert matcher.evaluate(TEXTS, truth).accuracy >= 0.9
        assert matcher.training_ is not None
        assert matcher.training_.config["label_encoding"] == "sampled"

    def test_same_seed_same_weights_whatever_loads_the_rows(self, tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
        few(monkeypatch)

        def trained(seed: int, **arguments: Any) -> MaskMatcher:
            matcher = MaskMatcher.from_pretrained(tiny("bert"), MANY)
            return matcher.fit(TEXTS, TRUTH, **SHORT, label_encoding="sampled", seed=seed, arguments=arguments)

        first = trained(1)
        assert same_weights(first, trained(1))
        assert not same_weights(first, trained(2))
        doubled = trained(1, gradient_accumulation_steps=2)
        assert same_weights(doubled, trained(1, gradient_accumulation_steps=2))

    def test_a_stopped_run_resumes_and_ends_like_an_uninterrupted_one(
        self, tiny: Tiny, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        few(monkeypatch)

        def fit(folder: str, **options: Any) -> MaskMatcher:
            matcher = MaskMatcher.from_pretrained(tiny("bert"), MANY)
            options = {**SHORT, "label_encoding": "sampled", "checkpoints": tmp_path / folder, **options}
            return matcher.fit(TEXTS, TRUTH, **options)

        whole = fit("whole")
        fit("half", callbacks=[Witness(6)])
        assert same_weights(whole, fit("half", resume=True))
        with pytest.raises(MaskMatchError, match="another run"):
            fit("half", resume=True, label_encoding="full")
        for checkpoint in (tmp_path / "half").glob("checkpoint-*"):
            (checkpoint / MEMORY_FILE).write_bytes(b"cut")
        assert same_weights(whole, fit("half", resume=True))  # from its beginning
        for checkpoint in (tmp_path / "half").glob("checkpoint-*"):
            (checkpoint / MEMORY_FILE).unlink()
        assert same_weights(whole, fit("half", resume=True))

    def test_it_trains_on_label_vectors_that_a_prediction_has_left(self, tiny: Tiny) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), MANY)
        matcher.predict(TEXTS)
        other = MaskMatcher.from_pretrained(tiny("bert"), MANY)
        for each in (matcher, other):
            each.fit(TEXTS, TRUTH, **SHORT, label_encoding="sampled")
        assert same_weights(matcher, other)

    def test_dev_data_is_read_with_exact_labels(self, tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
        few(monkeypatch)
        matcher = MaskMatcher.from_pretrained(tiny("bert"), MANY)
        matcher.fit(TEXTS, TRUTH, dev=(TEXTS, TRUTH), **SHORT, label_encoding="sampled")
        assert matcher.training_ is not None
        assert matcher.training_.dev is not None
        assert matcher.evaluate(TEXTS, TRUTH).accuracy == pytest.approx(matcher.training_.dev["accuracy"])

    @pytest.mark.parametrize("method", ["prompt-tuning", "fine-tuning"])
    def test_methods_without_label_prompts_have_none_to_choose_from(self, tiny: Tiny, method: str) -> None:
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, method=method)
        matcher.fit(TEXTS, TRUTH, **SHORT, label_encoding="sampled")
        assert matcher.training_ is not None
        assert matcher.training_.config["label_encoding"] == "full"
