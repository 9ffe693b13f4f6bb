"""Learning from marks, or from the texts alone, in the background: what is better predicts from then on."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from maskmatch.errors import MaskMatchError
from maskmatch.evaluation.display import counted

if TYPE_CHECKING:
    from pathlib import Path

    from maskmatch.workbench.project import Project

logger = logging.getLogger("maskmatch")

HELD_BACK = 2
"""One of this many marks of the random sample is held back from training, to judge what it brought."""

ENOUGH_TO_JUDGE = 10
"""How many held-back marks it takes to decide whether a classifier is used; with fewer, people choose."""

MOST_ADAPTED = 20_000
"""How many texts it adapts to at most."""

Kind = Literal["train", "adapt"]


class Learning:
    """A classifier that learns from the marks of a project, or from its texts, in the background."""

    def __init__(self, project: Project, who: str, kind: Kind = "train") -> None:
        self._project, self._who, self._kind = project, who, kind
        labels, held = project.labels, project.held_back()
        truth = project.truth()
        self._rows = {text: key for text, key in truth.items() if text not in held}
        self._held = {text: key for text, key in truth.items() if text in held}
        if kind == "train" and len(set(self._rows.values())) < 2:
            raise MaskMatchError("Training needs marked texts of at least two labels; mark some more.")
        self._labels = labels
        self.share, self.message = 0.0, "loading"
        self.seen = False  # whether a page has shown how it ended
        self._cancelled = threading.Event()
        self.run = project.store.start_run(kind, who)
        self._thread = threading.Thread(target=self._work, name="maskmatch training", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    @property
    def cancelled(self) -> bool:
        """Whether somebody has asked it to stop."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Stop at the next step; nothing of it is kept."""
        self._cancelled.set()
        self._thread.join(timeout=60)

    def wait(self) -> None:
        """Wait until it has ended."""
        self._thread.join()

    def _work(self) -> None:
        store, folder = self._project.store, f"run-{self.run}"
        started = time.monotonic()
        try:
            figures = self._train(self._project.folder / folder)
        except _CancelledError:
            store.finish_run(self.run, "cancelled", {})
        except MaskMatchError as error:
            store.finish_run(self.run, "failed", {"error": str(error)})
        except Exception as error:
            logger.exception("training failed")
            store.finish_run(self.run, "failed", {"error": str(error)})
        else:
            seconds = round(time.monotonic() - started, 1)
            store.finish_run(self.run, "done", {**figures, "seconds": seconds}, folder)
            self.message = "done"
            if figures["better"]:
                try:
                    self._project.choose(self.run)
                except MaskMatchError as error:
                    store.finish_run(self.run, "failed", {"error": str(error)})
        finally:
            with suppress(OSError):
                if not (self._project.folder / folder / "maskmatch.json").exists():
                    shutil.rmtree(self._project.folder / folder, ignore_errors=True)

    def _train(self, folder: Path) -> dict[str, Any]:
        from maskmatch import MaskMatcher
        from maskmatch.workbench.watching import watcher

        project = self._project
        matcher = MaskMatcher.from_pretrained(project.model, self._labels.inside(), task=project.task, verbose=False)
        self.message = "learning"
        if self._kind == "train":
            texts = project.store.texts(list(self._rows))
            matcher.fit(texts, list(self._rows.values()), callbacks=[watcher(self._step)])
        else:
            matcher.adapt(project.store.texts(project.store.drawn()[:MOST_ADAPTED]))
            assert matcher.adaptation_ is not None
            if not matcher.adaptation_.adapted:
                raise MaskMatchError("Adapting to these texts would probably do harm, so it was left.")
        self._check()
        self.message = "judging"
        figures: dict[str, Any] = {
            "marks": len(self._rows) if self._kind == "train" else 0,
            "texts": sorted(self._rows) if self._kind == "train" else [],
            "held back": len(self._held),
            "better": False,
            "verdict": f"done; {counted(len(self._held), 'mark')} held back: too few to choose it by itself",
        }
        if self._held:
            held = project.store.texts(list(self._held))
            truth = np.array(list(self._held.values()))
            after = float(np.mean(np.array(matcher.predict(held)) == truth))
            before = float(np.mean(project.engine.predict(self._labels, held).keys == truth))
            figures |= {"right": round(after * len(held)), "right before": round(before * len(held))}
            if len(self._held) >= ENOUGH_TO_JUDGE:
                better = after >= before
                figures |= {"accuracy": round(after, 4), "accuracy before": round(before, 4), "better": better}
                figures["verdict"] = "done" if better else "not used: it is worse"
        self._check()
        matcher.save_pretrained(folder)
        return figures

    def _step(self, share: float) -> None:
        self._check()
        self.share = share

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise _CancelledError


class _CancelledError(Exception):
    """Somebody has cancelled the training."""
