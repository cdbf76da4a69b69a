"""Run by `trace` in a process of its own, with no rocwright around: loads libraries, then runs programs.

usage: driver.py SITE REPORT [LIBRARY..] [-- PROGRAM..]
"""

import ctypes
import json
import runpy
import sys
import traceback
from pathlib import Path


def main(site: str, report: str, *words: str) -> None:
    """Load each library below `site`, run each program, and write what failed to `report`."""
    sys.path.insert(0, site)
    separator = words.index("--") if "--" in words else len(words)
    failed = {}
    for path in words[:separator]:
        try:
            ctypes.CDLL(f"{site}/{path}")
        except OSError as error:
            failed[path] = str(error)
    for program in words[separator + 1 :]:
        try:
            runpy.run_path(program, init_globals={"SITE": site}, run_name="__main__")
        except BaseException:
            failed[program] = traceback.format_exc(limit=-1)
    Path(report).write_text(json.dumps(failed))


if __name__ == "__main__":
    main(*sys.argv[1:])
