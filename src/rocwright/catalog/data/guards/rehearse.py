"""Runs the trials of a rehearsal in a step's tree, and writes down how each went: $OUT/report.json.

$REHEARSAL is JSON: the seed, whether all files are wanted, and the trials. Each trial's command runs once for
each file that its globs match and each value of its variables. It ends with 0 whatever the trials found; with
another status where the machine may be at fault: a command that was killed, or took too long.
"""

from __future__ import annotations

import glob
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

READ = 4 * 2**20
"""Bytes of a command's output that are looked at, from its end."""
TOLD = 500
"""Characters that are told of one failure."""
COMPILERS = ("gcc", "g++", "clang", "clang++", "hipcc", "cmake", "python3")


def units(trial, seed, every):
    """What a trial runs, as the variables that it sets, and how many that would be without a sample."""
    files, drawn = [], []
    if trial["files"]:
        files = sorted(set(matches(trial["files"])) - set(matches(trial["skip"])))
        sure = set(matches(trial["always"]))
        rest = [path for path in files if path not in sure]
        count = min(len(rest), max(0, trial["sample"] - len(sure)))
        if every or len(files) <= trial["sample"]:
            count = len(rest)
        drawn = sorted({*random.Random(f"{seed} {trial['name']}").sample(rest, count), *(sure & set(files))})
    values = [[(name, value) for value in found] for name, found in trial["each"].items()]
    combinations = [dict(one) for one in itertools.product(*values)]
    if not trial["files"]:
        return combinations, len(combinations)
    return [{"FILE": path} | other for path in drawn for other in combinations], len(files) * len(
        combinations
    )


def matches(globs):
    """The files that any of the globs matches."""
    found = (path for one in globs for path in glob.glob(one, recursive=True))
    return [path for path in found if os.path.isfile(path)]


def wrong(trial, status, text):
    """What is wrong with how a command ended; "" where nothing is."""
    if status:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        raised = [line for line in lines if re.match(r"[\w.]*(?:Error|Exception)\b", line)][-1:]
        errors = raised or [line for line in lines if re.search(r"\berror\b|Error\b", line)]
        return (errors or lines[-1:] or [f"it ended with {status}, and said nothing"])[0][:TOLD]
    for regex in trial["says"]:
        if not re.search(regex, text, re.MULTILINE):
            return f"it does not say {regex!r}"[:TOLD]
    for regex in trial["never"]:
        found = re.search(f".*(?:{regex}).*", text)
        if found:
            return f"it says: {found[0].strip()}"[:TOLD]
    return ""


def run(trial, unit):
    """What is wrong with one unit, "" for nothing; and why nobody can say, where that is so."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            ["/bin/sh", "-eu", "-c", trial["run"]],
            env=os.environ | unit,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            status = process.wait(trial["seconds"])
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return "", f"it did not end within {trial['seconds']:.0f} s"
        size = output.seek(0, os.SEEK_END)
        output.seek(max(0, size - READ))
        text = output.read().decode(errors="replace")
    # a shell tells a signal as 128 and its number; 9 is how the kernel ends what takes too much memory
    if status in (-9, 137) or re.search(r"Killed signal|Killed\s*$", text[-2000:]):
        return "", "it was killed, perhaps for want of memory"
    return wrong(trial, status, text), ""


def versions():
    """The tools of this root, each by the first line that it tells of itself."""
    found = {}
    for name in COMPILERS:
        try:
            done = subprocess.run(
                [name, "--version"], check=False, capture_output=True, text=True, timeout=60
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        lines = (done.stdout or done.stderr).strip().splitlines()
        if done.returncode == 0 and lines:
            found[name] = lines[0][:120]
    return found


def main():
    asked = json.loads(os.environ["REHEARSAL"])
    told, unknown, of = [], [], []
    jobs = max(1, int(os.environ.get("JOBS", "1")))
    # one after the other: what configures makes what is compiled
    for number, trial in enumerate(asked["trials"]):
        chosen, all_ = units(trial, asked["seed"], asked["all"])
        of.append(all_)

        with ThreadPoolExecutor(jobs) as pool:
            running = [pool.submit(run, trial, unit) for unit in chosen]
            for at, (unit, one) in enumerate(zip(chosen, running, strict=True), 1):
                name = " ".join(unit.values()).strip() or trial["name"]
                fault, nobody = one.result()
                if nobody:
                    unknown.append(f"{trial['name']}: {name}: {nobody}")
                told.append({"trial": number, "unit": name[-TOLD:], "ok": not fault, "detail": fault})
                state = nobody or (f"failed: {fault}" if fault else "ok")
                print(f"[{at}/{len(chosen)}] {trial['name']}: {name}: {state}", flush=True)
    if unknown:
        print("nobody can say how these went:", *unknown, sep="\n  ")
        return 75
    told.sort(key=lambda one: (one["trial"], one["unit"]))
    report = {"schema": 1, "of": of, "units": told, "tools": versions()}
    with open(os.path.join(os.environ["OUT"], "report.json"), "w") as file:
        json.dump(report, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
