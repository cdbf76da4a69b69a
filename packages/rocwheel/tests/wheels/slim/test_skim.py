from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel.wheels.choose import Target
from rocwheel.wheels.parts import pieces
from rocwheel.wheels.scratch import scratch
from rocwheel.wheels.slim.wheel import skimmed
from rocwheel.wheels.slim.wish import Wish
from rocwheel_samples.fatbin import entry_id, fatbin, gpu_elf, plain_bundle

MACHINES = {"gfx803": 0x2A, "gfx1103": 0x44, "gfx1151": 0x4A}
WISH = Wish(targets=(Target("gfx1151"),), covered={})
CONTENT = bytes(4096) + fatbin(
    [
        plain_bundle(
            [
                (entry_id(name), gpu_elf(mach, body=hashlib.shake_256(name.encode()).digest(50_000)))
                for name, mach in MACHINES.items()
            ]
        )
        for _ in range(3)
    ]
)


def parts(content: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]


def test_code_that_is_not_needed_is_not_kept(tmp_path: Path) -> None:
    with scratch(tmp_path) as aside:
        source = skimmed(lambda: parts(CONTENT, 1 << 20), len(CONTENT), WISH, aside, "x")
        assert aside.size < len(CONTENT) - 3 * 2 * 50_000 + 4096
        assert source.size == len(CONTENT)
        assert source.read_at(0, 8192) == CONTENT[:8192]


def test_what_was_let_go_is_there_when_it_is_read_nevertheless(tmp_path: Path) -> None:
    with scratch(tmp_path) as aside:
        source = skimmed(lambda: parts(CONTENT, 1 << 20), len(CONTENT), WISH, aside, "x")
        assert b"".join(pieces(source)) == CONTENT


@given(
    size=st.integers(1000, 70_000),
    changes=st.lists(st.tuples(st.integers(4096, 4096 + 300), st.integers(0, 255)), max_size=6),
    in_memory=st.sampled_from([0, 60_000, 1 << 20]),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_every_byte_is_the_same_however_it_comes_and_whatever_a_bundle_claims(
    size: int, changes: list[tuple[int, int]], in_memory: int
) -> None:
    content = bytearray(CONTENT)
    for at, value in changes:
        content[at] = value
    whole = bytes(content)
    with scratch(Path(tempfile.gettempdir()), in_memory) as aside:
        source = skimmed(lambda: parts(whole, size), len(whole), WISH, aside, "x")
        assert b"".join(pieces(source)) == whole
        assert source.read_at(5000, 100_000) == whole[5000:105_000]
