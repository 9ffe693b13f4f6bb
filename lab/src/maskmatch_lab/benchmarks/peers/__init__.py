"""The peers: libraries that maskmatch is compared with. Each has a file, which runs as a process in its environment.

A peer's file defines kinds of work (train, run a training step, predict). The parent process asks a peer to prepare and
run one, and the peer answers with the time that it measured (``worker.py``, ``process.py``). maskmatch itself runs in
the same way.
"""
