"""Checks of an unpacked whisper.cpp or stable-diffusion.cpp: its server, on a Vulkan device and on the CPU.

Needs Python 3.11 and nothing else, and is one file: it goes alone to where the archive is tried. For each
check one line on standard output:

    ROCWRIGHT-CHECK {"name": ..., "ok": ..., "detail": ..., "device": ...}

The exit status is 0 when all passed, else 1. The server answers the same requests on the device, once more
in another process on the device, and on the CPU alone. Where there is no GPU, Mesa's lavapipe is the device.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MARK = "ROCWRIGHT-CHECK "
DEVICE = re.compile(r"ggml_vulkan: 0 = (.+?) \([^()]*\) \|")
"""What ggml says of the first device that it takes: its name, with the driver in brackets behind it."""

# Probabilities of single tokens, of some 0.9 each at this temperature; at 0 all would be 1. Products are
# rounded to float16 on a GPU (2**-11 relative, a few in a row), which moves them by thousandths.
TEMPERATURE = "2"
PROBABILITY = 0.02

# Parts of 255 that a colour may differ by: the same rounding through some sixty layers. Another seed, or a
# wrong product, moves most of the picture by more than that.
COLOUR = 6
MOST_OFF = 0.01
"""The share of colours that may differ by more: where a value is near an edge, a little moves it far."""

SIDE = 64
STEPS = 2
PROMPT = "a red ball on a table"
START_SECONDS = 300.0
REPLY_SECONDS = 300.0
STOP_SECONDS = 10.0


class ReplyError(Exception):
    """Why a check failed, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture of 8-bit colours, row by row."""

    width: int
    height: int
    colours: bytes


def read_png(data: bytes) -> Picture:
    """A picture of 8-bit RGB without interlacing. Raises ReplyError for everything else."""
    if data[:8] != b"\x89PNG\r\n\x1a\n" or data[12:16] != b"IHDR":
        raise ReplyError("it is no PNG")
    width, height, *kind = struct.unpack(">IIBBBBB", data[16:29])
    if kind != [8, 2, 0, 0, 0]:
        raise ReplyError(f"it is not of 8-bit RGB: {kind}")
    packed, at = b"", 8
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += 12 + length
    stride = 3 * width
    try:
        raw = zlib.decompressobj().decompress(packed, (stride + 1) * height + 1)
    except zlib.error as error:
        raise ReplyError(f"it cannot be unpacked: {error}") from error
    if len(raw) != (stride + 1) * height:
        raise ReplyError(f"{len(raw)} bytes are no picture of {width}x{height}")
    rows = bytearray()
    above = bytes(stride)
    for row in range(height):
        line = raw[row * (stride + 1) : (row + 1) * (stride + 1)]
        above = unfiltered(line[0], line[1:], above)
        rows += above
    return Picture(width=width, height=height, colours=bytes(rows))


def unfiltered(kind: int, line: bytes, above: bytes) -> bytes:
    """A row as it was before it was filtered (PNG specification, section 9). Raises ReplyError."""
    if kind > 4:
        raise ReplyError(f"a row has the filter {kind}")
    row = bytearray(line)
    for at, value in enumerate(line):
        left = row[at - 3] if at >= 3 else 0
        up, corner = above[at], above[at - 3] if at >= 3 else 0
        guess = (0, left, up, (left + up) // 2, nearest(left, up, corner))[kind]
        row[at] = (value + guess) % 256
    return bytes(row)


def nearest(left: int, up: int, corner: int) -> int:
    """Paeth's predictor."""
    guess = left + up - corner
    return min((left, up, corner), key=lambda one: abs(guess - one))


def compare_pictures(mine: Picture, theirs: Picture) -> str:
    """Says how far apart they are; raises ReplyError where that is too far, or a picture shows nothing."""
    if (mine.width, mine.height) != (theirs.width, theirs.height):
        raise ReplyError(f"{mine.width}x{mine.height} and {theirs.width}x{theirs.height}")
    if len(set(theirs.colours)) < 16:
        raise ReplyError(f"the picture has only {len(set(theirs.colours))} different values")
    apart = [abs(one - other) for one, other in zip(mine.colours, theirs.colours, strict=True)]
    off = sum(one > COLOUR for one in apart)
    said = f"{len(apart):,} colours at most {max(apart)} of 255 apart, {off} by more than {COLOUR}"
    if off > MOST_OFF * len(apart):
        raise ReplyError(said)
    return said


def words_of(reply: dict[str, Any]) -> list[tuple[str, float]]:
    """The words that were heard, with their probabilities. Raises ReplyError."""
    try:
        found = [
            (str(word["word"]), float(word["probability"]))
            for part in reply["segments"]
            for word in part["words"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise ReplyError(f"not a transcription: {json.dumps(reply)[:200]}") from error
    if not found:
        raise ReplyError("nothing was heard")
    return found


def compare_words(mine: list[tuple[str, float]], theirs: list[tuple[str, float]]) -> str:
    """Says how far apart they are; raises ReplyError where words differ, or a probability by too much."""
    if [word for word, _ in mine] != [word for word, _ in theirs]:
        raise ReplyError(f"{''.join(w for w, _ in mine)!r} and {''.join(w for w, _ in theirs)!r}")
    apart = max(abs(one - other) for (_, one), (_, other) in zip(mine, theirs, strict=True))
    least = min(one for _, one in theirs)
    said = f"{len(mine)} words, probabilities at most {apart:.5f} apart (allowed {PROBABILITY})"
    said = f"{said}, the least {least:.3f}"
    if not apart <= PROBABILITY:
        raise ReplyError(said)
    return said


def sound() -> bytes:
    """A WAV file: two seconds of a rising tone."""
    samples, phase = [], 0
    for at in range(32_000):
        phase += 300 + at // 40
        samples.append((phase // 16 % 1000 - 500) * 16)
    data = struct.pack(f"<{len(samples)}h", *samples)
    head = struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        36 + len(data),
        b"WAVE",
        b"fmt ",
        16,
        1,
        1,
        16_000,
        32_000,
        2,
        16,
        b"data",
        len(data),
    )
    return head + data


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A server to be asked: its words before the port, its page of health, and how it is asked."""

    command: list[str]
    port: str
    health: str
    on_cpu: list[str]
    ask: Callable[[str], Any]


def speech(folder: Path, model: Path, beside: list[str]) -> Program:
    """whisper-server."""
    return Program(
        command=[
            str(folder / "bin/whisper-server"),
            "--model",
            str(model),
            "--host",
            "127.0.0.1",
            "--threads",
            "2",
        ],
        port="--port",
        health="/health",
        on_cpu=["--no-gpu"],
        ask=hear,
    )


def hear(url: str) -> list[tuple[str, float]]:
    """What it hears in a sound."""
    edge = uuid.uuid4().hex
    fields = {"response_format": "verbose_json", "no_language_probabilities": "true"}
    fields |= {"temperature": TEMPERATURE, "temperature_inc": "0"}
    parts = [(f'name="{name}"', value.encode()) for name, value in fields.items()]
    parts.append(('name="file"; filename="sound.wav"\r\nContent-Type: audio/wav', sound()))
    body = b"".join(
        f"--{edge}\r\nContent-Disposition: form-data; {about}\r\n\r\n".encode() + value + b"\r\n"
        for about, value in parts
    )
    kind = f"multipart/form-data; boundary={edge}"
    return words_of(post(f"{url}/inference", kind, body + f"--{edge}--\r\n".encode()))


def picture(folder: Path, model: Path, beside: list[str]) -> Program:
    """sd-server; `beside` are its words for what belongs to the model."""
    command = [str(folder / "bin/sd-server"), "--diffusion-model", str(model), *beside]
    command += ["--verbose", "--listen-ip", "127.0.0.1", "--threads", "2"]
    command += ["--steps", str(STEPS), "--cfg-scale", "1", "--seed", "803"]
    return Program(command=command, port="--listen-port", health="/v1/models", on_cpu=[], ask=draw)


def draw(url: str) -> Picture:
    """What it draws for the same words. Raises ReplyError for another size."""
    body = json.dumps({"prompt": PROMPT, "size": f"{SIDE}x{SIDE}"}).encode()
    reply = post(f"{url}/v1/images/generations", "application/json", body)
    try:
        data = base64.b64decode(reply["data"][0]["b64_json"], validate=True)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ReplyError(f"no picture: {json.dumps(reply)[:200]}") from error
    drawn = read_png(data)
    if (drawn.width, drawn.height) != (SIDE, SIDE):
        raise ReplyError(f"{SIDE}x{SIDE} was asked for, and {drawn.width}x{drawn.height} came")
    return drawn


def post(url: str, kind: str, body: bytes) -> dict[str, Any]:
    """A request and its JSON reply; raises ReplyError when there is none."""
    request = urllib.request.Request(url, data=body, headers={"Content-Type": kind})
    try:
        with urllib.request.urlopen(request, timeout=REPLY_SECONDS) as reply:
            parsed = json.loads(reply.read())
    except urllib.error.HTTPError as error:
        raise ReplyError(f"{url}: status {error.code}: {error.read()[:200]!r}") from error
    except (OSError, ValueError) as error:
        raise ReplyError(f"{url}: {error}") from error
    if not isinstance(parsed, dict):
        raise ReplyError(f"{url}: the reply is no JSON object")
    return parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What one process answered, and what it printed."""

    answer: Any
    log: str


def asked(program: Program, visible: str | None, more: list[str]) -> Session:
    """Start the server, ask it, and end it. Raises ReplyError where it does not start or answer."""
    env = dict(os.environ) | {"XDG_CACHE_HOME": tempfile.gettempdir()}
    if visible is not None:
        env["GGML_VK_VISIBLE_DEVICES"] = visible
    with tempfile.TemporaryDirectory(prefix="check-") as folder:
        log = Path(folder) / "log"
        with running([*program.command, *more], program, env, log) as url:
            answer = program.ask(url)
        return Session(answer=answer, log=log.read_text(errors="replace"))


@contextlib.contextmanager
def running(command: list[str], program: Program, env: dict[str, str], log: Path) -> Iterator[str]:
    """A server on a free port of 127.0.0.1, ready to answer: its URL. It always ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*command, program.port, str(port)],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_ready(process, f"{url}{program.health}", log)
        yield url
    finally:
        for kind in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, kind)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
                break


def wait_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Returns when the server has loaded the model; raises ReplyError when it ends or takes too long."""
    limit = time.monotonic() + START_SECONDS
    while time.monotonic() < limit:
        if process.poll() is not None:
            said = " | ".join(log.read_text(errors="replace").strip().splitlines()[-3:])
            raise ReplyError(f"the server ended with status {process.returncode}: {said}")
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (OSError, urllib.error.URLError):
            time.sleep(0.05)
    raise ReplyError(f"the server was not ready after {START_SECONDS:.0f} s")


def on_device(program: Program) -> tuple[Session, str, str | None]:
    """What it answers on a Vulkan device, that device, and what makes ggml take it. Raises ReplyError."""
    for visible in (None, "0"):
        session = asked(program, visible, [])
        found = DEVICE.search(session.log)
        if found:
            return session, found[1], visible
    raise ReplyError("it takes no Vulkan device")


def report(name: str, device: str, judge: Callable[[], str]) -> bool:
    """Prints the line of one check, and tells whether it passed."""
    try:
        detail, ok = judge(), True
    except (ReplyError, OSError, subprocess.SubprocessError) as error:
        detail, ok = str(error) or type(error).__name__, False
    print(MARK + json.dumps({"name": name, "ok": ok, "detail": detail, "device": device}), flush=True)
    return ok


def run(program: Program, compare: Callable[[Any, Any], str]) -> bool:
    """Runs all checks and prints their lines; True when all passed."""
    try:
        first, device, visible = on_device(program)
    except (ReplyError, OSError) as error:
        why = str(error)
        return report("answers", "none", lambda: fail(why))
    how = "a GPU" if visible is None else "in software, GGML_VK_VISIBLE_DEVICES=0"
    passed = [report("answers", device, lambda: f"on {device} ({how})")]

    def again() -> str:
        if asked(program, visible, []).answer != first.answer:
            raise ReplyError("another process answers otherwise")
        return "two processes give the same, bit by bit"

    def as_cpu() -> str:
        other = asked(program, "", program.on_cpu)
        if DEVICE.search(other.log):
            raise ReplyError("the CPU's answer came from a device")
        return compare(first.answer, other.answer)

    passed.append(report("same-again", device, again))
    passed.append(report("as-the-cpu", device, as_cpu))
    return all(passed)


def fail(why: str) -> str:
    """Raises ReplyError."""
    raise ReplyError(why)


def main() -> int:
    parser = argparse.ArgumentParser(description="Check an unpacked whisper.cpp or stable-diffusion.cpp.")
    parser.add_argument("what", choices=("speech", "picture"))
    parser.add_argument("folder", type=Path, help="the unpacked archive: the folder that has bin/")
    parser.add_argument("model", type=Path)
    parser.add_argument("beside", nargs="*", help="what belongs to the model: llm=FILE")
    args = parser.parse_args()
    beside = [
        word for pair in args.beside for word in (f"--{pair.partition('=')[0]}", pair.partition("=")[2])
    ]
    if args.what == "speech":
        return 0 if run(speech(args.folder, args.model, beside), compare_words) else 1
    return 0 if run(picture(args.folder, args.model, beside), compare_pictures) else 1


if __name__ == "__main__":
    sys.exit(main())
