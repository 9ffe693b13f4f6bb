"""What tests share: no network, one tiny encoder per family."""

from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402

import pytest  # noqa: E402
import torch  # noqa: E402
from tiny_models import write_tiny_encoder  # noqa: E402

torch.set_num_threads(1)  # tiny models gain nothing from more, and tests run side by side


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives the folder of a tiny encoder of a family, made once."""
    folders: dict[str, Path] = {}

    def get(family: str = "bert") -> Path:
        if family not in folders:
            folders[family] = write_tiny_encoder(family, tmp_path_factory.mktemp(family))
        return folders[family]

    return get
