"""The checks of whisper.cpp's and stable-diffusion.cpp's servers: each of them passes, and can fail."""

from __future__ import annotations

import base64
import importlib.util
import json
import struct
import subprocess
import sys
import wave
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import rocwright

SCRIPT = Path(rocwright.__file__).parent / "catalog" / "data" / "checks" / "ggml_servers" / "check.py"

# The line of the device is as stable-diffusion.cpp and whisper.cpp print it on lavapipe.
FAKE = """\
#!{python}
import http.server, json, os, sys
plan = json.load(open({plan!r}))
visible = plan["always"] or os.environ.get("GGML_VK_VISIBLE_DEVICES", "")
if visible and not plan["never"]:
    print("ggml_vulkan: 0 = llvmpipe (LLVM 22.1.8, 256 bits) (llvmpipe) | uma: 1 | fp16: 1", flush=True)
side = plan["gpu" if visible else "cpu"]
if side == "dies":
    raise SystemExit(3)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.do_POST()
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(side).encode())
port = next(at for at, word in enumerate(sys.argv) if word in ("--port", "--listen-port"))
http.server.HTTPServer(("127.0.0.1", int(sys.argv[port + 1])), Handler).serve_forever()
"""


@pytest.fixture(scope="module")
def check() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("ggml_server_check", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ggml_server_check"] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["ggml_server_check"]


def heard(*words: tuple[str, float]) -> dict[str, Any]:
    told = [{"word": word, "probability": one} for word, one in words]
    return {"segments": [{"words": told[:1]}, {"words": told[1:]}]}


def shades(side: int = 64, add: int = 0) -> bytes:
    return bytes((row * 3 + column) % 200 + add for row in range(side) for column in range(3 * side))


def guess(kind: int, left: int, up: int, corner: int) -> int:
    """What a filter takes a value to be, as the specification says it."""
    paeth = min((left, up, corner), key=lambda one: abs(left + up - corner - one))
    return (0, left, up, (left + up) // 2, paeth)[kind]


def png(colours: bytes, side: int = 64, filters: int = 0) -> bytes:
    """A PNG whose rows are filtered in this way."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows, above = b"", bytes(3 * side)
    for row in range(side):
        line = colours[3 * side * row : 3 * side * (row + 1)]
        rows += bytes([filters])
        for at, value in enumerate(line):
            left, corner = (line[at - 3], above[at - 3]) if at > 2 else (0, 0)
            rows += bytes([(value - guess(filters, left, above[at], corner)) % 256])
        above = line
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def drawn(data: bytes) -> dict[str, Any]:
    return {"data": [{"b64_json": base64.b64encode(data).decode()}]}


DEVICE = "llvmpipe (LLVM 22.1.8, 256 bits)"
WELL = heard((" This", 0.99), (" is", 0.98))


def run(folder: Path, what: str, gpu: object, cpu: object, **more: object) -> dict[str, tuple[bool, str]]:
    """What a check says of a server that answers so on a device, and so on the CPU."""
    (folder / "bin").mkdir()
    plan = folder / "plan.json"
    plan.write_text(json.dumps({"gpu": gpu, "cpu": cpu, "always": False, "never": False, **more}))
    for name in ("whisper-server", "sd-server"):
        program = folder / "bin" / name
        program.write_text(FAKE.format(python=sys.executable, plan=str(plan)))
        program.chmod(0o755)
    words = [sys.executable, str(SCRIPT), what, str(folder), "model.gguf", "llm=a.gguf"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    lines = [json.loads(one.split(" ", 1)[1]) for one in done.stdout.splitlines()]
    assert (done.returncode == 0) == all(one["ok"] for one in lines), done.stderr
    return {one["name"]: (one["ok"], f"{one['device']}: {one['detail']}") for one in lines}


def test_words_alike_pass_and_the_device_is_told(tmp_path: Path) -> None:
    close = heard((" This", 0.985), (" is", 0.98))
    told = run(tmp_path, "speech", close, WELL)
    assert [ok for ok, _ in told.values()] == [True, True, True], told
    assert told["answers"][1].startswith(f"{DEVICE}: ") and "in software" in told["answers"][1]
    assert "2 words, probabilities at most 0.00500 apart" in told["as-the-cpu"][1]


@pytest.mark.parametrize(
    ("gpu", "why"),
    [
        (heard((" This", 0.99), (" was", 0.98)), "' This was' and ' This is'"),
        (heard((" This", 0.90), (" is", 0.98)), "0.09000 apart"),
        (heard((" This", float("nan")), (" is", 0.98)), "nan apart"),
    ],
)
def test_other_words_or_probabilities_fail(tmp_path: Path, gpu: object, why: str) -> None:
    told = run(tmp_path, "speech", gpu, WELL)
    assert not told["as-the-cpu"][0] and why in told["as-the-cpu"][1], told


@pytest.mark.parametrize("gpu", [heard(), {"error": "x"}, "dies"])
def test_no_answer_fails(tmp_path: Path, gpu: object) -> None:
    told = run(tmp_path, "speech", gpu, "dies")
    assert not told["answers"][0]


def test_what_takes_no_device_or_never_the_cpu_fails(tmp_path: Path) -> None:
    told = run(tmp_path, "speech", WELL, WELL, never=True)
    assert told == {"answers": (False, "none: it takes no Vulkan device")}
    other = tmp_path / "other"
    other.mkdir()
    told = run(other, "picture", drawn(png(shades())), "dies", always=True)
    assert told["as-the-cpu"] == (False, f"{DEVICE}: the CPU's answer came from a device")


@pytest.mark.parametrize("filters", range(5))
def test_pictures_are_read_whatever_filter_their_rows_have(check: ModuleType, filters: int) -> None:
    found = check.read_png(png(shades(), filters=filters))
    assert (found.width, found.height, found.colours) == (64, 64, shades())


def test_pictures_a_little_apart_pass(tmp_path: Path) -> None:
    told = run(tmp_path, "picture", drawn(png(shades(add=3))), drawn(png(shades())))
    assert all(ok for ok, _ in told.values()), told


@pytest.mark.parametrize(
    ("gpu", "cpu", "why"),
    [
        (png(shades(add=40)), png(shades()), "by more than 6"),
        (png(bytes(64 * 64 * 3)), png(bytes(64 * 64 * 3)), "only 1 different values"),
    ],
    ids=["far apart", "black"],
)
def test_pictures_far_apart_or_of_nothing_fail(tmp_path: Path, gpu: bytes, cpu: bytes, why: str) -> None:
    told = run(tmp_path, "picture", drawn(gpu), drawn(cpu))
    assert not told["as-the-cpu"][0] and why in told["as-the-cpu"][1], told


@pytest.mark.parametrize("data", [png(shades(32), side=32), b"GIF89a", png(shades())[:60]])
def test_a_picture_of_another_size_or_none_fails(tmp_path: Path, data: bytes) -> None:
    assert not run(tmp_path, "picture", drawn(data), drawn(data))["answers"][0]


def test_the_sound_is_a_wav_file(check: ModuleType) -> None:
    with wave.open(BytesIO(check.sound())) as file:
        assert (file.getnchannels(), file.getframerate(), file.getnframes()) == (1, 16_000, 32_000)
        assert len(set(file.readframes(32_000))) > 50
