"""The one training loop: transformers' Trainer over pooled batches of texts and label prompts."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import (
    EarlyStoppingCallback,
    PrinterCallback,
    ProgressCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from maskmatch.config.training import TrainingConfig, TrainingSummary
from maskmatch.errors import MaskMatchError
from maskmatch.files import scratch_folder
from maskmatch.progress import progress_bar
from maskmatch.storage.layout import portable_name
from maskmatch.training.batches import EpochOrder, TokenBatches, batch_count, needs_token_batches
from maskmatch.training.checkpoints import CheckpointSealer, checkpoint_to_resume, writing_checkpoints
from maskmatch.training.divergence import check_learned

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from maskmatch.model.matching import MatchingModel
    from maskmatch.training.label_sampling import LabelMemory

logger = logging.getLogger("maskmatch")

EVALUATIONS = 10
"""How many times a run evaluates on dev."""

ONE_TRAINING = threading.RLock()
"""Held by the thread that trains: torch's random numbers and accelerate's state belong to the whole process."""


class BatchSource(Protocol):
    """What the loop trains on: batches of rows for :meth:`MatchingModel.forward`."""

    def __len__(self) -> int: ...

    @property
    def labels(self) -> int:
        """The number of labels."""

    @property
    def cut(self) -> int:
        """How many texts were truncated."""

    @property
    def tokens(self) -> NDArray[np.int64]:
        """The number of tokens that a step encodes per row, besides labels that are encoded once for all: (n,)."""

    @property
    def memory(self) -> LabelMemory | None:
        """The last known vectors of label texts, which belong to a checkpoint."""

    @property
    def stages(self) -> tuple[int, ...]:
        """The steps at which another loss begins, so that losses before and after cannot be compared."""

    def batch(self, rows: Sequence[int]) -> dict[str, Any]:
        """A batch of some rows."""

    def digest(self) -> str:
        """A digest of the data."""


def train(
    model: MatchingModel,
    data: BatchSource,
    config: TrainingConfig,
    evaluate: Callable[[], dict[str, float]] | None = None,
    callbacks: Sequence[TrainerCallback] = (),
) -> TrainingSummary:
    """Train a model in place. Other threads that want to train wait.

    Args:
        model: The model.
        data: The training data.
        config: How to train.
        evaluate: Metrics on dev for the weights of now, with "score" as the one to choose by.
        callbacks: Further callbacks of transformers.
    """
    checkpoint = _checkpoint(model, data, config)
    model.dropout = model.default_dropout if config.dropout is None else config.dropout
    if data.memory is not None:
        callbacks = [*callbacks, LabelMemorySaver(data.memory)]
    if config.checkpoints is not None:
        callbacks = [*callbacks, CheckpointSealer()]  # last: it seals what the others wrote
    with ONE_TRAINING, scratch_folder() as scratch:
        trainer = _trainer(model, data, config, evaluate, callbacks, scratch=scratch)
        started = time.perf_counter()
        try:
            with writing_checkpoints(str(trainer.args.output_dir)):
                result = trainer.train(resume_from_checkpoint=checkpoint)
        finally:
            model.eval()  # also when training was interrupted
        seconds = time.perf_counter() - started
        check_learned(model, trainer.args, trainer.state, data.stages)
    return TrainingSummary(
        texts=len(data),
        labels=data.labels,
        steps=trainer.state.global_step,
        epochs=round(float(trainer.state.epoch or 0), 2),
        seconds=round(seconds, 2),
        loss=float(result.training_loss),
        cut=data.cut,
        dev=evaluate() if evaluate is not None else None,
        config=_run_settings(data, config),
    )


def _checkpoint(model: MatchingModel, data: BatchSource, config: TrainingConfig) -> str | None:
    """The checkpoint to resume from, if any; the memory of label vectors is then that of the checkpoint."""
    if config.checkpoints is None:
        return None
    folder = Path(config.checkpoints).expanduser()
    checkpoint = checkpoint_to_resume(folder, config.resume, _run(model, data, config), model.state_dict())
    if data.memory is not None and checkpoint is not None:
        data.memory.load(Path(checkpoint))
    return checkpoint


def _trainer(
    model: MatchingModel,
    data: BatchSource,
    config: TrainingConfig,
    evaluate: Callable[[], dict[str, float]] | None,
    callbacks: Sequence[TrainerCallback],
    *,
    scratch: str,
) -> MatchTrainer:
    """The Trainer of these data."""
    on_cpu = next(model.parameters()).device.type == "cpu"  # compute where the encoder is
    rows = _RowNumbers(len(data))
    args = _arguments(config, data.tokens, has_dev=evaluate is not None, on_cpu=on_cpu, scratch=scratch)
    trainer = MatchTrainer(
        model=model,
        args=args,
        train_dataset=rows,
        eval_dataset=None if evaluate is None else rows,  # required, but never read: see MatchTrainer.evaluate
        data_collator=data.batch,
        callbacks=[*callbacks, TrainingProgress()],
        head_rate=config.head_rate,
        evaluate_on_dev=evaluate,
        batches=_token_batches(config, args, data.tokens),
    )
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    if evaluate is not None and config.patience is not None:
        trainer.add_callback(EarlyStoppingCallback(config.patience))
    return trainer


class MatchTrainer(Trainer):
    """transformers' Trainer with a higher rate for new parameters, our own batches, and our own evaluation.

    Dev data goes through the one prediction pipeline, instead of a second one here.
    """

    def __init__(
        self,
        *,
        head_rate: float,
        evaluate_on_dev: Callable[[], dict[str, float]] | None,
        batches: TokenBatches | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._head_rate = head_rate
        self._evaluate_on_dev = evaluate_on_dev
        self._batches = batches

    def get_train_dataloader(self) -> DataLoader[Any]:
        """The training data, in token batches if ``batch_size`` texts may have too many tokens."""
        if self._batches is None:
            return super().get_train_dataloader()
        assert self.train_dataset is not None
        loader: DataLoader[Any] = self.accelerator.prepare(
            DataLoader(
                self.train_dataset,
                batch_sampler=self._batches,
                collate_fn=self.data_collator,
                num_workers=self.args.dataloader_num_workers,
                pin_memory=self.args.dataloader_pin_memory,
                persistent_workers=self.args.dataloader_persistent_workers,
                prefetch_factor=self.args.dataloader_prefetch_factor,
            )
        )
        return loader

    def create_optimizer(self, model: torch.nn.Module | None = None) -> torch.optim.Optimizer:
        """Parameter groups: pretrained and new, each with and without weight decay."""
        if self.optimizer is None:
            trained: Any = model or self.model
            matching: Any = self.model
            decayed = set(self.get_decay_parameter_names(trained))
            rate = self.args.learning_rate
            groups: dict[tuple[bool, bool], list[torch.nn.Parameter]] = {}
            for name, parameter in trained.named_parameters():
                if parameter.requires_grad:
                    pretrained = matching.is_pretrained(name.removeprefix("module."))
                    groups.setdefault((pretrained, name in decayed), []).append(parameter)
            optimizer_class, options = self.get_optimizer_cls_and_kwargs(self.args, trained)
            options.pop("lr", None)
            self.optimizer = optimizer_class(
                [
                    {
                        "params": parameters,
                        "lr": rate if pretrained else rate * self._head_rate,
                        "weight_decay": self.args.weight_decay if decay else 0.0,
                    }
                    for (pretrained, decay), parameters in groups.items()
                ],
                lr=rate,
                **options,
            )
        return self.optimizer

    def evaluate(self, *args: Any, metric_key_prefix: str = "eval", **options: Any) -> dict[str, float]:
        """Metrics on the dev data."""
        assert self._evaluate_on_dev is not None
        metrics = {f"{metric_key_prefix}_{name}": value for name, value in self._evaluate_on_dev().items()}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics


class TrainingProgress(TrainerCallback):
    """A progress bar on standard error."""

    def __init__(self) -> None:
        self._bar: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        """Open the bar."""
        if state.is_world_process_zero:
            self._bar = progress_bar(state.max_steps, "training", "step")
            self._bar.update(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        """Move it on."""
        if self._bar is not None:
            self._bar.update(state.global_step - self._bar.n)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **options: Any) -> None:
        """Show the latest loss and score."""
        if self._bar is not None and logs:
            self._bar.show({name: logs[name] for name in ("loss", "eval_score") if name in logs})

    def on_train_end(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        """Close it."""
        if self._bar is not None:
            self._bar.close()


class LabelMemorySaver(TrainerCallback):
    """Writes the last known label vectors into each checkpoint that a run can be resumed from."""

    def __init__(self, memory: LabelMemory) -> None:
        self._memory = memory

    def on_save(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        """Complete the checkpoint."""
        if state.is_world_process_zero and not args.save_only_model:
            self._memory.save(Path(args.output_dir) / f"checkpoint-{state.global_step}")


class _RowNumbers(Dataset[int]):
    """The rows of the training data by number: their texts are tokenized already."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, row: int) -> int:
        return row


def _token_batches(config: TrainingConfig, args: TrainingArguments, tokens: NDArray[np.int64]) -> TokenBatches | None:
    """Token batches, if ``batch_size`` texts may have too many tokens; on one device only."""
    batch_size = args.per_device_train_batch_size
    if args.world_size > 1 or args.n_gpu > 1 or not needs_token_batches(tokens, batch_size, config.max_tokens):
        return None
    order = EpochOrder(len(tokens), config.seed if args.data_seed is None else args.data_seed)
    batches = TokenBatches(order, tokens, batch_size, config.max_tokens)
    if 2 * len(tokens) < batch_size * len(batches):
        logger.warning(
            "The texts are long: a step takes %.1f texts on average instead of %d, because max_tokens is %d.",
            len(tokens) / len(batches),
            batch_size,
            config.max_tokens,
        )
    return batches


def _steps(config: TrainingConfig, tokens: NDArray[np.int64]) -> int:
    """The number of steps of a run, with everything that further arguments change."""
    given = config.arguments
    try:
        if given.get("max_steps", -1) > 0:
            return int(given["max_steps"])
        batch_size: int = given.get("per_device_train_batch_size", config.batch_size)
        batches_per_step: int = given.get("gradient_accumulation_steps", 1)
        batches = math.ceil(len(tokens) / batch_size)
        if needs_token_batches(tokens, batch_size, config.max_tokens):
            batches = batch_count(tokens, batch_size, config.max_tokens)
        steps_per_epoch = math.ceil(batches / batches_per_step)
        epochs: float = given.get("num_train_epochs", config.epochs)
        return math.ceil(steps_per_epoch * epochs)
    except (TypeError, ZeroDivisionError) as error:
        raise MaskMatchError(f"The training arguments do not fit: {error}") from error


def _arguments(
    config: TrainingConfig, tokens: NDArray[np.int64], *, has_dev: bool, on_cpu: bool, scratch: str
) -> TrainingArguments:
    steps = _steps(config, tokens)
    interval = max(1, math.ceil(steps / EVALUATIONS))
    keeps = has_dev or config.checkpoints is not None
    defaults: dict[str, Any] = {
        "output_dir": str(Path(config.checkpoints).expanduser() if config.checkpoints else scratch),
        "num_train_epochs": config.epochs,
        "learning_rate": config.learning_rate,
        "per_device_train_batch_size": config.batch_size,
        "weight_decay": config.weight_decay,
        "warmup_steps": 0.1 if steps >= 10 else 0,  # the first step of a warm-up has a rate of zero
        "lr_scheduler_type": "linear",
        "optim": "adamw_torch_fused",
        "seed": config.seed,
        "data_seed": config.seed,
        "logging_steps": interval,
        "logging_nan_inf_filter": False,  # NaN must not look like zero
        "use_cpu": on_cpu,
        "report_to": "none",
        "disable_tqdm": True,
        "remove_unused_columns": False,
        "dataloader_pin_memory": torch.cuda.is_available(),
        "eval_strategy": "steps" if has_dev else "no",
        "eval_steps": interval,
        "save_strategy": "steps" if keeps else "no",
        "save_steps": interval,
        "save_total_limit": 2,
        "save_only_model": config.checkpoints is None,
        "load_best_model_at_end": has_dev,
        "metric_for_best_model": "eval_score" if has_dev else None,
        "greater_is_better": True if has_dev else None,
    }
    try:
        return TrainingArguments(**{**defaults, **config.arguments})
    except (TypeError, ValueError) as error:
        raise MaskMatchError(f"The training arguments do not fit: {error}") from error


def _run(model: MatchingModel, data: BatchSource, config: TrainingConfig) -> dict[str, Any]:
    """The identity of a run: a digest of what it learns from, and all settings of classifier and training."""
    settings = {**model.settings.identity(), **config.identity(), "label_encoding": _label_encoding(data)}
    return {"data": data.digest(), **settings}


def _run_settings(data: BatchSource, config: TrainingConfig) -> dict[str, Any]:
    """The settings of a run for its summary: those that are set, without folders of this machine."""
    settings = {**config.identity(), "label_encoding": _label_encoding(data)}
    settings["arguments"] = {
        name: portable_name(value) if isinstance(value, str) and os.path.isabs(value) else value
        for name, value in settings["arguments"].items()
    }
    return {name: value for name, value in settings.items() if value is not None and value != {}}


def _label_encoding(data: BatchSource) -> str:
    return "full" if data.memory is None else "sampled"
