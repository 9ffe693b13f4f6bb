"""``maskmatch align``: teach an encoder to answer through its mask, from texts without labels."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskmatch.cli import options
from maskmatch.cli.groups import Options, SettingsOf
from maskmatch.config.alignment import AlignmentConfig
from maskmatch.config.settings import declared

if TYPE_CHECKING:
    from maskmatch.data import Examples


@dataclass(frozen=True)
class Check:
    """Labelled rows to measure zero-shot accuracy on, before and after."""

    check: Annotated[
        str | None, typer.Option(help="Labelled rows to measure zero-shot accuracy on, before and after.")
    ] = None
    task: options.TaskName = None

    def accuracy(self, model: str | None, reading: options.LabelledReading) -> float | None:
        """The accuracy by the names of the labels alone."""
        if self.check is None:
            return None
        from maskmatch import MaskMatcher, MaskMatchError
        from maskmatch.labels.targets import has_several

        matcher = MaskMatcher.from_pretrained(model, task=self.task)
        rows = options.load_rows(self.check, matcher.config.fields, reading)
        assert rows.labels is not None
        if has_several(rows.labels):
            raise MaskMatchError(f"The rows of {self.check} have several labels each; check with rows of one label.")
        matcher.add_labels(list(dict.fromkeys(rows.labels)))
        return float(matcher.evaluate(rows.texts, rows.labels).accuracy)


def align(
    *,
    texts: Annotated[
        str, typer.Argument(metavar="FILE", help="Texts: CSV, TSV, JSON, JSONL, Parquet or plain lines, also gzipped.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to save the adapter in.")],
    labels: Annotated[
        str | None, typer.Option(help="Label names, or a file of them, of the kind to be used later.")
    ] = None,
    label_sets: Annotated[
        Path | None, typer.Option(help="A folder of label sets with texts, to learn what names mean as well.")
    ] = None,
    check: Check,
    model: options.ModelName = None,
    settings: Annotated[Options, SettingsOf(lambda: declared(AlignmentConfig), panel=options.TRAINING, optional=True)],
    reading: options.LabelledReading,
    json: options.AsJson = False,
) -> None:
    """Train an adapter that lets an encoder answer at its mask."""
    from maskmatch.data import load_label_sets
    from maskmatch.training.alignment import align as run
    from maskmatch.training.alignment import check_output

    if settings.get("matching_steps") and label_sets is None:
        raise typer.BadParameter(
            "there are no label sets to match; give --label-sets too.", param_hint="--matching-steps"
        )
    output = output.expanduser()
    check_output(output, model)  # before the work, not after it
    with options.wrong_usage():
        config = AlignmentConfig(**settings)
    examples = _load_texts(texts, reading)
    names = None if labels is None else options.label_names(labels)
    sets = [] if label_sets is None else load_label_sets(label_sets)
    before = check.accuracy(model, reading)
    plain = [str(text) for text in examples.texts]
    sources = [f"the texts of {Path(texts).name}"]
    sources += [] if labels is None else [f"the label names of {_named(labels)}"]
    sources += [] if label_sets is None else [f"the label sets of {label_sets.name}"]
    alignment = run(plain, names, model=model, label_sets=sets, config=config, sources=sources)
    alignment.save(output)
    after = check.accuracy(str(output), reading)
    if json:
        training = alignment.training
        found = {"folder": str(output), "steps": training.steps, "seconds": training.seconds}
        options.print_json({**found, "before": before, "after": after})
        return
    typer.echo(f"aligned in {alignment.training.steps} steps, {alignment.training.seconds:.0f} s")
    if before is not None and after is not None:
        typer.echo(f"zero-shot accuracy on {check.check}: {before:.4f} before, {after:.4f} after")
    typer.echo(f"saved in {output}; use it with --model {output}")


def _named(labels: str) -> str:
    """A label file by its name alone, names as they are: a saved adapter holds no paths of this machine."""
    return Path(labels).name if os.path.isfile(os.path.expanduser(labels)) else labels


def _load_texts(file: str, reading: options.Reading) -> Examples:
    """The texts to learn from; columns of other fields than the text are those of the rows to check with."""
    from maskmatch.data import load_examples

    columns = {name: column for name, column in reading.named.items() if name == "text"}
    examples = load_examples(file, ("text",), want_label=False, **{**reading.options(), "named": columns})
    options.report_skipped(examples.skipped, file)
    return examples
