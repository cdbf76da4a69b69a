"""Checks of an unpacked llama.cpp: through HIP on this machine's GPU, or Vulkan, also on Mesa's lavapipe.

Needs Python 3.11 and nothing else, and is one file: it goes alone to where the archive is tried. For each
check one line on standard output:

    ROCWRIGHT-CHECK {"name": ..., "ok": ..., "detail": ..., "device": ...}

The exit status is 0 when all passed, else 1. llama-server answers the same requests twice: with all layers
on the device, and with no device but the CPU. Both answers are compared, and with --expect also with tokens
known beforehand. HIP runs nowhere but on a GPU: without one, the CPU's answers alone are looked at, and what
would be compared is told as absent.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MARK = "ROCWRIGHT-CHECK "
VULKAN = "Vulkan"
NAMES = ("devices", "same-greedy-tokens", "logits-close", "server-chat")
PROMPT = "The quick brown fox jumps over the lazy dog"
TOKENS = 48
TOP = 10

# Log-probabilities come from logits of up to about 10. The cache is kept in float16 on both sides, and a GPU
# may round the factors of a product to float16 (2**-11 = 0.0005 relative): some 0.005 a rounding, a few of
# them in a row. A wrong kernel, a lost layer or a swapped head moves them by 0.5 and more.
TOLERANCE = 0.05

# A first run compiles shaders; in software, with other work beside it, that takes tens of seconds.
START_SECONDS = 240.0
REPLY_SECONDS = 240.0
STOP_SECONDS = 10.0


class CheckError(Exception):
    """Why a check failed, in one line."""


class NoDeviceError(CheckError):
    """There is no device of that backend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device as `llama-server --list-devices` names it; `visible` is what makes ggml take it."""

    name: str
    description: str
    visible: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One greedy completion: token ids, and for each the log-probabilities of the likeliest tokens."""

    tokens: tuple[int, ...]
    tops: tuple[dict[int, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What one llama-server said: its log, and its replies (or why there is none)."""

    log: str
    completion: dict[str, Any] | CheckError
    chat: dict[str, Any] | CheckError


def parse_devices(text: str) -> list[Device]:
    """The devices in the output of --list-devices, the CPU not among them."""
    found = re.findall(r"^ {2}(\w+): (.+) \(\d+ MiB, \d+ MiB free\)$", text, re.MULTILINE)
    return [Device(name=name, description=description) for name, description in found]


def placement(log: str) -> tuple[set[str], int, int]:
    """The devices that hold weights, the layers off the CPU, and all layers, as the log tells."""
    holders = set(re.findall(r"load_tensors: +(\w+) model buffer size =", log))
    layers = re.search(r"offloaded (\d+)/(\d+) layers to GPU", log)
    on, of = (int(layers[1]), int(layers[2])) if layers else (0, 0)
    return holders, on, of


def require_on_device(log: str, device: Device) -> None:
    """Raises CheckError unless the log shows every layer on `device`."""
    holders, on, of = placement(log)
    if f"using device {device.name} (" not in log or device.name not in holders:
        raise CheckError(f"the weights were in {sorted(holders) or 'no known place'}, not on {device.name}")
    if on == 0 or on != of:
        raise CheckError(f"{on} of {of} layers were on {device.name}")


def require_on_cpu(log: str) -> None:
    """Raises CheckError unless the log shows the weights on the CPU, and nowhere else."""
    holders, on, of = placement(log)
    if not holders or not all(name.startswith("CPU") for name in holders) or on > 0:
        raise CheckError(f"the CPU's run had its weights in {sorted(holders)} ({on} of {of} layers)")


def parse_answer(reply: dict[str, Any]) -> Answer:
    """A reply of /completion; raises CheckError when it lacks tokens or probabilities."""
    try:
        tokens = tuple(int(token) for token in reply["tokens"])
        tops = tuple(
            {int(top["id"]): float(top["logprob"]) for top in step["top_logprobs"]}
            for step in reply["completion_probabilities"]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CheckError(f"the completion has no {error}: {json.dumps(reply)[:200]}") from error
    if not tokens:
        raise CheckError("the completion is empty")
    if len(tops) != len(tokens):
        raise CheckError(f"{len(tokens)} tokens, but probabilities for {len(tops)}")
    return Answer(tokens=tokens, tops=tops)


def compare_tokens(gpu: Answer, cpu: Answer, expected: tuple[int, ...] | None, count: int) -> str:
    """Says how they agree; raises CheckError at the first token that differs."""
    sides = [("the CPU", cpu.tokens)] + ([("the expected", expected)] if expected is not None else [])
    for name, other in sides:
        for place, (mine, theirs) in enumerate(zip(gpu.tokens, other, strict=False)):
            if mine != theirs:
                raise CheckError(f"token {place + 1}: {mine} on the device, {theirs} from {name}")
    lengths = {len(gpu.tokens), *(len(other) for _, other in sides)}
    if lengths != {count}:
        raise CheckError(f"{count} tokens asked for, {sorted(lengths)} given")
    against = " and ".join(name for name, _ in sides)
    return f"{count} tokens, {len(set(gpu.tokens))} different ones, as from {against}"


def compare_logprobs(gpu: Answer, cpu: Answer, tolerance: float) -> str:
    """Says how far apart they are; raises CheckError where a log-probability is off by more than `tolerance`.

    Where the tokens differ, what follows has another context and is not compared.
    """
    worst, gap, compared = 0.0, float("inf"), 0
    for place, (mine, theirs) in enumerate(zip(gpu.tops, cpu.tops, strict=False)):
        shared = mine.keys() & theirs.keys()
        # A token may drop out at the end of one list; half must be on both.
        if 2 * len(shared) < max(len(mine), len(theirs)) or not shared:
            raise CheckError(f"token {place + 1}: only {len(shared)} of the likeliest tokens are on both")
        for token in sorted(shared):
            apart = abs(mine[token] - theirs[token])
            if not apart <= tolerance:
                raise CheckError(
                    f"token {place + 1}, candidate {token}: {mine[token]:.4f} on the device, "
                    f"{theirs[token]:.4f} on the CPU, more than {tolerance} apart"
                )
            worst, compared = max(worst, apart), compared + 1
        best = sorted(theirs.values(), reverse=True)
        if len(best) > 1:
            gap = min(gap, best[0] - best[1])
        if gpu.tokens[place] != cpu.tokens[place]:
            break
    if not compared:
        raise CheckError("nothing to compare")
    return (
        f"{compared} log-probabilities at most {worst:.5f} apart (allowed {tolerance}); least gap {gap:.3f}"
    )


def read_chat(reply: dict[str, Any]) -> str:
    """The text of a reply of /v1/chat/completions; raises CheckError when there is none."""
    try:
        text = reply["choices"][0]["message"]["content"]
        made = int(reply["usage"]["completion_tokens"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise CheckError(f"not a chat reply: {json.dumps(reply)[:200]}") from error
    if not isinstance(text, str) or not text or made < 1:
        raise CheckError(f"the chat reply is empty ({made} tokens)")
    return f"{made} tokens: {text[:60]!r}"


def list_devices(binary: Path, backend: str) -> tuple[Device, str]:
    """The backend's device to use, and how it was found; raises NoDeviceError when there is none.

    ggml takes GPUs by itself. It passes over Vulkan devices of the type CPU (lavapipe) unless
    GGML_VK_VISIBLE_DEVICES names them.
    """
    said = ""
    for visible in (None, "0") if backend == VULKAN else (None,):
        done = subprocess.run(
            [binary, "--list-devices"],
            env=environment(visible),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=START_SECONDS,
            check=False,
        )
        said = (done.stdout + done.stderr).strip()
        for device in parse_devices(done.stdout):
            if device.name.startswith(backend):
                how = "a GPU" if visible is None else "in software, GGML_VK_VISIBLE_DEVICES=0"
                return Device(name=device.name, description=device.description, visible=visible), how
        if done.returncode != 0:
            raise CheckError(f"--list-devices ended with status {done.returncode}: {tail(said)}")
    raise NoDeviceError(f"no {backend} device: {tail(said)}")


def environment(visible: str | None) -> dict[str, str]:
    """This process's environment, with a writable cache for Mesa and the choice of Vulkan devices."""
    env = dict(os.environ)
    env["XDG_CACHE_HOME"] = tempfile.gettempdir()
    if visible is not None:
        env["GGML_VK_VISIBLE_DEVICES"] = visible
    return env


def tail(text: str, lines: int = 3) -> str:
    """The last lines of a log, as one."""
    return " | ".join(line.strip() for line in text.strip().splitlines()[-lines:]) or "(it said nothing)"


@contextlib.contextmanager
def server(
    binary: Path, model: Path, placed: list[str], env: dict[str, str], users: int = 1
) -> Iterator[tuple[str, Path]]:
    """A llama-server for so many users at once on a free port of 127.0.0.1, ready to answer: its URL and its
    log. It always ends."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="llama-check-") as folder:
        log = Path(folder) / "log"
        command = [str(binary), "--model", str(model), *placed, "--host", "127.0.0.1", "--port", str(port)]
        command += ["--ctx-size", str(512 * users), "--parallel", str(users), "--threads", "2"]
        command += ["--fit", "off", "--offline"]
        command += ["--verbosity", "4"]
        with log.open("wb") as file:
            process = subprocess.Popen(
                command,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            wait_ready(process, f"http://127.0.0.1:{port}", log)
            yield f"http://127.0.0.1:{port}", log
        finally:
            end(process)


def wait_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Returns when the server has loaded the model; raises CheckError when it ends or takes too long."""
    limit = time.monotonic() + START_SECONDS
    while time.monotonic() < limit:
        if process.poll() is not None:
            said = tail(log.read_text(errors="replace"))
            raise CheckError(f"llama-server ended with status {process.returncode}: {said}")
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except (OSError, urllib.error.URLError):
            time.sleep(0.02)
    raise CheckError(f"llama-server was not ready after {START_SECONDS:.0f} s")


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends the server and what it started: politely, then not."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, kind)
        try:
            process.wait(STOP_SECONDS)
            break
        except subprocess.TimeoutExpired:
            continue


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def post(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """A JSON request and its reply; raises CheckError when there is none."""
    request = urllib.request.Request(
        url, data=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=REPLY_SECONDS) as reply:
            parsed = json.loads(reply.read())
    except urllib.error.HTTPError as error:
        raise CheckError(f"{url}: status {error.code}: {error.read()[:200]!r}") from error
    except (OSError, ValueError) as error:
        raise CheckError(f"{url}: {error}") from error
    if not isinstance(parsed, dict):
        raise CheckError(f"{url}: the reply is no JSON object")
    return parsed


def converse(binary: Path, model: Path, placed: list[str], env: dict[str, str], options: Options) -> Session:
    """Runs a server and asks it both questions; raises CheckError when it does not start."""
    with server(binary, model, [*placed, "--flash-attn", options.flash_attention], env) as (url, log):
        completion = attempt(
            lambda: post(
                f"{url}/completion",
                {
                    "prompt": options.prompt,
                    "n_predict": options.tokens,
                    "temperature": 0,
                    "seed": 0,
                    "n_probs": TOP,
                    "return_tokens": True,
                    "cache_prompt": False,
                    "ignore_eos": True,
                },
            )
        )
        chat = attempt(
            lambda: post(
                f"{url}/v1/chat/completions",
                {
                    "messages": [{"role": "user", "content": "Say something."}],
                    "max_tokens": 16,
                    "temperature": 0,
                },
            )
        )
        return Session(log=log.read_text(errors="replace"), completion=completion, chat=chat)


def attempt(ask: Callable[[], dict[str, Any]]) -> dict[str, Any] | CheckError:
    """A reply, or why there is none."""
    try:
        return ask()
    except CheckError as error:
        return error


def given(reply: dict[str, Any] | CheckError) -> dict[str, Any]:
    """The reply; raises the error that took its place."""
    if isinstance(reply, CheckError):
        raise reply
    return reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to check, from the command line."""

    folder: Path
    model: Path
    cpu_model: Path
    prompt: str
    tokens: int
    expected: tuple[int, ...] | None
    tolerance: float
    backend: str
    flash_attention: str


def parse_options(argv: list[str]) -> Options:
    """The command line."""
    parser = argparse.ArgumentParser(description="Check an unpacked llama.cpp.")
    parser.add_argument("folder", type=Path, help="the unpacked archive: the folder that has bin/")
    parser.add_argument("model", type=Path, help="a GGUF model")
    parser.add_argument("--backend", choices=(VULKAN, "ROCm"), default=VULKAN, help="as ggml names it")
    parser.add_argument("--flash-attention", choices=("auto", "on", "off"), default="auto")
    parser.add_argument("--cpu-model", type=Path, help="another model for the CPU: then the checks must fail")
    parser.add_argument("--prompt", default=PROMPT)
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--expect", help="token ids, with commas, that the greedy answer must be")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help="of a log-probability")
    args = parser.parse_args(argv)
    return Options(
        folder=args.folder,
        model=args.model,
        cpu_model=args.cpu_model or args.model,
        prompt=args.prompt,
        tokens=args.tokens,
        expected=tuple(int(token) for token in args.expect.split(",")) if args.expect else None,
        tolerance=args.tolerance,
        backend=args.backend,
        flash_attention=args.flash_attention,
    )


def report(name: str, device: str, judge: Callable[[], str], *, absent: bool = False) -> bool:
    """Prints the line of one check, and tells whether it passed."""
    try:
        detail, ok = judge(), True
    except (CheckError, OSError, subprocess.SubprocessError) as error:
        detail, ok = str(error) or type(error).__name__, False
    line = {"name": name, "ok": ok, "detail": detail, "device": device}
    if absent:
        line["state"] = "absent"
    print(MARK + json.dumps(line, ensure_ascii=False), flush=True)
    return ok


def run(options: Options) -> bool:
    """Runs all checks and prints their lines; True when all passed."""
    binary = options.folder / "bin" / "llama-server"
    try:
        device, how = list_devices(binary, options.backend)
    except (CheckError, OSError, subprocess.SubprocessError) as error:
        if isinstance(error, NoDeviceError) and options.backend != VULKAN:
            return run_on_cpu(options, binary, str(error))
        for name in NAMES:
            report(name, "none", lambda error=error: fail(str(error)))  # type: ignore[misc]
        return False
    where = device.description
    passed = [report("devices", where, lambda: f"{device.name}: {where} ({how})")]

    gpu: Session | CheckError
    cpu: Session | CheckError
    try:
        placed = ["--device", device.name, "--gpu-layers", "99"]
        gpu = converse(binary, options.model, placed, environment(device.visible), options)
    except (CheckError, OSError) as error:
        gpu = CheckError(str(error))
    try:
        placed = ["--device", "none", "--gpu-layers", "0"]
        cpu = converse(binary, options.cpu_model, placed, environment(None), options)
    except (CheckError, OSError) as error:
        cpu = CheckError(f"on the CPU: {error}")

    def on_device() -> Session:
        if isinstance(gpu, CheckError):
            raise gpu
        require_on_device(gpu.log, device)
        return gpu

    def both() -> tuple[Answer, Answer]:
        mine = parse_answer(given(on_device().completion))
        if isinstance(cpu, CheckError):
            raise cpu
        require_on_cpu(cpu.log)
        return mine, parse_answer(given(cpu.completion))

    passed.append(
        report(
            "same-greedy-tokens",
            where,
            lambda: compare_tokens(*both(), options.expected, options.tokens),
        )
    )
    passed.append(report("logits-close", where, lambda: compare_logprobs(*both(), options.tolerance)))
    passed.append(report("server-chat", where, lambda: read_chat(given(on_device().chat))))
    return all(passed)


def run_on_cpu(options: Options, binary: Path, why: str) -> bool:
    """What can be tried without a device: that it loads its libraries and answers. True when all passed.

    Its lines name no device: that the CPU answers says nothing of what a GPU would.
    """
    for name in NAMES[:3]:
        report(name, "", lambda: why, absent=True)
    placed = ["--device", "none", "--gpu-layers", "0"]
    cpu: Session | CheckError
    try:
        cpu = converse(binary, options.cpu_model, placed, environment(None), options)
    except (CheckError, OSError) as error:
        cpu = CheckError(f"on the CPU: {error}")

    def answers() -> str:
        if isinstance(cpu, CheckError):
            raise cpu
        require_on_cpu(cpu.log)
        count = len(parse_answer(given(cpu.completion)).tokens)
        if count != options.tokens:
            raise CheckError(f"{options.tokens} tokens asked for, {count} given")
        return f"on the CPU: {read_chat(given(cpu.chat))}"

    return report("server-chat", "", answers)


def fail(why: str) -> str:
    """Raises CheckError."""
    raise CheckError(why)


def main() -> int:
    return 0 if run(parse_options(sys.argv[1:])) else 1


if __name__ == "__main__":
    sys.exit(main())
