"""First experiment: compute mask states by hand and compare them.

Mask Matching puts each text into an input prompt and each label into a label prompt. Both contain a mask. One encoder
encodes both, and its states at the two masks are compared. This script does it by hand, to show that this is all.
"""

import torch
from torch.nn.functional import normalize

from maskmatch import MaskMatcher

PROMPT, LABEL_PROMPT = "{text} It was {mask}.", "{label} is {mask}."
LABELS = ["positive", "negative"]
PRAISE = ["A warm and funny film!", "The actors shine and the ending moved me.", "I could not stop laughing."]
BLAME = ["Two hours that I will never get back.", "The plot is thin, the jokes fall flat.", "You need not hurry."]
TEXTS = [*PRAISE, *BLAME]
TRAINING = {
    "It swept me off my feet.": "positive",
    "A joy from the first scene to the last.": "positive",
    "I hurried to see it a second time.": "positive",
    "Rarely has a cast been this good.": "positive",
    "Nobody in the cast seems to want to be there.": "negative",
    "I looked at my watch every five minutes.": "negative",
    "Save your money and stay at home.": "negative",
    "The second half is a waste of time.": "negative",
}


def mask_states(matcher: MaskMatcher, prompts: list[str]) -> torch.Tensor:
    """The encoder's last hidden state at the mask of each prompt, with unit norm: (prompts, dim)."""
    tokenizer, model = matcher.encoder.tokenizer, matcher.encoder.model
    filled = [prompt.replace("{mask}", str(tokenizer.mask_token)) for prompt in prompts]
    batch = tokenizer(filled, padding=True, return_tensors="pt").to(model.device)
    with torch.inference_mode():
        states = model(**batch).last_hidden_state  # (prompts, tokens, dim)
    return normalize(states[batch["input_ids"] == tokenizer.mask_token_id], dim=1)


def show(matcher: MaskMatcher) -> torch.Tensor:
    """Print the cosines of texts and labels and the resulting probabilities; returns the cosines (texts, labels)."""
    texts = mask_states(matcher, [PROMPT.replace("{text}", text) for text in TEXTS])
    labels = mask_states(matcher, [LABEL_PROMPT.replace("{label}", label) for label in LABELS])
    cosines = texts @ labels.T  # the dot product of unit vectors is the cosine
    # The rest is a softmax over the labels. The small temperature (0.05) makes small leads count.
    by_hand = (cosines / matcher.config.similarity.temperature).softmax(dim=1)
    print(f"{'cosine with':44}{LABELS[0]:>9}{LABELS[1]:>10}   p({LABELS[0]})   predict_proba")
    for text, cosine, mine, its in zip(TEXTS, cosines, by_hand, matcher.predict_proba(TEXTS), strict=True):
        print(f"{text:44}{cosine[0]:9.2f}{cosine[1]:10.2f}{mine[0]:14.2f}{its[0]:16.2f}")
    print(f"{'(the other label)':44}{labels[1] @ labels[0]:9.2f}{labels[0] @ labels[1]:10.2f}\n")
    return cosines


def main(epochs: int = 20) -> tuple[torch.Tensor, torch.Tensor]:
    """Show the cosines before and after a short training; returns both."""
    matcher = MaskMatcher.from_pretrained(labels=LABELS, prompt=PROMPT, label_prompt=LABEL_PROMPT)
    print("1. Before training. The label with the higher cosine wins. Three texts of praise, then three of blame:\n")
    before = show(matcher)
    print("2. The first text in other prompts: cosine of its mask state with the one in the prompt above:\n")
    first, last = mask_states(matcher, [PROMPT.replace("{text}", text) for text in (TEXTS[0], TEXTS[-1])])
    for prompt in ("{text} All in all, {mask}.", "It was {mask}. {text}"):
        print(f"{prompt:44}{mask_states(matcher, [prompt.replace('{text}', TEXTS[0])])[0] @ first:9.2f}")
    print(f"{'(the last text in the prompt above)':44}{last @ first:9.2f}\n")
    print(f"3. After training on {len(TRAINING)} other texts, which changes the vectors of texts and of labels:\n")
    # By default label vectors also shift towards the centroids of training texts. Here they do not, as in the paper.
    matcher.fit(list(TRAINING), list(TRAINING.values()), epochs=epochs, example_share=0)
    return before, show(matcher)


if __name__ == "__main__":
    main()
