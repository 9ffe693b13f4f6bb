"""The libraries that maskmatch is measured beside: one file each, run as a process by the Python of its environment.

A peer's file gives kinds of work (train, take a training step, predict); the parent tells a process which to prepare
and run, and the process answers with the seconds that it measured (``worker.py``, ``process.py``). maskmatch itself
is run in the same way.
"""
