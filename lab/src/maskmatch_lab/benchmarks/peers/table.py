"""The table of peers: the file that runs each, and the requirements of its environment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """A library to measure.

    Attributes:
        name: Its name.
        module: Its file in this folder, without the extension.
        requirements: The packages of its environment besides those of the project, at exact versions; empty: it runs in
            the project's own environment.
        packages: The packages whose versions are reported with its results.
    """

    name: str
    module: str
    requirements: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()


OURS = "maskmatch"
PEERS = {
    peer.name: peer
    for peer in (
        Peer(OURS, "ours", packages=("maskmatch", "onnxruntime", "faiss-cpu")),
        Peer("bare loop", "bare_loop", packages=("torch", "transformers")),
        Peer("sentence-transformers", "sentence_encoder", packages=("sentence-transformers",)),
        Peer("cross-encoder", "cross_encoder", packages=("sentence-transformers",)),
        Peer("SetFit", "contrastive", ("setfit==1.2.0", "evaluate==0.4.6"), ("setfit", "sentence-transformers")),
        Peer("GLiClass", "label_prompt", ("gliclass==0.1.21",), ("gliclass",)),
        Peer("tf-idf", "word_counts", packages=("scikit-learn",)),
    )
}
