"""The model card of a saved classifier: labels, prompts, data, metrics, cost."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from huggingface_hub import ModelCardData

from maskmatch.config.training import CALIBRATED_ON
from maskmatch.labels import label_from_json
from maskmatch.model.mlm_head import HeadConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

LABELS_SHOWN = 50
NEW_LINE = "\n"


def model_card(data: Mapping[str, Any], temperature: float | None = None) -> str:
    """A model card from the content of ``maskmatch.json``.

    Args:
        data: The content of ``maskmatch.json``.
        temperature: The current temperature, if training may have changed it.
    """
    config = data["config"]
    header = ModelCardData(
        library_name="maskmatch",
        pipeline_tag="text-classification",
        tags=["maskmatch", "mask-matching", config["task"]["name"]],
    )
    sections = [
        f"---\n{header.to_yaml()}\n---",
        "# Text classifier by label names",
        f"A classifier of the Python library maskmatch (`pip install maskmatch`) on the encoder "
        f"`{data['encoder']}`: {config['task']['description']}.{_editing(config['method'])}",
        _usage(config),
        _labels(data["labels"]),
        _settings(config, temperature, data.get("head"))
        + _centroids(data.get("labels_with_centroids", 0))
        + _adapted(data.get("adapted_to_texts", 0))
        + _calibrated(data.get("calibration"))
        + _kept(data.get("keeps_texts", False)),
        _training(data.get("training")),
        _evaluation(data.get("evaluation")),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _editing(method: Mapping[str, Any]) -> str:
    if method["label_source"] == "matrix":
        return ""
    return " Its labels are words, so they can be added, renamed and removed without training."


def _usage(config: Mapping[str, Any]) -> str:
    fields = config["task"]["fields"]
    text = '"…"' if len(fields) == 1 else "{" + ", ".join(f'"{field}": "…"' for field in fields) + "}"
    return (
        "```python\nfrom maskmatch import MaskMatcher\n\n"
        'classifier = MaskMatcher.from_pretrained("path/or/hub-id")\n'
        f"classifier.predict([{text}])\n```"
    )


def _labels(labels: list[Mapping[str, Any]]) -> str:
    rows = [
        f"| `{_code(label.id)}` | {_cell(label.name)} | {_cell(label.description)} | "
        f"{_cell('; '.join(label.phrases))} | {_cell('; '.join(label.words))} |"
        for label in map(label_from_json, labels[:LABELS_SHOWN])
    ]
    more = f"\n\n… and {len(labels) - LABELS_SHOWN} more." if len(labels) > LABELS_SHOWN else ""
    head = "| label | reads | description | phrases | words |\n|---|---|---|---|---|\n"
    return f"## {len(labels)} labels\n\n{head}" + "\n".join(rows) + more


def _settings(config: Mapping[str, Any], temperature: float | None, head: Mapping[str, Any] | None) -> str:
    similarity = config["similarity"]
    shown = similarity["temperature"] if temperature is None else float(f"{temperature:.4g}")
    masks = similarity.get("masks", "mean")
    several = f"several, each with a probability of at least {config['threshold']:.3f}"
    return (
        "## How it reads\n\n"
        f"- method: {config['method']['name']}\n"
        f"- input prompt: {_prompts(config['prompt'], sides=config['method']['input_readout'] == 'pair')}\n"
        f"- label prompt: {_prompts(config['label_prompt'])}\n"
        f"{_debias(config.get('debias'))}"
        f"- similarity: {similarity['kind']}, temperature {shown}"
        f"{' (learned)' if similarity['learn_temperature'] else ''}"
        f"{'' if masks == 'mean' else f', masks compared by {masks}'}\n"
        f"- at most {config['max_length']} tokens per text; longer texts are truncated\n"
        f"- labels per text: {several if config['multi_label'] else 'one'}"
        f"{'' if head is None else f'{NEW_LINE}- {HeadConfig(**head).note}'}"
    )


def _centroids(labels: int) -> str:
    if not labels:
        return ""
    return (
        f"{NEW_LINE}- the vectors of {labels} labels are shifted towards the centroids of their training texts; the "
        "centroids are saved, the texts are not (but the centroid of a single text is that text's vector)"
    )


def _adapted(texts: int) -> str:
    if not texts:
        return ""
    return (
        f"{NEW_LINE}- adapted to {texts} unlabelled texts; their mean and means of groups of similar texts are saved, "
        "the texts are not (but the mean of a group of one is that text's vector)"
    )


def _calibrated(calibration: Mapping[str, Any] | None) -> str:
    if calibration is None:
        return ""
    rows = f" ({calibration['rows']} rows)" if calibration["rows"] else ""
    return f"{NEW_LINE}- probabilities are calibrated {CALIBRATED_ON.get(calibration['source'], '')}{rows}"


def _kept(texts: bool) -> str:
    return f"{NEW_LINE}- **the training texts are saved with it**, to show similar ones" if texts else ""


def _prompts(templates: str | list[str], *, sides: bool = False) -> str:
    if isinstance(templates, str):
        return f"`{templates}`"
    return f"{'' if sides else 'the mean of '}{', '.join(f'`{template}`' for template in templates)}"


def _debias(chosen: str | None) -> str:
    if chosen in (None, "none"):
        return ""
    whose = "texts and labels" if chosen == "both" else "texts" if chosen == "inputs" else "labels"
    return f"- the state of the empty prompt is subtracted from the vectors of {whose}\n"


def _training(training: Mapping[str, Any] | None) -> str:
    if training is None:
        return "## Training\n\nNone (zero-shot): label names are matched as the encoder reads them."
    settings = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in training["config"].items())
    dev = training.get("dev")
    figures = "; on dev: " + ", ".join(f"{name} {value:.4f}" for name, value in dev.items()) if dev else ""
    return (
        "## Training\n\n"
        f"{training['texts']} texts with {training['labels']} labels, {training['steps']} steps in "
        f"{training['seconds']:.0f} s ({settings}){figures}. {training['cut']} of the texts were truncated."
    )


def _evaluation(evaluation: Mapping[str, Any] | None) -> str:
    if evaluation is None:
        return ""
    figures = {name: value for name, value in evaluation.items() if name not in ("data", "date")}
    rows = "\n".join(f"| {name} | {value} |" for name, value in figures.items())
    data, date = evaluation.get("data"), evaluation.get("date")
    said = f"On {f'`{_code(data)}`' if data else 'unnamed data'}{f', {date}' if date else ''}."
    return f"## Evaluation\n\n{said}\n\n| figure | value |\n|---|---|\n{rows}"


def _code(text: Any) -> str:
    """A text in a code span of a table."""
    return " ".join(str(text).split()).replace("|", "\\|").replace("`", "'")


def _cell(text: Any) -> str:
    """A text in a table: what looks like HTML, a link or an image stays text."""
    return html.escape(_code(text), quote=False).replace("[", "\\[").replace("]", "\\]")
