"""Measures an unpacked llama.cpp on the device that it finds: a command, or a server with some users.

Needs Python 3.11, and check.py of the checks beside it. Prints "device: NAME", then what the command
prints, or

    start: SECONDS s
    users COUNT: TOKENS tokens/s

once a run, each run in processes of its own. The exit status is 0 when all ran.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "checks" / "llama_cpp"))

import check

DEVICE = "DEVICE"
"""The word of a command that becomes the device, as llama.cpp names it."""

WARM_UP = 8
"""Tokens of an answer that is not measured."""

CPU = check.Device(name="none", description="cpu")


def chosen(binary: Path) -> check.Device:
    """The device to measure: a GPU, else a Vulkan device in software, else the CPU."""
    for backend in ("ROCm", check.VULKAN):
        try:
            return check.list_devices(binary, backend)[0]
        except check.NoDeviceError:
            continue
    return CPU


def measure_command(command: list[str], device: check.Device) -> None:
    """Run a command on the device; its output is this program's. Raises CheckError where it fails."""
    words = [device.name if word == DEVICE else word for word in command]
    done = subprocess.run(words, env=check.environment(device.visible), stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise check.CheckError(f"{Path(words[0]).name} ended with status {done.returncode}")


def measure_server(binary: Path, model: Path, device: check.Device, users: list[int], tokens: int) -> None:
    """Start a server, and ask it as so many users at once. Raises CheckError where it does not answer."""
    layers = "0" if device is CPU else "99"
    placed = ["--device", device.name, "--gpu-layers", layers]
    begun = time.monotonic()
    with check.server(binary, model, placed, check.environment(device.visible), users=max(users)) as (url, _):
        print(f"start: {time.monotonic() - begun:.3f} s", flush=True)
        for count in users:
            # the first requests compile what the device lacks yet for so many at once
            rate(url, count, WARM_UP)
            print(f"users {count}: {rate(url, count, tokens):.3f} tokens/s", flush=True)


def rate(url: str, users: int, tokens: int) -> float:
    """Tokens a second that so many users get together, each with a prompt of its own."""
    begun = time.monotonic()
    with ThreadPoolExecutor(users) as pool:
        made = sum(pool.map(lambda user: ask(url, user, tokens), range(users)))
    return made / (time.monotonic() - begun)


def ask(url: str, user: int, tokens: int) -> int:
    """The number of tokens of one answer. Raises CheckError where there are not as many as asked for."""
    body: dict[str, Any] = {
        "prompt": f"{user} {check.PROMPT}",
        "n_predict": tokens,
        "temperature": 0,
        "cache_prompt": False,
        "ignore_eos": True,
        "return_tokens": True,
    }
    made = len(check.post(f"{url}/completion", body).get("tokens", []))
    if made != tokens:
        raise check.CheckError(f"{tokens} tokens asked for, {made} given")
    return made


def main(argv: list[str]) -> int:
    """0 when all ran, else 1."""
    place = argv.index("--") if "--" in argv else len(argv)
    parser = argparse.ArgumentParser(description="Measure an unpacked llama.cpp.")
    parser.add_argument("folder", type=Path, help="the unpacked archive: the folder that has bin/")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--model", type=Path, help="a GGUF model, for the server")
    parser.add_argument("--users", type=int, action="append", default=[])
    parser.add_argument("--tokens", type=int, default=64, help="of each answer")
    options = parser.parse_args(argv[:place])
    command = argv[place + 1 :]
    binary = options.folder / "bin" / "llama-server"
    try:
        device = chosen(binary)
        print(f"device: {device.description}", flush=True)
        for _ in range(options.runs):
            if command:
                measure_command(command, device)
            else:
                measure_server(binary, options.model, device, options.users, options.tokens)
    except (check.CheckError, OSError, subprocess.SubprocessError) as error:
        print(f"failed: {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
