"""A farm on this machine, for `make farm`: a store, a coordinator, two workers, a build over them, a page.

    .venv/bin/python -m tools.farm [STACK] [--leave]

One worker is killed while it compiles. Then the artifacts are built again on one machine, and the bytes are
compared. With `--leave` it ends by itself; else it stays until Ctrl-C, so that one can look at the page.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from tests.farm.machines import Running, make_homes, running
from tests.store.servers import s3

from rocwright.farm.dask.coordinator import places
from rocwright.sources.bases.roots import remove_tree

# What S3's clients read; the server takes any key.
SHARED = {
    "AWS_ALLOW_HTTP": "true",
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "a-key",
    "AWS_SECRET_ACCESS_KEY": "a-secret",
}


def say(text: str) -> None:
    """Tell what is going on."""
    print(f"farm: {text}", flush=True)


def rocwright(home: Path, folder: Path, *words: str) -> str:
    """A command with that home, in that folder; what it told, also of what differs or failed. Its progress
    is shown."""
    return subprocess.run(
        [sys.executable, "-m", "rocwright", *words],
        cwd=folder,
        env=os.environ | {"ROCWRIGHT_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    ).stdout


def kill_one(address: str, workers: dict[str, Running], killed: list[str]) -> None:
    """Kill the first worker that has compiled for a while."""
    while not killed:
        for place in places(address, None):
            # steps that fetch, or make a root or a tree, have another word before a slash
            if any("/" not in one.step and one.seconds > 3 for one in place.runs):
                killed.append(place.name)
                say(f"killing the worker {place.name}, which compiles")
                os.killpg(workers[place.name].process.pid, signal.SIGKILL)
                return
        time.sleep(0.5)


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def main(words: list[str]) -> int:
    """Build over a farm; the exit status."""
    # also where it is asked to end, or began in a shell's background: what it started ends with it
    for asked in (signal.SIGINT, signal.SIGTERM):
        signal.signal(asked, _interrupted)
    stack = next((word for word in words if not word.startswith("-")), "torch-extensions")
    root = Path(tempfile.mkdtemp(prefix="rocwright-farm-"))
    with ExitStack() as open_:
        open_.callback(remove_tree, root)
        os.environ |= {**SHARED, "AWS_ENDPOINT_URL": open_.enter_context(s3())}
        homes = make_homes(root / "homes")
        up = open_.enter_context(running(homes["asks"], "farm", "up", "--port", "0"))
        address = up.wait_for("coordinator at").split()[-1]
        for home in homes.values():
            (home / "config.toml").write_text(f'store = "s3://lab/farm"\n\n[farm]\nscheduler = "{address}"\n')
        workers = {
            name: open_.enter_context(running(homes[name], "farm", "worker", "--name", name))
            for name in ("one", "two")
        }
        for one in workers.values():
            one.wait_for("is a worker of")
        served = open_.enter_context(running(homes["asks"], "serve", "--port", "0"))
        page = served.wait_for("/enter?token=").split()[-1]
        say(f"a store, a coordinator and two workers run; see {page}&to=/farm")
        project = root / "project"
        project.mkdir()
        rocwright(homes["asks"], project, "init", "--stack", stack, "--gpu", "gfx1103")
        killed: list[str] = []
        threading.Thread(target=kill_one, args=(address, workers, killed), daemon=True).start()
        built = json.loads(rocwright(homes["asks"], project, "build", "--executor", "dask", "--json"))
        if "run" not in built:
            return 1
        for step in built["run"]["steps"]:
            say(f"{step['name']}: {step['outcome']} in {step['seconds']:.0f} s")
        tries = [step for step in built["run"]["steps"] if step["outcome"] == "again"]
        if not killed or not tries:
            say("no worker was killed while it compiled: this tried nothing")
            return 1
        say(f"{tries[0]['name']} was lost with {killed[0]}, and built by the other worker")
        same = json.loads(rocwright(homes["asks"], project, "reproduce", "--json"))["same"]
        say("built again on one machine: " + ("the same bytes" if same else "other bytes"))
        for one in built["artifacts"]:
            say(f"{one['sha256']}  {one['filename']}")
        if "--leave" not in words:
            say(f"the page: {page}&to=/farm (Ctrl-C ends all)")
            try:
                signal.pause()
            except KeyboardInterrupt:
                say("ending")
        return 0 if same else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        say("ended")
        sys.exit(130)
    except (AssertionError, ValueError) as error:
        # a server did not start in time, or a build printed no result
        say(f"gave up: {error or type(error).__name__}")
        sys.exit(1)
