"""``maskmatch align``: teach an encoder to answer through its mask, from texts without labels."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated, Any

import typer

from maskmatch.cli import options

RUN = "Training"


def align(
    *,
    texts: Annotated[str, typer.Argument(help="Texts: CSV, TSV, JSON, JSONL, Parquet or plain lines, also gzipped.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to save the adapter in.")],
    labels: Annotated[
        str | None, typer.Option(help="Label names, or a file of them, of the kind to be used later.")
    ] = None,
    label_sets: Annotated[
        Path | None, typer.Option(help="A folder of label sets with texts, to learn what names mean as well.")
    ] = None,
    check: Annotated[
        str | None, typer.Option(help="Labelled rows to measure zero-shot accuracy on, before and after.")
    ] = None,
    task: options.TaskName = None,
    model: options.ModelName = None,
    seed: options.Seed = 0,
    steps: Annotated[int, typer.Option(help="Steps without labels.", min=1, rich_help_panel=RUN)] = 150,
    matching_steps: Annotated[int, typer.Option(help="Steps with label sets.", min=1, rich_help_panel=RUN)] = 350,
    rank: Annotated[int, typer.Option(help="The rank of the adapter.", min=1, rich_help_panel=RUN)] = 16,
    learning_rate: Annotated[float, typer.Option(help="The peak rate.", rich_help_panel=RUN)] = 1e-3,
    checkpoints: Annotated[
        Path | None, typer.Option(help="A folder for checkpoints, to resume from.", rich_help_panel=RUN)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last checkpoint.", rich_help_panel=RUN)
    ] = False,
    text_field: options.TextField = None,
    label_field: options.LabelField = None,
    field: options.Field = None,
    encoding: options.Encoding = "utf-8",
    format: options.Format = None,  # noqa: A002
    skip_bad_rows: options.SkipBadRows = False,
    json: options.AsJson = False,
) -> None:
    """Teach an encoder to answer through its mask."""
    reading = options.reading_options(
        text_field=text_field,
        label_field=label_field,
        field=field,
        encoding=encoding,
        format=format,
        skip_bad_rows=skip_bad_rows,
    )

    from maskmatch.alignment import AlignmentConfig, check_output
    from maskmatch.alignment import align as run
    from maskmatch.data import load_examples
    from maskmatch.data.label_sets import load_label_sets
    from maskmatch.label_files import load_labels

    output = output.expanduser()
    check_output(output, model)  # before the work, not after it
    config = AlignmentConfig(
        steps=steps,
        matching_steps=matching_steps,
        rank=rank,
        learning_rate=learning_rate,
        seed=seed,
        checkpoints=checkpoints,
        resume=resume,
    )
    columns = {name: column for name, column in reading["named"].items() if name == "text"}  # others are for --check
    examples = load_examples(texts, ("text",), want_label=False, **{**reading, "named": columns})
    options.tell_skipped(examples.skipped, texts)
    names = None if labels is None else load_labels(labels)
    sets = [] if label_sets is None else load_label_sets(label_sets)
    before = None if check is None else _zero_shot(model, check, task, reading)
    plain = [str(text) for text in examples.texts]
    alignment = run(plain, names, model=model, label_sets=sets, config=config, sources=[f"the texts of {texts}"])
    alignment.save(output)
    after = None if check is None else _zero_shot(str(output), check, task, reading)
    summary = {"folder": str(output), "steps": alignment.training.steps, "seconds": alignment.training.seconds}
    if json:
        options.print_json({**summary, "before": before, "after": after})
        return
    lines = [f"aligned in {summary['steps']} steps, {summary['seconds']:.0f} s"]
    if before is not None and after is not None:
        lines.append(f"zero-shot accuracy on {check}: {before:.4f} before, {after:.4f} after")
    lines.append(f"saved in {output}; use it with --model {output}")
    typer.echo("\n".join(lines))


def _zero_shot(model: str | None, check: str, task: str | None, reading: dict[str, Any]) -> float:
    """The accuracy on labelled rows by the names of their labels alone."""
    from maskmatch import MaskMatcher, MaskMatchError
    from maskmatch.targets import has_several

    matcher = MaskMatcher.from_pretrained(model, task=task)
    rows = options.load_rows(check, matcher.config.prompt.fields, reading)
    assert rows.labels is not None
    if has_several(rows.labels):
        raise MaskMatchError(f"The rows of {check} have several labels each; check with rows of one label.")
    matcher.add_labels(list(dict.fromkeys(rows.labels)))
    return float(matcher.evaluate(rows.texts, rows.labels).accuracy)
