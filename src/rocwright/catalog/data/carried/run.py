"""Runs the checks of a carried verification, in its own root file system, and writes what they printed.

usage: run.py      in the root that /carry/jobs.json was made for; run.sh enters it

/carry/result.json is authenticated by the key of /carry/jobs.json: edits of it are found out. Needs Python
3.11 and nothing else. The exit status is 1 if a check failed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PASSED_ON = ("VK_DRIVER_FILES", "LD_LIBRARY_PATH")

# Where drivers say which they are: the first that is there.
DRIVERS = ("/proc/driver/nvidia/version", "/sys/module/amdgpu/version", "/sys/module/xe/version")
MOST_LINES, LONGEST = 5000, 4000


def run(job: dict[str, Any]) -> dict[str, Any]:
    """One check: what it printed, and how it ended."""
    env = job["env"] | {name: os.environ[name] for name in PASSED_ON if os.environ.get(name)}
    Path(job["workdir"]).mkdir(parents=True, exist_ok=True)
    try:
        ended = subprocess.run(
            job["argv"],
            env=env,
            cwd=job["workdir"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=job["seconds"],
            check=False,
        )
        code, text = ended.returncode, ended.stdout
    except subprocess.TimeoutExpired:
        code, text = -1, f"not done after {job['seconds']} s"
    # the programs on trial write it: no control code of theirs reaches the terminal
    print("".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text), flush=True)
    lines = [line[:LONGEST] for line in text.splitlines() if line.strip()]
    return {
        "component": job["component"],
        "check": job["check"],
        "code": code,
        "lines": [*lines[:MOST_LINES], *lines[MOST_LINES:][-20:]],
    }


def driver() -> str:
    for name in DRIVERS:
        try:
            return Path(name).read_text().splitlines()[0].strip()[:200]
        except (OSError, IndexError):
            continue
    return ""


def main(carry: Path = Path("/carry")) -> int:
    pack = json.loads((carry / "jobs.json").read_text())
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    since = time.monotonic()
    checks = [run(job) for job in pack["jobs"]]
    result = {
        "pack": pack["pack"],
        "started": started,
        "seconds": round(time.monotonic() - since, 3),
        "machine": f"kernel {platform.release()}",
        "driver": driver(),
        "checks": checks,
    }
    content = json.dumps(result, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    seal = hmac.new(bytes.fromhex(pack["key"]), content, hashlib.sha256).hexdigest()
    (carry / "result.json").write_text(json.dumps(result | {"hmac": seal}, indent=1) + "\n")
    lines = [line for check in checks for line in check["lines"]]
    return int(any(check["code"] for check in checks) or any('"ok": false' in line for line in lines))


if __name__ == "__main__":
    sys.exit(main())
