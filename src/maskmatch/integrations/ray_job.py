"""A job on Ray: all rows of files, folders and object stores, each answered once, in partitions of Parquet.

Ray Data gives the partitions to a pool of actors, and starts again those that die. Each partition is read, answered and
written by one call, so that a call that is repeated writes the same file again. A later run skips what is done.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from maskmatch.data import guess_columns
from maskmatch.errors import MaskMatchError
from maskmatch.integrations.arrow import AnswerOptions, model_hash
from maskmatch.integrations.partitions import (
    Partition,
    PartitionWriter,
    Written,
    check_columns,
    find_files,
    read_written,
    split,
)
from maskmatch.integrations.places import Place
from maskmatch.integrations.ray import INSTALL, pool_options
from maskmatch.prediction.predictor import CHUNK_SIZE
from maskmatch.progress import progress_bar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.data.formats import Format

logger = logging.getLogger("maskmatch")

MANIFEST = "_manifest.json"
"""Says what a folder of answers holds; it is there once all of them are. Readers of Parquet folders leave it out."""

OBJECT_STORE = 80_000_000
"""Bytes of shared memory of a local Ray: partitions go through files, so that almost nothing is kept there."""

CONNECT_SECONDS = 10
"""How long a cluster may take to answer."""

ROWS = 2 * CHUNK_SIZE
"""Rows per partition: a multiple of the chunks of ``maskmatch predict``, whose batches are then the same."""


@dataclass(frozen=True)
class Job:
    """What to answer, and with what.

    Attributes:
        folder: The folder of a saved classifier or of an export, which all machines can read.
        source: A file or a folder of rows: a path or a URI.
        output: The folder of answers: a path or a URI.
        options: What is asked of each row.
        format: The format of all files; None: by their suffixes.
        encoding: The encoding of text files.
        rows: Rows per partition.
        actors: How many actors; None: as many as the processors suffice for.
        threads: How many processors each actor has.
        address: The address of a Ray cluster; None: a local one is started.
        overwrite: Whether to write partitions again that were made from something else.
    """

    folder: str
    source: str
    output: str
    options: AnswerOptions
    format: Format | None = None
    encoding: str = "utf-8"
    rows: int = ROWS
    actors: int | None = None
    threads: int = 1
    address: str | None = None
    overwrite: bool = False


def run_job(job: Job, config: MatcherConfig) -> dict[str, Any]:
    """Answer all rows that are not answered yet; returns the manifest, and how many partitions were there before.

    Args:
        job: What to answer.
        config: The config of the classifier.
    """
    partitions = _plan(job, config)
    output = Place.of(job.output)
    done = _finished(output, partitions, overwrite=job.overwrite)
    missing = [partition for partition in partitions if partition.name not in done]
    if missing:
        (output / MANIFEST).delete()  # the folder is not complete
        with redirect_stdout(sys.stderr), connected(job) as actors:  # Ray prints what happens to workers
            done |= _answer(job, missing, min(actors, len(missing)))
    manifest = _manifest(partitions, done)
    (output / MANIFEST).write(json.dumps(manifest, indent=1).encode())
    return {**manifest, "skipped_partitions": len(partitions) - len(missing)}


def _plan(job: Job, config: MatcherConfig) -> list[Partition]:
    """The partitions of all files; errors in what the user gave are raised here, before anything is started."""
    from maskmatch import __version__

    options = job.options
    made_with = {"model": model_hash(job.folder), "version": __version__, "options": options.changing_answers()}
    if Place.of(job.source).contains(Place.of(job.output)):
        raise MaskMatchError(f"The answers in {job.output} would become rows of {job.source}; give another folder.")
    found = (file.counted() for file in find_files(job.source, job.format, job.encoding) if file.size)
    files = [file for file in found if file.rows]
    check_columns(files, multi_label=config.multi_label, novelty=options.novelty, prefix=options.prefix)
    main = "text" if "text" in config.fields else config.fields[0]
    named = {**({} if options.text_field is None else {main: options.text_field}), **options.named}
    for file in files:
        try:
            guess_columns(file.columns, config.fields, named=named, want_label=False)
        except MaskMatchError as error:
            raise MaskMatchError(f"{file.place}: {error}") from None
    partitions = split(files, job.rows, made_with)
    if not partitions:
        raise MaskMatchError(f"{job.source} has no rows; give at least one.")
    return partitions


def _finished(output: Place, partitions: Sequence[Partition], *, overwrite: bool) -> dict[str, Written]:
    """The partitions that are done, by their names; raise if the folder holds something else."""
    wanted = {partition.name: partition for partition in partitions}
    present = [place for place, _ in output.files() if place.below.endswith(".parquet")]
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(read_written, present))
    done: dict[str, Written] = {}
    stale: list[Place] = []
    for place, written in zip(present, found, strict=True):
        if written is None:
            raise MaskMatchError(f"{place} is no file of this command; give another folder for the answers.")
        planned = wanted.get(place.below)
        if planned is not None and written.identity == planned.identity:
            done[place.below] = written
        elif not overwrite:
            raise MaskMatchError(f"{place} {_difference(written, planned)}; give --overwrite, or another folder.")
        elif planned is None:
            stale.append(place)  # otherwise its rows would be there twice
    if stale:
        (output / MANIFEST).delete()  # first: a folder with a manifest is complete
    for place in stale:
        place.delete()
    return done


def _difference(written: Written, planned: Partition | None) -> str:
    if planned is None:
        return "has rows that are no longer in the input, or are in other partitions (--partition-rows)"
    now = planned.identity
    differ = {name for name in now if written.identity.get(name) != now[name]}
    if "model" in differ:
        return "was made with another model"
    if "version" in differ:
        return "was made with another version of maskmatch"
    if differ & {"input", "size", "changed"}:
        return "was made from another input"
    if "options" in differ:
        return "was made with other options"
    return "was made from other rows, or with other --partition-rows"


@contextmanager
def connected(job: Job) -> Iterator[int]:
    """Connect to a Ray cluster, or start a local one that uses no network; yields the number of actors."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # failures are raised
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise MaskMatchError(INSTALL) from error
    if ray.is_initialized():  # by the caller, whose connection it stays
        yield _actors(job, int(ray.cluster_resources().get("CPU", 0)))
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if job.address is not None:
            _check_address(job.address)
            ray.init(job.address, **quiet)
        else:
            actors = job.actors or max(1, cores // job.threads)
            ray.init(
                "local",
                num_cpus=max(cores, actors * job.threads),
                include_dashboard=False,
                object_store_memory=OBJECT_STORE,
                _node_ip_address="127.0.0.1",
                **quiet,
            )
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise MaskMatchError(f"Ray cannot be reached at {job.address or 'this machine'}: {reason}.") from error
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield _actors(job, int(ray.cluster_resources().get("CPU", 0)))
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Raise if nothing answers at HOST:PORT: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    elif "://" not in address and address not in ("auto", "local"):
        raise ValueError("an address is HOST:PORT, or auto")


def _actors(job: Job, cores: int) -> int:
    """How many actors there are on a cluster with this many processors."""
    actors = job.actors or max(1, cores // job.threads)
    if actors * job.threads > cores:
        logger.warning("%d actors of %d threads wait for processors: there are %d.", actors, job.threads, cores)
    return actors


class PartitionActor:
    """Writes partitions, as Ray Data calls it: partitions in, what was written out, both as JSON.

    Args:
        folder: The folder of a saved classifier or of an export.
        options: The fields of ``AnswerOptions``.
        output: The folder of answers.
    """

    def __init__(self, folder: str, options: dict[str, Any], output: str) -> None:
        self._writer = PartitionWriter(folder, options, output)

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Write the partitions of a batch."""
        import pyarrow as pa

        return pa.table({"result": [self._write(text) for text in batch.column("partition").to_pylist()]})

    def _write(self, text: str) -> str:
        try:
            return json.dumps(asdict(self._writer.write(Partition.from_json(text))))
        except MaskMatchError as error:  # for the user, who should not have to read a traceback of Ray's
            return json.dumps({"failed": str(error)})


def _answer(job: Job, partitions: Sequence[Partition], actors: int) -> dict[str, Written]:
    """Let actors write partitions; returns what they wrote, by name."""
    import ray
    from ray.exceptions import RayError

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    options = {**asdict(job.options), "threads": job.threads, "model_hash": partitions[0].made_with["model"]}
    items = [{"partition": partition.to_json()} for partition in partitions]
    dataset = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
        PartitionActor,
        fn_constructor_args=(os.path.abspath(os.path.expanduser(job.folder)), options, str(Place.of(job.output))),
        batch_size=1,
        **pool_options(actors, job.threads),
    )
    written: dict[str, Written] = {}
    try:
        with progress_bar(sum(each.stop - each.start for each in partitions), "classifying", "text") as bar:
            for row in dataset.iter_rows():
                result = json.loads(row["result"])
                if "failed" in result:
                    raise MaskMatchError(result["failed"])
                one = Written(**result)
                written[one.name] = one
                bar.update(one.rows)
    except RayError as error:
        reason = next((line for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
        raise MaskMatchError(
            f"A worker failed ({reason.strip().rstrip('.')}); what is written stays, and the same command goes on."
        ) from error
    return written


def _manifest(partitions: Sequence[Partition], done: dict[str, Written]) -> dict[str, Any]:
    """What a folder of answers holds; raise unless that is every row once."""
    lost = [partition.name for partition in partitions if partition.name not in done]
    rows = sum(written.rows for written in done.values())
    if lost or rows != sum(partition.stop - partition.start for partition in partitions):
        raise MaskMatchError(f"{len(lost)} partitions were not written; run the command again.")
    parts = [done[partition.name] for partition in partitions]
    return {
        "model": partitions[0].made_with["model"],
        "version": partitions[0].made_with["version"],
        "label_set": parts[0].label_set,
        "options": partitions[0].made_with["options"],
        "rows": rows,
        "bad_rows": sum(part.bad_rows for part in parts),
        "partitions": len(parts),
        "files": [part.to_dict() for part in parts],
    }
