"""A small change of an encoder: low-rank additions to its matrices, merged into the weights when it is loaded.

The files are those of the peft library (LoRA), so that its users can read them too; nothing of it is needed here,
because merging is one matrix product a matrix, and training a parametrization that PyTorch brings.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn
from torch.nn.utils import parametrize

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"
PREFIX = "base_model.model."


class LowRank(nn.Module):
    """A matrix plus the product of two thin ones; the second begins at zero, so that nothing changes at first."""

    def __init__(self, matrix: torch.Tensor, rank: int) -> None:
        super().__init__()
        out, into = matrix.shape
        self.down = nn.Parameter(torch.randn(rank, into, device=matrix.device) / into**0.5)
        self.up = nn.Parameter(torch.zeros(out, rank, device=matrix.device))

    def forward(self, matrix: torch.Tensor) -> torch.Tensor:
        """(out, in) → (out, in)."""
        return matrix + self.up @ self.down


@dataclass(frozen=True)
class Adapter:
    """The learned additions: for each matrix by its module's name, ``up @ down`` is added to it.

    Attributes:
        base: The name or folder of the encoder that it belongs to.
        base_digest: A digest of that encoder's matrices, so that it is never added to others.
        matrices: Pairs (down (rank, in), up (out, rank)).
    """

    base: str
    base_digest: str
    matrices: Mapping[str, tuple[torch.Tensor, torch.Tensor]]

    @property
    def rank(self) -> int:
        """The rank of the additions."""
        return len(next(iter(self.matrices.values()))[0])

    def merge_into(self, model: nn.Module) -> None:
        """Add the learned change to an encoder's weights, in place."""
        modules = dict(model.named_modules())
        if not self.matrices.keys() <= modules.keys() or self.base_digest != matrices_digest(model, self.matrices):
            raise MaskMatchError(
                f"The adapter belongs to {self.base}, whose weights differ from those that were loaded."
            )
        with torch.no_grad():
            for name, (down, up) in self.matrices.items():
                weight: Any = modules[name].weight
                weight += (up.float() @ down.float()).to(weight)

    def halved(self) -> Adapter:
        """The same in half precision, as it is saved."""
        return replace(self, matrices={name: (down.half(), up.half()) for name, (down, up) in self.matrices.items()})

    def save(self, folder: Path) -> None:
        """Write the adapter, in half precision."""
        tensors = {}
        for name, (down, up) in self.halved().matrices.items():
            tensors[f"{PREFIX}{name}.lora_A.weight"] = down.contiguous().cpu()
            tensors[f"{PREFIX}{name}.lora_B.weight"] = up.contiguous().cpu()
        save_file(tensors, folder / WEIGHTS_FILE, metadata={"base_digest": self.base_digest})
        config = {
            "base_model_name_or_path": self.base,
            "bias": "none",
            "fan_in_fan_out": False,
            "inference_mode": True,
            "lora_alpha": self.rank,
            "lora_dropout": 0.0,
            "peft_type": "LORA",
            "r": self.rank,
            "target_modules": sorted(self.matrices),
            "task_type": "FEATURE_EXTRACTION",
        }
        (folder / CONFIG_FILE).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Adapter:
        """Read the adapter that lies in a folder."""
        try:
            config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
            base, scale = str(config["base_model_name_or_path"]), config["lora_alpha"] / config["r"]
            with safe_open(folder / WEIGHTS_FILE, framework="pt") as file:
                digest = (file.metadata() or {})["base_digest"]
                names = [
                    name.removeprefix(PREFIX).removesuffix(".lora_A.weight")
                    for name in file.keys()  # noqa: SIM118 - not a dict
                    if name.endswith(".lora_A.weight")
                ]
                matrices = {
                    name: (
                        file.get_tensor(f"{PREFIX}{name}.lora_A.weight"),
                        file.get_tensor(f"{PREFIX}{name}.lora_B.weight") * scale,
                    )
                    for name in names
                }
        except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError, SafetensorError) as error:
            raise MaskMatchError(f"The adapter in {folder} is damaged or not one of maskmatch: {error}") from error
        return cls(base, digest, matrices)


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter instead of an encoder."""
    return (folder / CONFIG_FILE).is_file()


def attach(model: nn.Module, rank: int) -> None:
    """Let an encoder learn nothing but low-rank additions to the matrices of its layers."""
    model.requires_grad_(False)
    for module in _matrices(model).values():
        parametrize.register_parametrization(module, "weight", LowRank(module.weight, rank))


def detach(model: nn.Module, base: str) -> Adapter:
    """Take the learned additions off an encoder, which is then as it was before :func:`attach`."""
    matrices = {}
    for name, module in _matrices(model).items():
        additions: Any = module.parametrizations["weight"][0]
        matrices[name] = (additions.down.detach(), additions.up.detach())
        original = module.parametrizations["weight"].original.detach().clone()
        parametrize.remove_parametrizations(module, "weight", leave_parametrized=False)
        module.weight.data.copy_(original)
    model.requires_grad_(True)
    return Adapter(base, matrices_digest(model, matrices), matrices)


def matrices_digest(model: nn.Module, names: Mapping[str, Any]) -> str:
    """A digest of the first row of each of these matrices: enough to tell one encoder from another, at no cost."""
    modules = dict(model.named_modules())
    digest = hashlib.sha256()
    for name in sorted(names):
        weight: Any = modules[name].weight
        digest.update(f"{name}{tuple(weight.shape)}".encode())
        digest.update(weight[0].detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()


def _matrices(model: nn.Module) -> dict[str, Any]:
    """The matrices of an encoder by the names of their modules."""
    return {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}
