"""Texts in two dimensions: principal components at once, UMAP when it is ready."""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from maskmatch.workbench.vectors import unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

View = Literal["pca", "umap"]

logger = logging.getLogger("maskmatch")


class Layout:
    """Where texts are on the map.

    Args:
        vectors: The vectors of the texts: (n, dim).
    """

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self.places: dict[View, NDArray[np.float64]] = {"pca": principal_components(vectors)}
        self.failed = False
        self._process: subprocess.Popen[bytes] | None = None
        self._lock, self._stopped = threading.Lock(), False
        self._thread = threading.Thread(target=self._work, args=(vectors,), name="maskmatch map", daemon=True)
        self._thread.start()

    @property
    def ready(self) -> bool:
        """Whether UMAP has finished."""
        return "umap" in self.places

    def wait(self, seconds: float = 300) -> None:
        """Wait until UMAP has finished, or failed."""
        self._thread.join(seconds)

    def stop(self) -> None:
        """Stop UMAP."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()
        self._thread.join()

    def _work(self, vectors: NDArray[np.float32]) -> None:
        try:
            self._umap(vectors)
        except Exception:  # such as a full disk
            logger.exception("no UMAP")
        finally:
            self.failed = not self.ready

    def _umap(self, vectors: NDArray[np.float32]) -> None:
        """In a process of its own: compiling UMAP would hold up the pages."""
        with tempfile.TemporaryDirectory() as folder:
            given, found = Path(folder) / "vectors.npy", Path(folder) / "places.npy"
            np.save(given, unit(vectors))
            with self._lock:
                if self._stopped:
                    return
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "maskmatch.workbench.layout", str(given), str(found)],
                    stderr=subprocess.PIPE,
                )
            _, errors = self._process.communicate()
            if self._process.returncode == 0:
                self.places["umap"] = np.load(found)
                return
        lines = errors.decode(errors="replace").strip().splitlines() or ["stopped"]
        logger.info("no UMAP: %s", lines[-1])


def principal_components(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """The two principal components of vectors: (n, 2)."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(centred[:2_000], full_matrices=False)
    return np.asarray(centred @ axes[:2].T)


def main() -> None:
    """Compute the places of vectors in a file, and write them to another one."""
    import umap

    vectors = np.load(sys.argv[1])
    neighbours = min(15, len(vectors) - 1)
    found = umap.UMAP(n_neighbors=neighbours, min_dist=0.1, metric="cosine", random_state=0).fit_transform(vectors)
    np.save(sys.argv[2], np.asarray(found, np.float64))


if __name__ == "__main__":
    main()
