"""Runs gfx-smoke of a wheel on an emulated GPU, with a part of its work.

gfx_smoke.py --wheels FOLDER --scale PART --target TARGET --races FILE --lds-race BEGINS --race BEGINS -- ..
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from told import arguments, last, say


def main() -> int:
    words, emulator = arguments("wheels", "scale")
    program = unpacked(Path(words.wheels))
    status, told, errors = emulator.run([str(program), "--json", "--scale", words.scale], 1500)
    try:
        report = json.loads(told)
    except ValueError:
        say("gfx-smoke", False, f"ended with {status} and no report: {last(told or errors)}", words.target)
        return 1
    ok = [is_right(words.target, report)]
    for one in report["results"]:
        # times mean nothing here, and are not told
        detail = f"size {one['size']}, scale {words.scale}: off by {one['error']}, {one['tolerance']} allowed"
        say(one["kernel"], one["ok"], detail, words.target)
        ok.append(one["ok"])
    ok.append(emulator.say_races(words.target))
    return 0 if all(ok) else 1


def unpacked(wheels: Path) -> Path:
    """The program in the wheel, laid out to be run."""
    (wheel,) = wheels.glob("gfx_smoke-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith("bin/gfx-smoke")]
        program = Path(archive.extract(name, Path.cwd()))
    program.chmod(0o755)
    return program


def is_right(target: str, report: dict[str, Any]) -> bool:
    """Whether it ran in an emulator, on that target; says so where it did not."""
    error, devices = report["error"], report["devices"]
    if error is not None:
        say("gfx-smoke", False, f"{error['what']}: {error['cause']}", target)
        return False
    (device,) = devices
    ok = bool(device["emulator"]) and device["target"].partition(":")[0] == target
    by = device["emulator"] or "no emulator"
    say("device", ok, f"{device['name']}, {device['target']}, by {by}", target)
    return ok


if __name__ == "__main__":
    sys.exit(main())
