"""Ray Data: a class for ``map_batches``, and a function that calls it with an actor pool.

>>> from maskmatch.integrations.ray import classify                      # doctest: +SKIP
>>> answers = classify(ray.data.read_parquet("texts"), "support-bot")    # doctest: +SKIP
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from maskmatch.errors import MaskMatchError
from maskmatch.integrations.arrow import AnswerOptions, ArrowPredictor, config_in, model_hash
from maskmatch.prediction.answers import check_count
from maskmatch.prediction.predictor import CHUNK_SIZE

if TYPE_CHECKING:
    from pathlib import Path

    from ray.data import Dataset

INSTALL = 'Ray is not installed; install it with pip install "maskmatch[ray]".'


class RayPredictor(ArrowPredictor):
    """For ``Dataset.map_batches`` with an actor pool and ``batch_format="pyarrow"``.

    It computes with the threads that the actor was given (``num_cpus``), unless ``threads`` says otherwise.

    Args:
        folder: The folder of a saved classifier or of an export, which all machines can read.
        **options: The fields of ``AnswerOptions``.
    """

    def __init__(self, folder: str | Path, **options: Any) -> None:
        options.setdefault("threads", assigned_threads())
        super().__init__(folder, **options)


def assigned_threads() -> int | None:
    """The processors of this actor or task; None outside of one."""
    import ray

    if not ray.is_initialized():
        return None
    context = ray.get_runtime_context()
    if context.worker.mode != ray.WORKER_MODE:
        return None
    return max(1, int(context.get_assigned_resources().get("CPU", 1)))


def pool_options(actors: int, threads: int) -> dict[str, Any]:
    """The options of ``map_batches`` for a pool of actors. Ray Data starts them again when they die, and repeats tasks.

    Args:
        actors: How many actors.
        threads: How many processors each of them has.
    """
    from ray.data import ActorPoolStrategy

    return {
        "compute": ActorPoolStrategy(size=actors, max_tasks_in_flight_per_actor=2),
        "batch_format": "pyarrow",
        "num_cpus": threads,
    }


def classify(
    dataset: Dataset, folder: str | Path, *, actors: int = 1, threads: int = 1, rows: int = CHUNK_SIZE, **options: Any
) -> Dataset:
    """A dataset with the columns of answers.

    Args:
        dataset: The rows.
        folder: The folder of a saved classifier or of an export, which all machines can read.
        actors: How many actors; actors times threads should be the processors of the cluster.
        threads: How many processors each actor has.
        rows: How many rows an actor answers at once.
        **options: The fields of ``AnswerOptions``.
    """
    try:
        import ray.data  # noqa: F401
    except ImportError as error:
        raise MaskMatchError(INSTALL) from error
    for count, name in ((actors, "actors"), (threads, "threads"), (rows, "rows")):
        check_count(count, name)
    options = {"model_hash": model_hash(folder), "threads": threads, **options}
    names = dataset.columns()  # errors are raised here, not by an actor, which Ray starts again and again
    if names is not None:
        AnswerOptions.of(options).columns(names, config_in(folder))
    return dataset.map_batches(
        RayPredictor,
        fn_constructor_args=(os.path.abspath(os.path.expanduser(folder)),),  # workers have a folder of their own
        fn_constructor_kwargs=options,
        batch_size=rows,
        **pool_options(actors, threads),
    )
