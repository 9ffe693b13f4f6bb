"""Prompt templates, and their conversion to token ids and mask positions."""

from maskmatch.prompts.batches import TokenizedPrompts
from maskmatch.prompts.fields import FieldText, field_texts, tokenize_texts
from maskmatch.prompts.label_texts import tokenize_label_texts
from maskmatch.prompts.template import FIELDS, Prompt
from maskmatch.prompts.tokenizer import PromptTokenizer
from maskmatch.prompts.vocabulary import Vocabulary

__all__ = [
    "FIELDS",
    "FieldText",
    "Prompt",
    "PromptTokenizer",
    "TokenizedPrompts",
    "Vocabulary",
    "field_texts",
    "tokenize_label_texts",
    "tokenize_texts",
]
