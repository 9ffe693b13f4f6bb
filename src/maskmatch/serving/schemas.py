"""What requests and responses look like; the OpenAPI document is derived from it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

Text = StrictStr | dict[StrictStr, Any]
"""A text, or a dict of the task's fields."""


def _encodable(text: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("it has a character that cannot be written")
    return text


Name = Annotated[StrictStr, AfterValidator(_encodable)]
LabelNames = list[Name]
Labels = LabelNames | dict[Name, Name | list[Name] | None]
"""Names; or descriptions, or other phrases, by name."""

Probability = Annotated[float, Field(ge=0, le=1, strict=True, allow_inf_nan=False)]


class Request(BaseModel):
    """A request; fields that it does not know are an error."""

    model_config = ConfigDict(extra="forbid")


class ClassifyRequest(Request):
    """Classify texts."""

    texts: Text | list[Text] = Field(
        description="One text or many: strings, or objects with the task's fields.",
        examples=[["My card is gone!", "Where is my refund?"]],
    )
    labels: Labels | None = Field(
        None,
        description="Labels of this request: a list of names, or descriptions or lists of phrases by name. Default: "
        "those of the classifier. They are cached, so a second request with the same labels encodes none.",
        examples=[["refund not received", "card lost", "exchange rate"]],
    )
    model: StrictStr | None = Field(None, description="Which classifier; default: the first one.")
    top_k: StrictInt = Field(3, ge=1, le=1000, description="How many labels per text, best first.")
    threshold: Probability | None = Field(
        None, description="With several labels per text: the probability from which a label applies."
    )
    abstain: Probability | None = Field(
        None, description="With one label per text: below this probability the answer is none_label."
    )
    none_label: Name | None = Field(None, description="The answer below abstain; default: null.")
    novelty: StrictBool = Field(False, description="Whether to tell how far each text is from all labels.")


class RankedLabel(BaseModel):
    """A label with its probability."""

    label: Any
    probability: float


class Answer(BaseModel):
    """The answer for one text: label and probability, or labels if several may apply; or an error."""

    model_config = ConfigDict(extra="forbid")
    label: Any = None
    probability: float | None = None
    labels: list[Any] | None = None
    top_k: list[RankedLabel] | None = None
    novelty: float | None = None
    truncated: bool | None = Field(None, description="Whether the text was longer than what the encoder reads.")
    error: str | None = None


class ClassifyResponse(BaseModel):
    """The answers, in the order of the texts."""

    model: str
    results: list[Answer]


class LabelInfo(BaseModel):
    """A label and how it reads."""

    model_config = ConfigDict(extra="allow")
    id: Any
    name: str


class LabelsResponse(BaseModel):
    """The labels of a classifier, its task, and the fields of its texts."""

    model_config = ConfigDict(protected_namespaces=())
    model: str
    model_hash: str | None = Field(
        None, description="What identifies the files that it was loaded from; null for the default."
    )
    abstain: float = Field(
        0.0, description="With one label per text: below this probability it gives no label, unless a request says so."
    )
    etag: str
    task: str
    fields: list[str]
    labels: list[LabelInfo]


class EditResponse(LabelsResponse):
    """The labels after an edit, and whether they were saved."""

    saved: bool


class PreviewResponse(BaseModel):
    """Which texts would get another label after an edit."""

    model: str
    diff: dict[str, Any]


class EditRequest(Request):
    """Edit labels, all of it or nothing."""

    add: Labels | None = Field(None, description="Labels to add.", examples=[{"chargeback": "money taken back"}])
    rename: dict[Name, Name] = Field(default_factory=dict, description="New names, by label.")
    remove: LabelNames = Field(default_factory=list, description="Labels to remove.")
    save: StrictBool = Field(False, description="Whether to save the classifier in its folder.")
    dry_run: StrictBool = Field(False, description="Whether to only show what would change, for some texts.")
    texts: list[Text] = Field(default_factory=list, description="Texts for a dry run.")


class AddRequest(Request):
    """Add labels."""

    labels: Labels = Field(description="Labels to add.", examples=[{"chargeback": "money taken back"}])
    save: StrictBool = Field(False, description="Whether to save the classifier in its folder.")


class FeedbackRequest(Request):
    """The right label of a text."""

    text: Text = Field(description="The text, as it was classified.", examples=["My card is gone!"])
    label: Name | list[Name] | None = Field(
        description="Its right label; null: no label fits. A list, if several labels may apply.",
        examples=["card lost"],
    )
    model: StrictStr | None = Field(None, description="Which classifier; default: the first one.")
    request_id: Annotated[StrictStr, Field(pattern="^[A-Za-z0-9._:-]{1,128}$")] | None = Field(
        None, description="The X-Request-Id of the answer that this is about."
    )


class FeedbackResponse(BaseModel):
    """The feedback was kept."""

    model: str
    kept: bool


class ErrorResponse(BaseModel):
    """What went wrong."""

    error: str
    error_type: str


class PredictRequest(BaseModel):
    """The request of text-embeddings-inference: a text, a pair of texts, or a batch of ["text"] or ["text", "text"]."""

    inputs: StrictStr | list[StrictStr] | list[list[StrictStr]]
    raw_scores: StrictBool = False
    truncate: StrictBool | None = None
    truncation_direction: StrictStr | None = None


class ScoredLabel(BaseModel):
    """A label with its score."""

    label: str
    score: float


class PipelineParameters(BaseModel):
    """Parameters of Hugging Face inference."""

    candidate_labels: LabelNames | StrictStr | None = None
    multi_label: StrictBool | None = None
    hypothesis_template: StrictStr | None = None
    top_k: Annotated[StrictInt, Field(ge=1, le=1000)] | None = None
    function_to_apply: StrictStr | None = None


class PipelineRequest(BaseModel):
    """The request of Hugging Face inference: zero-shot classification with candidate labels, or text classification."""

    inputs: StrictStr | list[StrictStr] = Field(examples=["My card is gone!"])
    parameters: PipelineParameters = Field(default_factory=PipelineParameters)
    options: dict[str, Any] | None = None


class VllmRequest(BaseModel):
    """The request of vLLM's /classify."""

    model: StrictStr | None = None
    input: StrictStr | list[StrictStr]
    user: StrictStr | None = None


class VllmItem(BaseModel):
    """A text's answer in vLLM's form."""

    index: int
    label: str
    probs: list[float]
    num_classes: int


class VllmResponse(BaseModel):
    """vLLM's response."""

    id: str
    object: str = "list"
    created: int
    model: str
    data: list[VllmItem]
    usage: dict[str, int]
