"""From the fields of an example to token ids and mask positions."""

from maskmatch.prompts.fields import FieldText, field_texts
from maskmatch.prompts.template import FIELDS, Prompt
from maskmatch.prompts.tokens import PromptTokenizer, TokenizedPrompts
from maskmatch.prompts.vocabulary import Vocabulary

__all__ = ["FIELDS", "FieldText", "Prompt", "PromptTokenizer", "TokenizedPrompts", "Vocabulary", "field_texts"]
