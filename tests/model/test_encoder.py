"""The encoder: loading, its limit, and batches of like length."""

from __future__ import annotations

import copy
import json
import shutil
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from maskmatch.errors import MaskMatchError
from maskmatch.model.encoder import (
    DEFAULT_ADAPTER,
    DEFAULT_MODEL,
    EMBEDDED_MODEL,
    Encoder,
    TokenBatch,
    find_model,
    hidden_states,
    hidden_states_of_all,
    pad,
)
from maskmatch.prompts import FieldText, Prompt, PromptTokenizer, TokenizedPrompts
from maskmatch.prompts.batches import cheapest_groups, length_groups
from maskmatch.testing.tiny_encoders import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

POSITIONS_BEHIND_PADDING = ("roberta", "xlm-roberta", "mpnet")


@given(
    st.lists(st.integers(1, 300), max_size=60),
    st.one_of(st.none(), st.integers(1, 10)),
    st.floats(1.0, 3.0, allow_nan=False),
)
@settings(max_examples=150, deadline=None)
def test_groups_hold_every_row_once_and_rows_of_like_length(
    lengths: list[int], max_rows: int | None, ratio: float
) -> None:
    groups = length_groups(lengths, max_rows, ratio)
    rows = [int(row) for group in groups for row in group]
    assert sorted(rows) == list(range(len(lengths)))
    assert [lengths[row] for row in rows] == sorted(lengths), "shortest first"
    for group in groups:
        found = [lengths[row] for row in group]
        assert max(found) <= ratio * min(found)
        assert max_rows is None or len(group) <= max_rows
    for first, second in pairwise(groups):  # no group is closed before it has to be
        full = len(first) == max_rows
        assert full or lengths[second[0]] > ratio * lengths[first[0]]


@given(st.lists(st.integers(1, 60), max_size=9), st.integers(0, 80))
@settings(max_examples=150, deadline=None)
def test_no_other_groups_are_cheaper(lengths: list[int], group_cost: int) -> None:
    groups = cheapest_groups(np.array(lengths, dtype=np.int64), group_cost)
    rows = [int(row) for group in groups for row in group]
    assert sorted(rows) == list(range(len(lengths)))
    ascending = sorted(lengths)
    assert [lengths[row] for row in rows] == ascending, "shortest first"

    def cost(parts: list[list[int]]) -> int:
        return sum(len(part) * max(part) + group_cost for part in parts)

    every_way = []
    for cuts in range(2 ** max(0, len(lengths) - 1)):
        edges = [0, *(place + 1 for place in range(len(lengths) - 1) if cuts >> place & 1), len(lengths)]
        every_way.append(cost([ascending[start:stop] for start, stop in pairwise(edges) if start < stop]))
    assert cost([[lengths[row] for row in group] for group in groups]) == min(every_way)


@pytest.mark.parametrize("family", FAMILIES)
def test_words_looked_up_at_once_give_the_same_states_and_gradients(
    encoder: Callable[[str], Encoder], family: str
) -> None:
    found = encoder(family)
    model = copy.deepcopy(found.model).eval()
    tokenize = PromptTokenizer(found.tokenizer, 40)
    prompts = tokenize(Prompt("{text} is {mask}."), [{"text": FieldText(text)} for text in ("a", "b c", "d e f g h i")])
    batches = [pad(prompts, rows, found.pad_id) for rows in (np.array([0, 1]), np.array([2]))]

    def gradient(states: list[torch.Tensor]) -> torch.Tensor:
        inside = [each[batch.attention_mask.bool()] for each, batch in zip(states, batches, strict=True)]
        model.zero_grad()
        torch.cat(inside).square().sum().backward()  # type: ignore[no-untyped-call]
        changed: torch.Tensor = model.get_input_embeddings().weight.grad
        return torch.cat([torch.cat(inside).flatten(), changed.flatten()]).detach()

    together = gradient(hidden_states_of_all(model, batches))
    alone = gradient([hidden_states(model, batch) for batch in batches])
    torch.testing.assert_close(together, alone, rtol=1e-3, atol=1e-4)


def prompts_of(lengths: list[int]) -> TokenizedPrompts:
    ids = [np.arange(1, length + 1, dtype=np.int32) + 100 * row for row, length in enumerate(lengths)]
    positions = np.array([[row % length] for row, length in enumerate(lengths)], dtype=np.int64)
    return TokenizedPrompts(ids, positions, np.zeros(len(lengths), dtype=bool))


@given(st.lists(st.integers(1, 12), min_size=1, max_size=8), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_padding_adds_nothing_but_padding(lengths: list[int], random: Random) -> None:
    prompts = prompts_of(lengths)
    rows = np.array(random.sample(range(len(lengths)), random.randint(1, len(lengths))))
    batch = pad(prompts, rows, pad_id=7)
    assert batch.input_ids.shape == (len(rows), max(lengths[row] for row in rows))
    for place, row in enumerate(rows):
        length = lengths[row]
        assert batch.input_ids[place, :length].tolist() == prompts.input_ids[row].tolist()
        assert batch.input_ids[place, length:].eq(7).all()
        assert batch.attention_mask[place].tolist() == [1] * length + [0] * (batch.input_ids.shape[1] - length)
        assert batch.mask_positions[place].tolist() == prompts.mask_positions[row].tolist()
    assert batch.rows.tolist() == rows.tolist()


def test_a_part_of_a_batch_has_only_the_masks_of_its_rows() -> None:
    ids = torch.arange(12).reshape(3, 4)
    positions = torch.tensor([[1, 2], [0, 3], [2, -1]])
    batch = TokenBatch(ids, torch.ones_like(ids), positions, torch.tensor([4, 6, 9]))
    first, last = batch.part(0, 2), batch.part(2, None)
    assert first.mask_positions.tolist() == [[1, 2], [0, 3]]
    assert last.mask_positions.tolist() == [[2]]
    assert last.input_ids.tolist() == [[8, 9, 10, 11]]
    assert first.rows.tolist() == [4, 6]
    assert last.rows.tolist() == [9]


def test_a_batch_whose_tensors_do_not_agree_is_refused() -> None:
    ids = torch.zeros(2, 4, dtype=torch.long)
    positions, rows = torch.zeros(2, 1, dtype=torch.long), torch.arange(2)
    assert TokenBatch(ids, ids, positions, rows).to(torch.device("cpu")).input_ids.shape == (2, 4)
    for wrong in (
        (ids, ids[:1], positions, rows),
        (ids, ids[:, :3], positions, rows),
        (ids, ids, positions[:1], rows),
        (ids, ids, positions, rows[:1]),
    ):
        with pytest.raises(ValueError, match="must have the same number of rows"):
            TokenBatch(*wrong)


def copied(tiny: Callable[[str], Path], tmp_path: Path, family: str = "bert") -> Path:
    return shutil.copytree(tiny(family), tmp_path / family)


def refusal(folder: Path) -> str:
    with pytest.raises(MaskMatchError) as caught:
        Encoder.load(folder, "my-encoder")
    message = str(caught.value)
    assert "my-encoder" in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize("family", FAMILIES)
def test_an_encoder_is_loaded_without_a_pooler_and_ready_to_read(
    encoder: Callable[[str], Encoder], family: str
) -> None:
    found = encoder(family)
    assert found.source == family
    assert found.dimension == 16
    assert not found.model.training
    assert all(parameter.dtype == torch.float32 for parameter in found.model.parameters())
    assert not [name for name, _ in found.model.named_parameters() if "pooler" in name]


@pytest.mark.parametrize("family", FAMILIES)
def test_an_encoder_comes_back_as_it_was_saved(encoder: Callable[[str], Encoder], tmp_path: Path, family: str) -> None:
    found = encoder(family)
    found.save(tmp_path)
    back = Encoder.load(tmp_path, family)
    assert back.limit == found.limit
    weights = found.model.state_dict()
    assert all(torch.equal(tensor, weights[name]) for name, tensor in back.model.state_dict().items())
    text = "Where is my refund? [MASK] <mask>"
    assert back.tokenizer(text)["input_ids"] == found.tokenizer(text)["input_ids"]
    assert back.tokenizer.mask_token_id == found.tokenizer.mask_token_id


def test_what_is_no_folder_of_an_encoder_is_refused(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    assert "There is no folder" in refusal(tmp_path / "nowhere")
    file = tmp_path / "file.bin"
    file.write_bytes(b"x")
    assert "is a file; a model is a folder" in refusal(file)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "has no config.json" in refusal(empty)


def test_pickled_weights_are_refused(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    folder = copied(tiny, tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert "no safetensors weights; pickled weights are not loaded" in refusal(folder)


@pytest.mark.parametrize("config", ["{", "[]", "{}", '{"model_type": "no-such-model"}'])
def test_a_damaged_config_is_refused(tiny: Callable[[str], Path], tmp_path: Path, config: str) -> None:
    folder = copied(tiny, tmp_path)
    (folder / "config.json").write_text(config)
    assert "could not be loaded: " in refusal(folder)


def test_damaged_weights_are_refused(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    folder = copied(tiny, tmp_path)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert "could not be loaded: " in refusal(folder)


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_weights_that_are_not_whole_are_refused(tiny: Callable[[str], Path], tmp_path: Path, family: str) -> None:
    folder = copied(tiny, tmp_path, family)
    tensors = load_file(folder / "model.safetensors")
    gone = next(name for name in tensors if "layers.1." in name or "layer.1." in name)
    save_file({name: tensor for name, tensor in tensors.items() if name != gone}, folder / "model.safetensors")
    message = refusal(folder)
    assert "1 are missing" in message
    assert gone in message


def test_weights_of_another_size_are_refused(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    folder = copied(tiny, tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "hidden_size": 32}))
    assert "could not be loaded: " in refusal(folder)


def test_an_encoder_with_a_head_is_loaded_without_it(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    import transformers

    folder = copied(tiny, tmp_path)
    config = transformers.AutoConfig.from_pretrained(folder)
    torch.manual_seed(1)
    with_head = transformers.BertForMaskedLM(config)
    with_head.save_pretrained(folder)
    found = Encoder.load(folder, "bert")
    assert torch.equal(
        found.model.get_input_embeddings().weight,
        with_head.get_input_embeddings().weight,  # type: ignore[union-attr]
    )
    assert all(name.startswith(("embeddings.", "encoder.")) for name in found.model.state_dict())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_prompt_as_long_as_the_limit_can_be_read(tiny: Callable[[str], Path], tmp_path: Path, family: str) -> None:
    folder = copied(tiny, tmp_path, family)
    settings_file = folder / "tokenizer_config.json"
    stored = json.loads(settings_file.read_text())
    settings_file.write_text(json.dumps({**stored, "model_max_length": int(1e30)}))
    found = Encoder.load(folder, family)
    assert found.limit == (78 if family in POSITIONS_BEHIND_PADDING else 80)
    assert found.max_length(None) == found.limit
    assert found.max_length(found.limit) == found.limit
    prompts = PromptTokenizer(found.tokenizer, found.limit)(
        Prompt("{text} It is {mask}."), [{"text": FieldText("card " * 200)}]
    )
    assert prompts.lengths.tolist() == [found.limit]
    pad_id = int(found.tokenizer.pad_token_id)  # type: ignore[arg-type]
    with torch.inference_mode():
        states = hidden_states(found.model, pad(prompts, np.array([0]), pad_id))
    assert states.shape == (1, found.limit, 16)
    assert states.isfinite().all()
    if family in POSITIONS_BEHIND_PADDING:  # and one more could not
        longer = TokenizedPrompts(
            [np.append(prompts.input_ids[0], prompts.input_ids[0][-1])], prompts.mask_positions, prompts.cut
        )
        with pytest.raises((IndexError, RuntimeError)), torch.inference_mode():
            hidden_states(found.model, pad(longer, np.array([0]), pad_id))


def test_the_limit_of_the_tokenizer_counts_too(encoder: Callable[[str], Encoder]) -> None:
    found = encoder("bert")
    assert found.limit == 64
    assert found.max_length(None) == 64
    assert found.max_length(10) == 10
    with pytest.raises(MaskMatchError, match="max_length is 65, but bert reads at most 64 tokens"):
        found.max_length(65)
    for too_short in (0, -1):
        with pytest.raises(MaskMatchError, match="at least 8"):
            PromptTokenizer(found.tokenizer, found.max_length(too_short))


def test_a_long_encoder_reads_256_tokens_unless_more_are_wanted(encoder: Callable[[str], Encoder]) -> None:
    found = encoder("bert")
    long = Encoder(found.model, found.tokenizer, "long", limit=8192)
    assert long.max_length(None) == 256
    assert long.max_length(1000) == 1000


def test_models_are_found(tmp_path: Path) -> None:
    assert find_model(None) == (DEFAULT_ADAPTER, DEFAULT_MODEL) == find_model(DEFAULT_MODEL)
    folder, name = find_model(EMBEDDED_MODEL)
    assert name == EMBEDDED_MODEL
    assert (folder / "model.safetensors").is_file()
    assert find_model("sentence-transformers/all-MiniLM-L6-v2") == (folder, EMBEDDED_MODEL)
    assert find_model(tmp_path) == (tmp_path, str(tmp_path))


@pytest.mark.parametrize("name", ["./nowhere", "/no/where", "a/b/c", "nowhere/", "~/no-such-folder-here"])
def test_a_folder_that_is_not_there_is_not_looked_for_on_the_hub(name: str) -> None:
    with pytest.raises(MaskMatchError, match=f"^There is no folder {name}.$"):
        find_model(name)


@pytest.mark.parametrize("name", ["nobody/no-such-model", "no-such-model", "not a name"])
def test_a_hub_model_that_cannot_be_fetched_is_refused(name: str) -> None:
    with pytest.raises(MaskMatchError, match="the hub has no model of that name or cannot be reached"):
        find_model(name)


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
def test_an_attention_from_the_hub_is_refused(tiny: Any, tmp_path: Path, key: str) -> None:
    shutil.copytree(tiny("bert"), tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(json.dumps({**config, key: "someone/kernel"}))
    with pytest.raises(MaskMatchError, match="'someone/kernel'"):
        Encoder.load(tmp_path / "model", "model")
