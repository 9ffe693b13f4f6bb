"""Who may open a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from maskmatch import MaskMatchError
from maskmatch.workbench.people import People, digest

if TYPE_CHECKING:
    from pathlib import Path


def test_people_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens.txt"
    path.write_text("# the team\nAda Lovelace s3cret\nbob\tother\n\n")
    people = People.load(path)
    assert people.names == {digest("s3cret"): "Ada Lovelace", digest("other"): "bob"}
    assert people.find(" s3cret ") == digest("s3cret")
    assert people.find("s3cre") is None
    assert people.find("") is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has no token"),
        ("# only this", "has no token"),
        ("token", "a line is a name, a space and a token"),
        ("ada same\nbob same", "has a token twice"),
    ],
)
def test_wrong_files(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "tokens.txt"
    path.write_text(content)
    with pytest.raises(MaskMatchError, match=message):
        People.load(path)
    with pytest.raises(MaskMatchError, match="cannot be read"):
        People.load(tmp_path / "none.txt")
