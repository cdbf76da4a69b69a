"""What a shared store says of itself: one message for whatever cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocwright.store.bucket import Bucket
from rocwright.store.push import listed_keys, read_mark
from rocwright.store.shared import FORMAT, KEYS

DEEP = "[" * 50_000


@pytest.mark.parametrize("text", [DEEP, '{"schema": Infinity, "name": "a"}', '{"schema": 1e999}', "{}", "5"])
@pytest.mark.parametrize(("name", "read"), [(FORMAT, read_mark), (KEYS, listed_keys)])
def test_a_mark_that_cannot_be_read_is_one_message(
    name: str, read: Callable[[Bucket], object], text: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=r"no store of rocwright|lists no keys"):
        read(Bucket(tmp_path.as_uri()))
