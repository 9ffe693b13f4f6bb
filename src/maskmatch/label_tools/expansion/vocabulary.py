"""Candidate phrases from the encoder's vocabulary: the words whose vectors are nearest to the label's vector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.label_tools.expansion.result import Candidate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import nn

    from maskmatch.label_tools.expansion.encoded_labels import EncodedLabels
    from maskmatch.matcher import MaskMatcher
    from maskmatch.model.encoder import Encoder
    from maskmatch.model.mlm_head import Head

SHORTEST_WORD = 3
ENCODED_PER_LABEL = 200
"""The number of vocabulary words that are encoded per label: encoding all of them would take minutes."""

LEAST_COSINE = 0.5
"""The lowest cosine of a word with its label: most names of several words have no single word with their meaning."""


def vocabulary_words(labels: EncodedLabels, limit: int) -> list[list[Candidate]]:
    """Return the vocabulary words per label that are nearest to it.

    A cheap first stage chooses which words to encode. If the encoder's checkpoint has a masked-language-model head,
    these are the words that it predicts at the mask of the label prompt; else the words whose input embeddings are
    near those of the name. The second stage encodes them in the label prompt and ranks them by their cosine with the
    label's vector.
    """
    words, ids = _whole_words(labels)
    preselection = _preselection_scores(labels, ids)  # (K, words)
    count = min(ENCODED_PER_LABEL, len(words))
    chosen = np.argpartition(-preselection, count - 1, axis=1)[:, :count]  # (K, count), indices of words
    distinct, inverse = np.unique(chosen, return_inverse=True)
    vectors = labels.encode_phrases([words[index] for index in distinct])  # (distinct, dim)
    similarities = labels.vectors @ vectors.T  # (K, distinct)
    names = {name.casefold() for name in labels.labels.names}
    candidates = []
    for own, row in zip(inverse.reshape(chosen.shape), similarities, strict=True):
        best = own[np.argsort(-row[own])]
        near = [words[distinct[index]] for index in best if row[index] >= LEAST_COSINE]
        candidates.append([Candidate(word) for word in near if word.casefold() not in names][:limit])
    return candidates


def _whole_words(labels: EncodedLabels) -> tuple[list[str], NDArray[np.int64]]:
    """Return the tokens that are whole words, and their ids: letters only, each word once, in vocabulary order."""
    tokenizer: Any = _encoder(labels).tokenizer
    ids = [id_ for id_ in range(len(tokenizer)) if id_ not in tokenizer.all_special_ids]
    tokens = tokenizer.convert_ids_to_tokens(ids)
    spellings = [tokenizer.convert_tokens_to_string([token]).strip() for token in tokens]
    words: dict[str, int] = {}
    for id_, word, token_ids in zip(ids, spellings, labels.token_ids(spellings), strict=True):
        if len(word) >= SHORTEST_WORD and word.isalpha() and token_ids == [id_]:
            words.setdefault(word.lower(), id_)
    if not words:
        raise MaskMatchError("The encoder's vocabulary has no whole words, so it cannot be a source of phrases.")
    return list(words), np.fromiter(words.values(), dtype=np.int64)


def _preselection_scores(labels: EncodedLabels, ids: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return cheap scores that decide which words to encode for each label: (K, words)."""
    import torch
    from torch.nn.functional import normalize

    embeddings = _input_embeddings(labels).weight.detach().cpu()  # (vocabulary, embedding)
    names = [label.name for label in labels.labels.labels]
    head = _pretrained_head(labels)
    if head is not None:
        return _mask_predictions(labels, head, names, ids)
    centred = embeddings - embeddings[torch.from_numpy(ids)].mean(dim=0)
    token_ids = labels.token_ids(names)
    name_means = torch.stack([centred[torch.tensor(own)].mean(dim=0) for own in token_ids])  # (K, embedding)
    return np.asarray(normalize(name_means) @ normalize(centred[torch.from_numpy(ids)]).T)


def _input_embeddings(labels: EncodedLabels) -> nn.Embedding:
    return cast("nn.Embedding", _encoder(labels).model.get_input_embeddings())


def _pretrained_head(labels: EncodedLabels) -> Head | None:
    """Load the masked-language-model head of the encoder's checkpoint; None if there is none."""
    from maskmatch.model.encoder import find_model
    from maskmatch.model.mlm_head import pretrained_head

    source = _encoder(labels).source
    try:
        return pretrained_head(*find_model(source))
    except (MaskMatchError, OSError):  # the checkpoint of a saved classifier may not exist any more
        return None


def _mask_predictions(
    labels: EncodedLabels, head: Head, names: Sequence[str], ids: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return the log-probability of each word at the mask of a label's prompt, minus its mean over labels: (K, words).

    The mean is subtracted because some words are likely at the mask of every label.
    """
    import torch

    from maskmatch.model.mlm_head import Transform

    embeddings = _input_embeddings(labels)
    with torch.no_grad():
        states = torch.from_numpy(labels.matcher.phrase_states(names))  # (K, masks, dim)
        transform = Transform(states.shape[-1], embeddings, head.config)
        transform.take(head.weights)
        words = transform.words(torch.from_numpy(ids), embeddings.weight.cpu())  # (words, out)
        logits = (transform(states) @ words.T).mean(dim=1)  # (K, words)
        log_probabilities = logits.log_softmax(dim=1)
        mean = log_probabilities.mean(dim=0, keepdim=True) if len(log_probabilities) > 1 else 0.0
        return np.asarray((log_probabilities - mean).float().numpy())


def _encoder(labels: EncodedLabels) -> Encoder:
    return cast("MaskMatcher", labels.matcher).encoder  # an export has no vocabulary of vectors
