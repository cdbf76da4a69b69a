"""`python bare_zstd.py FILE...`: decompress zstd files one after another, and no more."""

import sys
from pathlib import Path

import zstandard

CHUNK = 1024 * 1024


def main() -> None:
    """In one thread; what comes out is thrown away."""
    for name in sys.argv[1:]:
        with Path(name).open("rb") as file:
            reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file)
            while reader.read(CHUNK):
                pass


main()
