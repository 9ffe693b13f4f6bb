"""The one model: an input vector, K label vectors, a similarity.

    text  → input prompt → encoder → read-out → input vector (masks, dim)   ┐
                                                                            ├ similarity → logits of labels
    label → label prompt → the same encoder → read-out → label vector       ┘

Every method is this model; ``config/methods.py`` says where each method's two kinds of vector come from.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, logsigmoid

from maskmatch.model.anchors import Anchors, anchor_loss
from maskmatch.model.encoder import TokenBatch, encode_prompts
from maskmatch.model.label_sources import LABEL_SOURCES
from maskmatch.model.mlm_head import Head, HeadConfig, Transform
from maskmatch.model.readout import PairReadout, StateReader
from maskmatch.model.similarity import Similarity
from maskmatch.prompts.windows import all_windows, mean_of_windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from transformers import PreTrainedModel

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.labels.layout import LabelLayout
    from maskmatch.model.encoder import Encoder
    from maskmatch.prompts import TokenizedPrompts
    from maskmatch.training.label_sampling import LabelMemory


UPDATES = "_maskmatch_updates"
"""Where an encoder counts how often it may have been trained."""


class MatchingModel(nn.Module):
    """Scores texts with labels.

    Args:
        encoder: The pretrained encoder.
        config: Method, prompts, similarity.
        head: The head that the encoder was pretrained with, if the method uses it.

    Attributes:
        labels: The source of label vectors.
        diverged: Whether training left weights that are NaN or inf.
    """

    input_origin: torch.Tensor | None
    """(masks, dim), the state of the empty input prompt, which is subtracted from the vectors of texts."""
    label_origin: torch.Tensor | None
    """(masks, dim), the same of label texts."""

    def __init__(self, encoder: Encoder, config: MatcherConfig, head: Head | None = None) -> None:
        super().__init__()
        self.settings = config  # not "config": transformers' Trainer would take it for that of an encoder
        self.method = config.method
        self.multi_label = config.multi_label
        self.diverged = False
        self._readings = len(config.prompts), len(config.label_prompts)  # prompts per text and per label text
        self._source, self._head = encoder, head
        self.register_buffer("input_origin", None)
        self.register_buffer("label_origin", None)
        self.encoder: PreTrainedModel = encoder.model
        self._reader = StateReader(encoder.model)
        dimension = encoder.dimension
        self.similarity = Similarity(config.similarity, offset=config.multi_label)
        self.labels = LABEL_SOURCES[config.method.label_source](dimension, self._word_vectors)
        self.pair = PairReadout(dimension) if config.method.reads_pairs else None
        self.dropout = self.default_dropout
        self.transform: Transform | None = None
        if config.method.transform:
            form = head.config if head is not None and config.method.has_word_head else HeadConfig()
            self.transform = Transform(dimension, self._word_embeddings(), form)
            if head is not None and config.method.has_word_head and head.weights:
                self.transform.take(head.weights)
        self.to(encoder.model.device).eval()

    def with_config(self, config: MatcherConfig) -> MatchingModel:
        """A model with another config on the same encoder. It keeps what the same method has learned."""
        model = MatchingModel(self._source, config, self._head)
        model.diverged = self.diverged
        if config.method != self.method:
            return model
        names: tuple[str, ...] = ("labels.", "pair.", "transform.")
        if (config.similarity, config.multi_label) == (self.settings.similarity, self.settings.multi_label):
            names += ("similarity.",)
            model.similarity.untrained = self.similarity.untrained
        if reads_alike(config, self.settings):
            model.input_origin, model.label_origin = self.input_origin, self.label_origin
        model.labels.set_count(self.labels.count)
        state = {name: value for name, value in self.state_dict().items() if name.startswith(names)}
        model.load_state_dict(state, strict=False)
        return model

    def fresh(self) -> MatchingModel:
        """The model as it was before any training, but for its encoder: what is drawn at random is drawn again."""
        return MatchingModel(self._source, self.settings, self._head)

    @property
    def head_config(self) -> HeadConfig | None:
        """The form of the head over the mask, if the method has one."""
        if not self.method.has_word_head:
            return None
        return HeadConfig() if self._head is None else self._head.config

    # -- modes and devices -----------------------------------------------------------------------------------

    @property
    def default_dropout(self) -> bool:
        """Whether the encoder is trained with dropout unless the user decides.

        The distance between the two sides of a pair cannot be learned if each has noise of its own.
        """
        return self.pair is None

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self._word_embeddings().weight.device

    @property
    def weights_version(self) -> tuple[int, int, int]:
        """Numbers that change with the weights.

        A change in place counts up a tensor's version. A fused optimizer does not count, so entering training mode
        counts as a change, too, for all models on the same encoder.
        """
        updates: int = vars(self.encoder).get(UPDATES, 0)
        encoder = sum(parameter._version for parameter in self.encoder.parameters())
        return updates, encoder, sum(parameter._version for parameter in self.parameters()) - encoder

    def train(self, mode: bool = True) -> MatchingModel:
        """Training mode, or not; the encoder may be without dropout in either."""
        known = vars(self.encoder)
        known[UPDATES] = known.get(UPDATES, 0) + mode
        super().train(mode)
        if not self.dropout:
            self.encoder.train(False)
            for module in self.encoder.modules():
                if hasattr(module, "gradient_checkpointing"):
                    module.training = mode  # of these alone, not of what they hold: else they would keep all states
        return self

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Without dropout, also when training evaluates on dev."""
        if not self.training:
            yield
            return
        self.eval()
        try:
            yield
        finally:
            self.train()

    def gradient_checkpointing_enable(self, **options: Any) -> None:
        """Save memory in training, as transformers' Trainer asks for it: the encoder's states are computed twice."""
        self.encoder.gradient_checkpointing_enable(**options)

    def prepare(self) -> None:
        """Find out how this encoder can be read with less work."""
        self._reader.prepare()

    def is_pretrained(self, parameter: str) -> bool:
        """Whether a parameter, by its name, was pretrained: it then learns at the encoder's rate."""
        with_head = self.transform is not None and self.transform.config.pretrained
        return parameter.startswith(("encoder.", "transform.") if with_head else "encoder.")

    # -- vectors ---------------------------------------------------------------------------------------------

    def input_vectors(self, batch: TokenBatch) -> torch.Tensor:
        """The vectors of texts, which the batch holds in their first prompt, then in their second…: (n, masks, dim)."""
        return self._join_inputs(self._reader.read(self.method.input_state, batch))

    def label_vectors(self, batch: TokenBatch) -> torch.Tensor:
        """The vectors of label texts in their label prompts: (F, masks, dim)."""
        return self._join_labels(self._reader.read(self.method.label_readout, batch))

    def encode(self, prompts: TokenizedPrompts, *, labels: bool = False, task: str | None = None) -> torch.Tensor:
        """The vectors of many texts or label texts, without a gradient: (n, masks, dim).

        Args:
            prompts: Texts in their input prompts, or label texts in their label prompts.
            labels: Whether they are label texts.
            task: The title of the progress bar.
        """
        windows, owners = all_windows(prompts)
        with self.evaluating():
            vectors = encode_prompts(
                windows,
                self.label_vectors if labels else self.input_vectors,
                pad_id=self._source.pad_id,
                device=self.device,
                task=task or ("encoding labels" if labels else "encoding texts"),
            )
        if prompts.windows is None:
            return vectors
        return torch.from_numpy(mean_of_windows(vectors.cpu().numpy(), owners, len(prompts))).to(self.device)

    def _word_vectors(self, token_ids: torch.Tensor) -> torch.Tensor:
        """The vectors of words by their token ids: (tokens,) → (tokens, dim)."""
        embeddings = self._word_embeddings().weight  # (vocabulary, dim)
        ids = token_ids.to(embeddings.device)
        return embeddings[ids] if self.transform is None else self.transform.words(ids, embeddings)

    def _word_embeddings(self) -> nn.Embedding:
        return cast("nn.Embedding", self.encoder.get_input_embeddings())

    # -- training --------------------------------------------------------------------------------------------

    def forward(
        self,
        groups: Sequence[TokenBatch],
        texts: int,
        *,
        targets: torch.Tensor | None = None,
        layout: LabelLayout | None = None,
        words: Sequence[Sequence[int]] = (),
        anchors: Anchors | None = None,
        memory: LabelMemory | None = None,
        weights: torch.Tensor | None = None,
        adjustment: torch.Tensor | None = None,
    ) -> dict[str, torch.Tensor]:
        """The loss of a batch: matching its texts with all labels, the distance from anchors, or both.

        The groups hold texts and label texts in batches of similar length. Row numbers below ``texts`` are texts, the
        others label texts; they ascend within a group. If labels are read with each text, the label texts are all
        those of the first text, then all those of the second, and so on. With a memory of label vectors, the groups
        hold texts alone, and the vectors of the texts decide which label texts are encoded.

        Args:
            groups: Token batches over texts and label texts
            texts: How many of the rows are texts, counted in all their prompts
            targets: (texts,) the positions of the true labels, or (texts, K) of 0 and 1 with several labels per text
            layout: Which label texts belong to which label
            words: The token ids of each label text, where labels are words of the embedding table
            anchors: Vectors that those of some rows are pulled to
            memory: The last known vectors of all label texts, if a step does not encode all of them
            weights: (texts,) how much each text counts
            adjustment: (K,) what the loss adds to the logits of each label: more for labels with more rows
        """
        inputs, encoded = self._encode_pooled(groups, texts)  # (texts, masks, dim), (F, masks, dim)
        losses, scores = [], inputs.new_empty(0)
        if targets is not None and layout is not None:
            if memory is None:
                scores = self._scores(inputs, self.labels(encoded, words), layout)  # (texts, K)
            else:
                rows, encoded, scores = self._sampled_scores(inputs, targets, layout, memory)
                if anchors is not None and memory.held is not None:
                    anchors = anchors.followed_by(memory.held[rows])
            losses.append(self._matching_loss(scores, targets, weights, adjustment))
        if anchors is not None:
            means = [part.mean(dim=1, keepdim=True) for part in (inputs, encoded) if part is not None]
            vectors = torch.cat(means)  # (rows, 1, dim): the two prompts may differ in their number of masks
            losses.append(anchor_loss(vectors, anchors.to(vectors.device)))
        return {"loss": torch.stack(losses).sum(), "scores": scores}

    def _scores(self, inputs: torch.Tensor, labels: torch.Tensor, layout: LabelLayout) -> torch.Tensor:
        """The logits of texts with labels that were all encoded in this step: (texts, K)."""
        if len(labels) != layout.size:  # read with each text, those of the first text first
            labels = labels.view(len(inputs), -1, *labels.shape[1:])  # (texts, F, masks, dim)
        similarity = self.similarity
        scores = similarity.compare(similarity.prepare(inputs), similarity.prepare(labels))  # (texts, F)
        return similarity.join(_per_label(scores, layout), _present(layout, inputs.device))

    def _sampled_scores(
        self, inputs: torch.Tensor, targets: torch.Tensor, layout: LabelLayout, memory: LabelMemory
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Encode some label texts: their numbers (m,) and vectors (m, masks, dim), and all logits (texts, K)."""
        similarity, present = self.similarity, _present(layout, inputs.device)
        prepared = similarity.prepare(inputs)  # (texts, dim), or (texts, masks, dim) where that is late
        stale = similarity.compare(prepared, memory.vectors)  # (texts, F), with a gradient for the texts alone
        with torch.no_grad():
            scores = similarity.join(_per_label(stale, layout), present)  # (texts, K)
            # A label's probability is also how strongly a text pulls at it.
            weights = (scores.sigmoid() if self.multi_label else scores.softmax(dim=1)).sum(dim=0)
            hardest, drawn = memory.choose(weights, _own_labels(targets, len(weights)))
        labels = torch.cat([hardest, drawn])
        rows = memory.texts_of(labels)  # (m,)
        vectors = self._encode_label_batches(memory.batches(rows))  # (m, masks, dim)
        fresh_vectors = similarity.prepare(vectors)
        memory.keep(rows, fresh_vectors)
        fresh = similarity.compare(prepared, fresh_vectors)  # (texts, m)
        renewed = stale.index_copy(1, rows.to(inputs.device), fresh.to(stale.dtype))
        scores = similarity.join(_per_label(renewed, layout), present)
        if len(drawn):
            own = similarity.join(_per_label(stale, layout, drawn), present[drawn.to(inputs.device)])  # (texts, d)
            shift = lag(scores[:, drawn.to(inputs.device)], own, self.multi_label)  # (texts, 1)
            encoded = torch.zeros(len(layout), dtype=torch.bool).index_fill(0, labels, True).to(inputs.device)
            scores = torch.where(encoded, scores, scores + shift)
        return rows, vectors, scores

    def _matching_loss(
        self,
        scores: torch.Tensor,
        targets: torch.Tensor,
        weights: torch.Tensor | None,
        adjustment: torch.Tensor | None,
    ) -> torch.Tensor:
        """The mean loss of texts by their logits (texts, K)."""
        if self.multi_label:
            # Summed over labels: a mean would fade as the number of labels grows, while a text keeps its few.
            losses = binary_cross_entropy_with_logits(scores, targets.to(scores.dtype), reduction="none").sum(dim=1)
        else:
            adjusted = scores if adjustment is None else scores + adjustment.to(scores)
            losses = cross_entropy(adjusted, targets, reduction="none")  # (texts,)
        return losses.mean() if weights is None else (losses * weights.to(losses)).mean()

    # -- encoding --------------------------------------------------------------------------------------------

    def _encode_pooled(self, groups: Sequence[TokenBatch], texts: int) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The vectors of the texts and of the label texts of a step's groups."""
        splits = [int((group.rows < texts).sum()) for group in groups]  # rows ascend, so texts come first
        inputs = [group.part(0, split) for group, split in zip(groups, splits, strict=True) if split]
        labels = [
            group.part(split, None) for group, split in zip(groups, splits, strict=True) if split < len(group.rows)
        ]
        states = self._reader.read_together([(self.method.input_state, inputs), (self.method.label_readout, labels)])
        input_vectors = self._join_inputs(_in_order(states[: len(inputs)], inputs))
        if not labels:
            return input_vectors, None
        return input_vectors, self._join_labels(_in_order(states[len(inputs) :], labels))

    def _encode_label_batches(self, batches: Sequence[TokenBatch]) -> torch.Tensor:
        """The vectors of label texts in batches, in the order of their row numbers: (m, masks, dim)."""
        return self._join_labels(_in_order(self._reader.read_together([(self.method.label_readout, batches)]), batches))

    def _join_inputs(self, states: torch.Tensor) -> torch.Tensor:
        """The vectors of texts from the states in all their prompts: (prompts * n, masks, dim) → (n, …, dim)."""
        readings = self._readings[0]
        if self.pair is not None:
            sides = _per_reading(states, readings).transpose(0, 1).flatten(1, 2)  # (n, readings * masks, dim)
            states, readings = self.pair(sides), 1
        if self.transform is not None:
            states = self.transform(states)
        return _minus(_per_reading(states, readings).mean(dim=0), self.input_origin)

    def _join_labels(self, states: torch.Tensor) -> torch.Tensor:
        """The vectors of label texts from the states in all their prompts: (prompts * F, …) → (F, masks, dim)."""
        return _minus(_per_reading(states, self._readings[1]).mean(dim=0), self.label_origin)


def reads_alike(one: MatcherConfig, other: MatcherConfig) -> bool:
    """Whether two configs give the same vectors: by one method, in the same prompts, debiased alike."""
    first, second = ((each.method, each.prompts, each.label_prompts, each.debias) for each in (one, other))
    return first == second


def lag(now: torch.Tensor, cached: torch.Tensor, multi_label: bool = False) -> torch.Tensor:
    """By how much the logits of labels have moved since their vectors were cached, estimated from some: (texts, 1).

    Its gradient goes to each of these labels by its share of their probability, as they stand for the others.

    Args:
        now: (texts, d), the logits of labels with the vectors of this step
        cached: (texts, d), their logits with the cached vectors
        multi_label: Whether each label has a probability of its own, instead of one among all.
    """
    if not multi_label:
        return now.logsumexp(dim=1, keepdim=True) - cached.logsumexp(dim=1, keepdim=True)
    shares = logsigmoid(now.detach()).softmax(dim=1)  # their probabilities, made to add up to 1
    return (shares * (now - cached)).sum(dim=1, keepdim=True)


def _present(layout: LabelLayout, device: torch.device) -> torch.Tensor:
    """(K, phrases), which places of a layout hold a label text."""
    return torch.from_numpy(layout.present).to(device)


def _per_label(scores: torch.Tensor, layout: LabelLayout, labels: torch.Tensor | None = None) -> torch.Tensor:
    """Scores of flat label texts (n, F) as (n, K, phrases), or as (n, d, phrases) for some labels (d,)."""
    table = torch.from_numpy(layout.table)
    if labels is not None:
        return scores[:, table[labels].to(scores.device)]
    return scores[:, :, None] if table.shape[1] == 1 else scores[:, table.to(scores.device)]


def _per_reading(states: torch.Tensor, readings: int) -> torch.Tensor:
    """Rows that hold all texts in the first prompt, then in the second…, apart: (readings, n, …)."""
    return states.reshape(readings, -1, *states.shape[1:])


def _minus(vectors: torch.Tensor, origin: torch.Tensor | None) -> torch.Tensor:
    return vectors if origin is None else vectors - origin


def _own_labels(targets: torch.Tensor, labels: int) -> torch.Tensor:
    """Which labels any text has: positions (n,), or 0 and 1 in (n, K) → (K,)."""
    if targets.dim() == 2:
        return targets.bool().any(dim=0)
    return torch.zeros(labels, dtype=torch.bool, device=targets.device).index_fill(0, targets, True)


def _in_order(parts: Sequence[torch.Tensor], batches: Sequence[TokenBatch]) -> torch.Tensor:
    """What was read of batches, in the order of their row numbers: (rows, …)."""
    return torch.cat(list(parts))[torch.cat([batch.rows for batch in batches]).argsort()]
