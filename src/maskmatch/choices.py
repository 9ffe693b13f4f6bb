"""The words that users choose from. They stand by themselves, so that the command line knows them at once."""

from __future__ import annotations

from typing import Literal

Debias = Literal["none", "inputs", "labels", "both"]
"""Whose vectors are freed of what their prompt says by itself."""

Format = Literal["csv", "tsv", "json", "jsonl", "ndjson", "parquet", "txt"]
"""The format of a file of rows."""

LabelEncoding = Literal["auto", "full", "sampled"]
"""Which labels a training step reads."""

MaskJoin = Literal["mean", "concat", "late"]
"""How several masks are compared."""

PhraseJoin = Literal["mean", "max", "logsumexp"]
"""How the scores of a label's several phrases become one."""

PhraseSource = Literal["vocabulary", "training-words", "texts", "words"]
"""Where further phrases and examples of labels come from."""

SearchKind = Literal["auto", "exact", "approximate"]
"""How the best labels of a text are found."""

SimilarityKind = Literal["dot", "cosine"]
"""How two vectors are compared."""
