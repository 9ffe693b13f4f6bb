"""What a refusal looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from maskmatch import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Callable


def refusal(call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """The one sentence with which a call is refused."""
    with pytest.raises(MaskMatchError) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message
