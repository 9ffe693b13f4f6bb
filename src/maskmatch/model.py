"""The one model: an input vector, K label vectors, a similarity.

    text  → input prompt → encoder → read-out → input vector (masks, dim)   ┐
                                                                            ├ similarity → scores of labels
    label → label prompt → the same encoder → read-out → label vector       ┘

Every method is this model; ``methods.py`` says where each method's two kinds of vector come from.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from torch.nn.utils import parametrize

from maskmatch.anchors import Anchors, anchor_loss
from maskmatch.encoder import hidden_states
from maskmatch.label_memory import lag
from maskmatch.label_vectors import LabelLayout, LabelMatrix, verbalizer_vectors
from maskmatch.last_layer import LastLayer
from maskmatch.mlm_head import HeadConfig, Transform
from maskmatch.packing import PooledReader
from maskmatch.pair_readout import PairReadout
from maskmatch.readout import places_of, read_out
from maskmatch.similarity import Similarity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import PreTrainedModel

    from maskmatch.encoder import TokenBatch
    from maskmatch.label_memory import LabelMemory
    from maskmatch.methods import Method
    from maskmatch.readout import Readout
    from maskmatch.similarity_config import SimilarityConfig


READERS = "_maskmatch_readers"
"""Where an encoder keeps how it can be read: it is tried out once, as that changes the encoder for a moment."""

_preparing = threading.Lock()


class MatchingModel(nn.Module):
    """Scores texts with labels.

    Args:
        encoder: The pretrained encoder.
        method: Where the vectors come from.
        similarity: How they are compared.
        labels: The number of labels.
        multi_label: Whether a text may have several labels (sigmoids instead of a softmax).
        head: The form of the head that the input vector goes through, if the method has one.
        readings: In how many prompts each text is read, and each label. Their vectors are averaged; those of a pair are
            its sides.
    """

    input_origin: torch.Tensor | None
    """What is taken from the vectors of texts, (masks, dim): what their prompt says by itself."""
    label_origin: torch.Tensor | None
    """The same of label texts."""

    def __init__(
        self,
        encoder: PreTrainedModel,
        method: Method,
        similarity: SimilarityConfig,
        labels: int,
        multi_label: bool,
        *,
        head: HeadConfig | None = None,
        readings: tuple[int, int] = (1, 1),
    ) -> None:
        super().__init__()
        self.readings = readings
        self.register_buffer("input_origin", None)
        self.register_buffer("label_origin", None)
        self.encoder = encoder
        self.method = method
        self.multi_label = multi_label
        self._last_layer: LastLayer | None = None
        self._pooled_reader: PooledReader | None = None
        self.similarity = Similarity(similarity, offset=multi_label)
        dimension = int(encoder.config.hidden_size)
        self.matrix = LabelMatrix(labels, dimension) if method.label_source == "matrix" else None
        self.pair = PairReadout(dimension) if method.reads_pairs else None
        self.dropout = self.usual_dropout
        words = self._word_embeddings()
        self.transform = Transform(dimension, words, head or HeadConfig()) if method.transform else None

    @property
    def usual_dropout(self) -> bool:
        """Whether the encoder is trained with dropout unless the user decides.

        How far the two sides of a pair are apart cannot be learned where each is disturbed by noise of its own.
        """
        return self.pair is None

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self._word_embeddings().weight.device

    def input_vectors(self, batch: TokenBatch) -> torch.Tensor:
        """The vectors of texts, from all their readings, those in the first prompt first: (n, masks, dim)."""
        return self._joined_inputs(self._read(self.method.input_state, batch))

    def label_prompt_vectors(self, batch: TokenBatch) -> torch.Tensor:
        """The vectors of label texts that the encoder reads, from all their readings: (F, masks, dim)."""
        return self._joined_labels(self._read(self.method.label_readout, batch))

    def train(self, mode: bool = True) -> MatchingModel:
        """Training mode, or not; the encoder may be without dropout in either."""
        super().train(mode)
        if not self.dropout:
            self.encoder.train(False)
            for module in self.encoder.modules():
                if hasattr(module, "gradient_checkpointing"):
                    module.training = mode  # of these alone, not of what they hold: else they would keep all states
        return self

    def gradient_checkpointing_enable(self, **options: Any) -> None:
        """Save memory in training, as transformers' Trainer asks for it: the encoder's states are computed twice."""
        self.encoder.gradient_checkpointing_enable(**options)

    def prepare(self) -> None:
        """Find the ways in which this encoder can be read with less work."""
        with _preparing:
            known = vars(self.encoder)
            if READERS not in known:
                last_layer = LastLayer.of(self.encoder)
                known[READERS] = last_layer, PooledReader(self.encoder, last_layer)
            self._last_layer, self._pooled_reader = known[READERS]

    def word_vectors(self, token_ids: Sequence[Sequence[int]]) -> torch.Tensor:
        """The vectors of label texts that stand for themselves as words: (F, 1, dim)."""
        embeddings = self._word_embeddings().weight  # (vocabulary, dim)

        def words(ids: torch.Tensor) -> torch.Tensor:
            return embeddings[ids] if self.transform is None else self.transform.words(ids, embeddings)

        return verbalizer_vectors(token_ids, words, embeddings.device)

    def is_pretrained(self, parameter: str) -> bool:
        """Whether a parameter, by its name, was pretrained: it then learns at the encoder's rate."""
        with_head = self.transform is not None and self.transform.config.pretrained
        return parameter.startswith(("encoder.", "transform.") if with_head else "encoder.")

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
    ) -> dict[str, torch.Tensor]:
        """The loss of a batch: of its texts over all labels, of its distance from anchors, or of both.

        Texts and label prompts come pooled in groups of like length, so that one encoder reads both with
        little padding: row numbers below ``texts`` are texts, those from there on are label texts; within a
        group they ascend. Where labels are read with each text, these are all label texts with the first text, with
        the second and so on. Where label vectors are kept, the groups hold texts alone, and the label texts to read
        afresh are chosen by the vectors of these texts.

        Args:
            groups: Token batches over texts and label texts
            texts: How many of the rows are texts; where these are read in several prompts, all readings count
            targets: (texts,) the true labels' positions, or (texts, K) of 0 and 1 with several labels a text
            layout: Which label texts belong to which label
            words: The token ids of each label text, where labels are words in the embedding table
            anchors: Vectors that those of some rows are pulled to
            memory: The last known vectors of all label texts, if a step does not read all of them
        """
        inputs, flat = self._encode_pooled(groups, texts)  # (texts, masks, dim), (F, masks, dim)
        losses, scores = [], inputs.new_empty(0)
        if targets is not None and layout is not None:
            if memory is None:
                scores = self._scores(inputs, flat, layout, words)  # (texts, K)
            else:
                read, flat, scores = self._fresh_scores(inputs, targets, layout, memory)  # (m,), (m, masks, dim), …
                if anchors is not None and memory.held is not None:
                    anchors = anchors.followed_by(memory.held[read])
            losses.append(self._matching_loss(scores, targets))
        if anchors is not None:
            means = [part.mean(dim=1, keepdim=True) for part in (inputs, flat) if part is not None]
            rows = torch.cat(means)  # (rows, 1, dim): the two prompts may differ in their number of masks
            losses.append(anchor_loss(rows, anchors.to(rows.device)))
        return {"loss": torch.stack(losses).sum(), "scores": scores}

    def _scores(
        self, inputs: torch.Tensor, flat: torch.Tensor | None, layout: LabelLayout, words: Sequence[Sequence[int]]
    ) -> torch.Tensor:
        """The scores of texts with labels that were all read in this step, (texts, K)."""
        present = layout.present.to(inputs.device)
        if self.matrix is not None:
            scores: torch.Tensor = self.similarity(inputs, self.matrix(), present)
            return scores
        flat = self.word_vectors(words) if flat is None else flat
        if len(flat) != len(layout.texts):  # read with each text, those of the first text first
            flat = flat.view(len(inputs), -1, *flat.shape[1:])  # (texts, F, masks, dim)
        compared = self.similarity.compare(self.similarity.prepare(inputs), self.similarity.prepare(flat))  # (texts, F)
        return self.similarity.join(layout.arrange_scores(compared), present)

    def _fresh_scores(
        self, inputs: torch.Tensor, targets: torch.Tensor, layout: LabelLayout, memory: LabelMemory
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The numbers (m,) and vectors (m, masks, dim) of the label texts to read afresh, and all scores (texts, K)."""
        similarity, present = self.similarity, layout.present.to(inputs.device)
        prepared = similarity.prepare(inputs)  # (texts, dim), or (texts, masks, dim) where that is late
        kept = similarity.compare(prepared, memory.vectors)  # (texts, F), with a gradient for the texts alone
        with torch.no_grad():
            scores = similarity.join(layout.arrange_scores(kept), present)  # (texts, K)
            # A label's probability is also how strongly a text pulls at it.
            weights = (scores.sigmoid() if self.multi_label else scores.softmax(dim=1)).sum(dim=0)
            hardest, drawn = memory.choose(weights, _own_labels(targets, len(weights)))
        labels = torch.cat([hardest, drawn])
        rows = memory.texts_of(labels)  # (m,)
        vectors = self._read_label_batches(memory.batches(rows))  # (m, masks, dim)
        read_vectors = similarity.prepare(vectors)
        memory.keep(rows, read_vectors)
        afresh = similarity.compare(prepared, read_vectors)  # (texts, m)
        renewed = kept.index_copy(1, rows.to(inputs.device), afresh.to(kept.dtype))
        scores = similarity.join(layout.arrange_scores(renewed), present)
        if len(drawn):
            own = similarity.join(layout.arrange_scores(kept, drawn), present[drawn.to(inputs.device)])  # (texts, d)
            moved = lag(scores[:, drawn.to(inputs.device)], own, self.multi_label)  # (texts, 1)
            read = torch.zeros(len(layout.table), dtype=torch.bool).index_fill(0, labels, True).to(inputs.device)
            scores = torch.where(read, scores, scores + moved)
        return rows, vectors, scores

    def _matching_loss(self, scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if not self.multi_label:
            return cross_entropy(scores, targets)
        # Summed over labels: a mean would fade as labels grow in number, while a text keeps its few.
        losses = binary_cross_entropy_with_logits(scores, targets.to(scores.dtype), reduction="none")
        return losses.sum(dim=1).mean()

    def _read(self, kind: Readout, batch: TokenBatch) -> torch.Tensor:
        """What is read off a batch: (rows, masks, dim)."""
        places = places_of(kind, batch.attention_mask, batch.mask_positions)
        if self._last_layer is not None and places is not None:
            return self._last_layer.states_at(batch, places)
        return read_out(kind, hidden_states(self.encoder, batch), batch.attention_mask, batch.mask_positions)

    def _encode_pooled(self, groups: Sequence[TokenBatch], texts: int) -> tuple[torch.Tensor, torch.Tensor | None]:
        splits = [int((group.rows < texts).sum()) for group in groups]  # rows ascend, so texts come first
        inputs = [group.part(0, split) for group, split in zip(groups, splits, strict=True) if split]
        labels = [
            group.part(split, None) for group, split in zip(groups, splits, strict=True) if split < len(group.rows)
        ]
        vectors = self._read_together([(self.method.input_state, inputs), (self.method.label_readout, labels)])
        read_inputs = self._joined_inputs(_in_order(vectors[: len(inputs)], inputs))
        if not labels:
            return read_inputs, None
        return read_inputs, self._joined_labels(_in_order(vectors[len(inputs) :], labels))

    def _read_label_batches(self, batches: Sequence[TokenBatch]) -> torch.Tensor:
        """The vectors of label texts that come in batches, in the order of their row numbers: (m, masks, dim)."""
        return self._joined_labels(_in_order(self._read_together([(self.method.label_readout, batches)]), batches))

    def _read_together(self, readings: Sequence[tuple[Readout, Sequence[TokenBatch]]]) -> list[torch.Tensor]:
        """What is read off each of some batches, of each kind of reading: (rows, masks, dim)."""
        batches = [batch for _, some in readings for batch in some]
        kinds = [kind for kind, some in readings for _ in some]
        places = [
            places_of(kind, batch.attention_mask, batch.mask_positions)
            for kind, batch in zip(kinds, batches, strict=True)
        ]
        few = [place for place in places if place is not None]
        reader = self._reader
        with parametrize.cached():  # where an adapter is learned, its product is made once for all batches
            if len(few) == len(places):
                return reader.states_at(batches, few)
            states = reader.states(batches)  # each (rows, length, dim)
        return [
            read_out(kind, read, batch.attention_mask, batch.mask_positions)
            for kind, read, batch in zip(kinds, states, batches, strict=True)
        ]

    @property
    def _reader(self) -> PooledReader:
        self.prepare()
        assert self._pooled_reader is not None
        return self._pooled_reader

    def _joined_inputs(self, states: torch.Tensor) -> torch.Tensor:
        """The vectors of texts from what was read of them: (readings * n, masks, dim) → (n, masks or 1, dim)."""
        readings = self.readings[0]
        if self.pair is not None:
            beside = _apart(states, readings).transpose(0, 1).flatten(1, 2)  # (n, readings * masks, dim)
            states, readings = self.pair(beside), 1
        if self.transform is not None:
            states = self.transform(states)
        return _less(_apart(states, readings).mean(dim=0), self.input_origin)

    def _joined_labels(self, states: torch.Tensor) -> torch.Tensor:
        """The vectors of label texts from what was read of them: (readings * F, masks, dim) → (F, masks, dim)."""
        return _less(_apart(states, self.readings[1]).mean(dim=0), self.label_origin)

    def _word_embeddings(self) -> nn.Embedding:
        return cast("nn.Embedding", self.encoder.get_input_embeddings())


def _apart(states: torch.Tensor, readings: int) -> torch.Tensor:
    """Each reading by itself, of rows that hold all texts in the first prompt, then in the second: (readings, n, …)."""
    return states.reshape(readings, -1, *states.shape[1:])


def _less(vectors: torch.Tensor, origin: torch.Tensor | None) -> torch.Tensor:
    return vectors if origin is None else vectors - origin


def _own_labels(targets: torch.Tensor, labels: int) -> torch.Tensor:
    """Which labels are those of some text: positions (n,), or 0 and 1 in (n, K) → (K,)."""
    if targets.dim() == 2:
        return targets.bool().any(dim=0)
    return torch.zeros(labels, dtype=torch.bool, device=targets.device).index_fill(0, targets, True)


def _in_order(parts: Sequence[torch.Tensor], batches: Sequence[TokenBatch]) -> torch.Tensor:
    """What was read off batches, in the order of their row numbers: (rows, …)."""
    return torch.cat(list(parts))[torch.cat([batch.rows for batch in batches]).argsort()]
