"""Phrases from the encoder's own vocabulary: the words whose vectors, read as labels, come nearest to a label's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.expansion.phrases import Candidate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import nn

    from maskmatch.expansion.ground import Ground
    from maskmatch.mlm_head import Head

SHORTEST_WORD = 3
READ_PER_LABEL = 200
"""How many words of the vocabulary are read for each label: to read all of them would take minutes."""

NEAR = 0.5
"""The least cosine of a word and a label: most names of several words have no single word that means the same."""


def vocabulary_words(ground: Ground, number: int) -> list[list[Candidate]]:
    """For each label the words of the vocabulary that come nearest to it.

    Which words are read at all is told by the head of the encoder, if it was pretrained with one: those that it puts
    at the mask of the label's prompt. Without a head it is told by the encoder's word embeddings: those near the words
    of the name. What is read is ranked by how near it comes to the label's vector.
    """
    words, ids = _whole_words(ground)
    liked = _liked(ground, ids)  # (K, words)
    count = min(READ_PER_LABEL, len(words))
    chosen = np.argpartition(-liked, count - 1, axis=1)[:, :count]  # (K, count)
    places, where = np.unique(chosen, return_inverse=True)
    vectors = ground.read_phrases([words[place] for place in places])  # (read, dim)
    similarities = ground.vectors @ vectors.T  # (K, read)
    taken = {name.casefold() for name in ground.labels.names}
    found = []
    for own, row in zip(where.reshape(chosen.shape), similarities, strict=True):
        best = own[np.argsort(-row[own])]
        near = [words[places[place]] for place in best if row[place] >= NEAR]
        found.append([Candidate(word) for word in near if word.casefold() not in taken][:number])
    return found


def _whole_words(ground: Ground) -> tuple[list[str], NDArray[np.int64]]:
    """The tokens that are words by themselves, and their ids: letters alone, each word once, frequent ones first."""
    tokenizer: Any = ground.matcher.encoder.tokenizer
    ids = [id_ for id_ in range(len(tokenizer)) if id_ not in tokenizer.all_special_ids]
    tokens = tokenizer.convert_ids_to_tokens(ids)
    spelled = [tokenizer.convert_tokens_to_string([token]).strip() for token in tokens]
    again = ground.tokens(spelled)
    words: dict[str, int] = {}
    for id_, word, read in zip(ids, spelled, again, strict=True):
        if len(word) >= SHORTEST_WORD and word.isalpha() and read == [id_]:
            words.setdefault(word.lower(), id_)
    if not words:
        raise MaskMatchError("The encoder's vocabulary holds no whole words, so it has none to propose.")
    return list(words), np.fromiter(words.values(), dtype=np.int64)


def _liked(ground: Ground, ids: NDArray[np.int64]) -> NDArray[np.float32]:
    """How much each word suits each label at a first look: (K, words)."""
    import torch
    from torch.nn.functional import normalize

    table = _embeddings(ground).weight.detach().cpu()  # (vocabulary, embedding)
    names = [label.name for label in ground.labels.labels]
    head = _head(ground)
    if head is not None:
        return _at_mask(ground, head, names, ids)
    centred = table - table[torch.from_numpy(ids)].mean(dim=0)
    tokens = ground.tokens(names)
    means = torch.stack([centred[torch.tensor(own)].mean(dim=0) for own in tokens])  # (K, embedding)
    return np.asarray(normalize(means) @ normalize(centred[torch.from_numpy(ids)]).T)


def _embeddings(ground: Ground) -> nn.Embedding:
    return cast("nn.Embedding", ground.matcher.encoder.model.get_input_embeddings())


def _head(ground: Ground) -> Head | None:
    """The head that the encoder was pretrained with, if its checkpoint has one."""
    from maskmatch.encoder import find_model
    from maskmatch.mlm_head import pretrained_head

    source = ground.matcher.encoder.source
    try:
        return pretrained_head(*find_model(source))
    except (MaskMatchError, OSError):  # the checkpoint that a saved classifier came from may be gone
        return None


def _at_mask(ground: Ground, head: Head, names: Sequence[str], ids: NDArray[np.int64]) -> NDArray[np.float32]:
    """How much more a head puts each word at the mask of a label's prompt than at those of the others: (K, words)."""
    import torch

    from maskmatch.mlm_head import Transform

    embeddings = _embeddings(ground)
    with torch.no_grad():
        states = torch.from_numpy(ground.matcher.phrase_states(names))  # (K, masks, dim)
        transform = Transform(states.shape[-1], embeddings, head.config)
        transform.take(head.weights)
        words = transform.words(torch.from_numpy(ids), embeddings.weight.cpu())  # (words, out)
        scores = (transform(states) @ words.T).mean(dim=1)  # (K, words)
        logs = scores.log_softmax(dim=1)
        common = logs.mean(dim=0, keepdim=True) if len(logs) > 1 else 0.0
        return np.asarray((logs - common).float().numpy())
