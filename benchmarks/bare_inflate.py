"""`python bare_inflate.py WHEEL`: inflate its members, and no more; the least that reading it takes."""

import os
import sys
import zipfile
from pathlib import Path

from isal import isal_zlib

CHUNK = 256 * 1024


def main() -> None:
    """Python's zipfile reads the directory, isal inflates; checksums are not looked at."""
    with Path(sys.argv[1]).open("rb") as file, zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            file.seek(info.header_offset + 26)
            sizes = file.read(4)
            file.seek(int.from_bytes(sizes[:2], "little") + int.from_bytes(sizes[2:], "little"), os.SEEK_CUR)
            left, inflate = info.compress_size, isal_zlib.decompressobj(-15)
            while left:
                packed = file.read(min(left, CHUNK))
                left -= len(packed)
                data = inflate.decompress(packed, CHUNK)
                while data:
                    data = inflate.decompress(inflate.unconsumed_tail, CHUNK)


main()
