"""A LoRA adapter: low-rank additions to an encoder's matrices, merged into the weights when it is loaded.

The files are those of the peft library (LoRA), so that its users can read them too; nothing of it is needed here,
because merging is one matrix product a matrix, and training a parametrization that PyTorch brings.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn
from torch.nn.utils import parametrize

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"
PREFIX, DOWN, UP = "base_model.model.", ".lora_A.weight", ".lora_B.weight"
"""The prefix and the suffixes of the names of weights."""

ENCODERS_VARIABLE = "MASKMATCH_ENCODERS"
"""Environment variable: folders that contain encoders, to find those that are not where an adapter expects them."""


class LowRank(nn.Module):
    """A matrix plus the product of two thin ones; the second starts at zero, so that nothing changes at first."""

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
        base: The encoder that it belongs to: a name, a hub id, or an absolute folder. A saved adapter names a folder
            by a relative path.
        base_digest: A digest of that encoder's matrices, so that it is never added to others.
        matrices: Pairs (down (rank, in), up (out, rank)).
    """

    base: str
    base_digest: str
    matrices: Mapping[str, tuple[torch.Tensor, torch.Tensor]]

    @property
    def base_is_folder(self) -> bool:
        """Whether the encoder is a folder of this machine, rather than a name or a hub id."""
        return Path(self.base).is_absolute()

    @property
    def base_name(self) -> str:
        """The name of the encoder without the path of its folder."""
        return Path(self.base).name if self.base_is_folder else self.base

    @property
    def rank(self) -> int:
        """The rank of the additions."""
        return len(next(iter(self.matrices.values()))[0])

    @property
    def is_finite(self) -> bool:
        """Whether no number is NaN or inf, as diverged training leaves them."""
        return all(bool(torch.isfinite(part).all()) for pair in self.matrices.values() for part in pair)

    def merge_into(self, model: nn.Module) -> None:
        """Add the learned change to an encoder's weights, in place.

        Products of half-precision numbers and their sums are exact in double precision, so every machine gets the same
        weights, and an adapter over this one knows them again by their digest.
        """
        modules = _matrices(model)
        if not self.matrices.keys() <= modules.keys() or self.base_digest != matrices_digest(model, self.matrices):
            raise MaskMatchError(
                f"The adapter belongs to {self.base}, whose weights differ from those that were loaded."
            )
        for name, (down, up) in self.matrices.items():
            if modules[name].weight.shape != (len(up), down.shape[1]):
                raise MaskMatchError(f"The adapter of {self.base} is damaged: {name} is not of the encoder's size.")
        with torch.no_grad():
            for name, (down, up) in self.matrices.items():
                weight: Any = modules[name].weight
                weight += (up.double() @ down.double()).to(weight)

    def halved(self) -> Adapter:
        """The same in half precision, as it is saved."""
        return replace(self, matrices={name: (down.half(), up.half()) for name, (down, up) in self.matrices.items()})

    def save(self, folder: Path, destination: Path | None = None) -> None:
        """Write the adapter, in half precision.

        Args:
            folder: The folder to write to.
            destination: The final folder, if the files are moved there afterwards.
        """
        tensors = {}
        for name, (down, up) in self.halved().matrices.items():
            tensors[f"{PREFIX}{name}{DOWN}"] = down.contiguous().cpu()
            tensors[f"{PREFIX}{name}{UP}"] = up.contiguous().cpu()
        save_file(tensors, folder / WEIGHTS_FILE, metadata={"base_digest": self.base_digest})
        config = {
            "base_model_name_or_path": relative_base(self.base, destination or folder),
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
        """Load the adapter in a folder."""
        try:
            config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
            base, rank, scale = config["base_model_name_or_path"], config["r"], config["lora_alpha"] / config["r"]
            base = resolve_base(base, folder) if isinstance(base, str) else base
            digest, tensors = _read_tensors(folder / WEIGHTS_FILE)
            names = [name[: -len(DOWN)] for name in tensors if name.endswith(DOWN)]
            adapter = cls(
                base,
                digest,
                {name.removeprefix(PREFIX): (tensors[name + DOWN], tensors[name + UP] * scale) for name in names},
            )
            _check(adapter, rank)
        except KeyError as error:
            raise MaskMatchError(f"The adapter in {folder} is damaged or not one of maskmatch: no {error}.") from error
        except (OSError, ValueError, TypeError, ArithmeticError, RecursionError, SafetensorError) as error:
            raise MaskMatchError(f"The adapter in {folder} is damaged or not one of maskmatch: {error}") from error
        return adapter


def relative_base(base: str, folder: Path) -> str:
    """Return how an adapter in a folder names its encoder. An absolute path would only be valid on this machine.

    A folder that shares a parent with the adapter, other than the root, gets a relative path. Any other folder gets the
    path that it would have beside the adapter: it can be copied or linked there.

    >>> relative_base("/home/me/encoders/bert", Path("/home/me/adapters/mine"))
    '../../encoders/bert'
    >>> relative_base("/encoders/bert", Path("/home/me/adapters/mine"))
    '../bert'
    >>> relative_base("FacebookAI/roberta-base", Path("/home/me/adapters/mine"))
    'FacebookAI/roberta-base'
    """
    encoder, adapter = Path(base), folder.resolve()
    if not encoder.is_absolute():
        return base
    shared = Path(os.path.commonpath([encoder, adapter])) if encoder.anchor == adapter.anchor else None
    if shared is None or shared == shared.parent:  # another drive, or nothing in common but the root
        return f"../{encoder.name}"
    relative = Path(os.path.relpath(encoder, adapter)).as_posix()
    return relative if relative.startswith("..") else f"./{relative}"


def resolve_base(base: str, folder: Path) -> str:
    """Return the encoder that an adapter in a folder names: relative paths become absolute, names stay as they are.

    A folder that does not exist is looked up by its name in the folders of MASKMATCH_ENCODERS.
    """
    if not base.startswith(("./", "../")) and not Path(base).is_absolute():
        return base
    path = (folder.resolve() / base).resolve()
    if not path.exists():
        parents = filter(None, os.environ.get(ENCODERS_VARIABLE, "").split(os.pathsep))
        candidates = [Path(parent).expanduser() / path.name for parent in parents]
        path = next((candidate.resolve() for candidate in candidates if candidate.is_dir()), path)
    return str(path)


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter instead of an encoder."""
    return (folder / CONFIG_FILE).is_file()


def attach(model: nn.Module, rank: int) -> None:
    """Freeze an encoder but for low-rank additions to the matrices of its layers."""
    model.requires_grad_(False)
    for module in _matrices(model).values():
        parametrize.register_parametrization(module, "weight", LowRank(module.weight, rank))


def largest_rank(model: nn.Module) -> int:
    """Return the largest rank of an adapter for an encoder: the smallest side of its matrices."""
    return min(int(side) for module in _matrices(model).values() for side in module.weight.shape)


def detach(model: nn.Module, base: str) -> Adapter:
    """Remove the learned additions from an encoder, which is then as it was before :func:`attach`."""
    matrices = {}
    for name, module in _matrices(model).items():
        additions: Any = module.parametrizations["weight"][0]
        matrices[name] = (additions.down.detach(), additions.up.detach())
        original = module.parametrizations["weight"].original.detach().clone()
        parametrize.remove_parametrizations(module, "weight", leave_parametrized=False)
        module.weight.data.copy_(original)
    model.requires_grad_(True)
    return Adapter(base, matrices_digest(model, matrices), matrices)


def matrices_digest(model: nn.Module, names: Iterable[str] | None = None) -> str:
    """A digest of the first row of each of these matrices, or of all: it identifies an encoder at no cost."""
    modules = _matrices(model)
    digest = hashlib.sha256()
    for name in sorted(modules if names is None else names):
        weight: Any = modules[name].weight
        digest.update(f"{name}{tuple(weight.shape)}".encode())
        digest.update(weight[0].detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()


def _read_tensors(file: Path) -> tuple[str, dict[str, torch.Tensor]]:
    """The digest of the encoder that an adapter belongs to, and its tensors by name."""
    with safe_open(file, framework="pt") as tensors:
        digest = (tensors.metadata() or {})["base_digest"]
        return digest, {name: tensors.get_tensor(name) for name in tensors.keys()}  # noqa: SIM118 - not a dict


def _check(adapter: Adapter, rank: Any) -> None:
    """Raise for what cannot be merged into any encoder."""
    if not isinstance(adapter.base, str) or not adapter.base:
        raise ValueError(f"it names {adapter.base!r} as its encoder.")
    if not adapter.matrices:
        raise ValueError("it holds no matrices.")
    for name, (down, up) in adapter.matrices.items():
        if down.dim() != 2 or up.dim() != 2 or {len(down), up.shape[1]} != {rank}:
            raise ValueError(f"{name} is not of rank {rank}.")
    if not adapter.is_finite:
        raise ValueError("it holds NaN or inf.")


def _matrices(model: nn.Module) -> dict[str, Any]:
    """The matrices of an encoder by the names of their modules."""
    return {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}
