"""The llama.cpp checks: what they read in logs and replies, and that each of them can fail."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import rocwright

SCRIPT = Path(rocwright.__file__).parent / "catalog" / "data" / "checks" / "llama_cpp" / "check.py"

# Recorded from llama-server b11312 on lavapipe.
DEVICES = """\
Available devices:
  Vulkan0: llvmpipe (LLVM 22.1.8, 256 bits) (24105 MiB, 21431 MiB free)
"""
NO_DEVICES = "Available devices:\n  (none)\n"
ON_VULKAN = """\
I llama_prepare_model_devices: using device Vulkan0 (llvmpipe (LLVM 22.1.8, 256 bits)) (unknown id)
I load_tensors: offloading output layer to GPU
I load_tensors: offloaded 3/3 layers to GPU
I load_tensors:   CPU_Mapped model buffer size =     0.18 MiB
I load_tensors:      Vulkan0 model buffer size =     1.44 MiB
"""
ON_CPU = "I load_tensors:   CPU_Mapped model buffer size =     1.62 MiB\n"

FAKE = """\
#!{python}
import http.server, json, sys
plan = json.load(open({plan!r}))
if "--list-devices" in sys.argv:
    import os
    shown = "GGML_VK_VISIBLE_DEVICES" in os.environ or not plan["software"]
    print(plan["devices"] if shown else plan["no_devices"], end="")
    raise SystemExit(plan.get("list_status", 0))
at = lambda name: sys.argv[sys.argv.index(name) + 1]
side = plan["cpu" if at("--device") == "none" else "gpu"]
print(side["log"], file=sys.stderr, flush=True)
if side.get("dies"):
    raise SystemExit(3)
class Handler(http.server.BaseHTTPRequestHandler):
    def say(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def do_GET(self):
        self.say(200, {{}})
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        kind = "chat" if "chat" in self.path else "completion"
        self.say(*side[kind])
http.server.HTTPServer(("127.0.0.1", int(at("--port"))), Handler).serve_forever()
"""


@pytest.fixture(scope="module")
def check() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("llama_check", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["llama_check"] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["llama_check"]


def completion(tokens: list[int], shift: float = 0.0) -> dict[str, Any]:
    steps = [
        {"id": token, "top_logprobs": [{"id": token, "logprob": -0.5}, {"id": 1, "logprob": -4.0 + shift}]}
        for token in tokens
    ]
    return {"tokens": tokens, "completion_probabilities": steps}


def chat(text: str) -> dict[str, Any]:
    return {
        "choices": [{"message": {"role": "assistant", "content": text}}],
        "usage": {"completion_tokens": 3},
    }


def side(log: str) -> dict[str, Any]:
    return {"log": log, "completion": [200, completion([7, 8, 9])], "chat": [200, chat("abc")]}


@dataclass
class Bench:
    """A folder that looks like the unpacked archive, whose llama-server does what `plan` says."""

    folder: Path
    plan: dict[str, Any] = field(
        default_factory=lambda: {
            "software": True,
            "devices": DEVICES,
            "no_devices": NO_DEVICES,
            "gpu": side(ON_VULKAN),
            "cpu": side(ON_CPU),
        }
    )

    def run(self, *options: str) -> tuple[int, dict[str, dict[str, Any]]]:
        """The exit status, and the reported lines by name."""
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps(self.plan))
        binary = self.folder / "bin" / "llama-server"
        binary.parent.mkdir(exist_ok=True)
        binary.write_text(FAKE.format(python=sys.executable, plan=str(plan)))
        binary.chmod(0o755)
        command = [
            sys.executable,
            "-I",
            str(SCRIPT),
            str(self.folder),
            "model.gguf",
            "--tokens",
            "3",
            *options,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        lines = [line.removeprefix("ROCWRIGHT-CHECK ") for line in done.stdout.splitlines()]
        found = {each["name"]: each for each in map(json.loads, lines)}
        assert list(found) == ["devices", "same-greedy-tokens", "logits-close", "server-chat"], done.stderr
        return done.returncode, found

    def failures(self, *options: str) -> dict[str, str]:
        """The details of the checks that failed; the exit status must say so too."""
        code, found = self.run(*options)
        failed = {name: line["detail"] for name, line in found.items() if not line["ok"]}
        assert code == (1 if failed else 0)
        return failed


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_the_list_of_devices_is_read(check: ModuleType) -> None:
    (device,) = check.parse_devices(DEVICES)
    assert (device.name, device.description) == ("Vulkan0", "llvmpipe (LLVM 22.1.8, 256 bits)")
    assert check.parse_devices(NO_DEVICES) == []


def test_the_log_tells_where_the_layers_are(check: ModuleType) -> None:
    assert check.placement(ON_VULKAN) == ({"CPU_Mapped", "Vulkan0"}, 3, 3)
    assert check.placement(ON_CPU) == ({"CPU_Mapped"}, 0, 0)


def test_a_tolerated_difference_passes_and_a_larger_or_undefined_one_does_not(check: ModuleType) -> None:
    answer = check.parse_answer(completion([7, 8]))
    assert "4 log-probabilities" in check.compare_logprobs(answer, answer, 0.05)
    check.compare_logprobs(check.parse_answer(completion([7, 8], 0.04)), answer, 0.05)
    for shift in (0.06, float("nan")):
        with pytest.raises(check.CheckError):
            check.compare_logprobs(check.parse_answer(completion([7, 8], shift)), answer, 0.05)


def test_other_candidates_are_a_difference(check: ModuleType) -> None:
    mine, theirs = (check.Answer(tokens=(7,), tops=({token: -1.0},)) for token in (7, 8))
    with pytest.raises(check.CheckError, match="only 0 of the likeliest"):
        check.compare_logprobs(mine, theirs, 0.05)


def test_when_all_is_well_every_check_passes_and_names_the_device(bench: Bench) -> None:
    code, found = bench.run("--expect", "7,8,9")
    assert code == 0
    assert all(line["ok"] for line in found.values())
    assert {line["device"] for line in found.values()} == {"llvmpipe (LLVM 22.1.8, 256 bits)"}
    assert "in software" in found["devices"]["detail"]


def test_a_real_gpu_is_taken_without_naming_it_to_ggml(bench: Bench) -> None:
    bench.plan["software"] = False
    bench.plan["devices"] = DEVICES.replace("llvmpipe (LLVM 22.1.8, 256 bits)", "AMD Radeon RX 580 (RADV)")
    code, found = bench.run()
    assert code == 0
    assert "a GPU" in found["devices"]["detail"]


def test_without_a_device_every_check_fails(bench: Bench) -> None:
    bench.plan["devices"] = NO_DEVICES
    assert all("no Vulkan device" in why for why in bench.failures().values())


def test_hip_without_a_gpu_answers_on_the_cpu_and_claims_no_device(bench: Bench) -> None:
    bench.plan["devices"] = bench.plan["no_devices"] = NO_DEVICES
    code, found = bench.run("--backend", "ROCm")
    assert code == 0
    assert {line["device"] for line in found.values()} == {""}
    assert [name for name, line in found.items() if line.get("state") != "absent"] == ["server-chat"]
    assert found["server-chat"]["detail"].startswith("on the CPU: 3 tokens")


def test_hip_on_a_gpu_is_compared_as_vulkan_is(bench: Bench) -> None:
    bench.plan["devices"] = DEVICES.replace(
        "Vulkan0: llvmpipe (LLVM 22.1.8, 256 bits)", "ROCm0: AMD Radeon 780M"
    )
    bench.plan["software"] = False
    bench.plan["gpu"]["log"] = ON_VULKAN.replace("Vulkan0", "ROCm0")
    code, found = bench.run("--backend", "ROCm")
    assert code == 0
    assert {line["device"] for line in found.values()} == {"AMD Radeon 780M"}
    assert all("no ROCm device" not in line["detail"] for line in found.values())


@pytest.mark.parametrize("wrong", ["dies", "short", "list"])
def test_hip_without_a_gpu_fails_where_the_program_does(bench: Bench, wrong: str) -> None:
    bench.plan["devices"] = bench.plan["no_devices"] = NO_DEVICES
    if wrong == "dies":
        bench.plan["cpu"]["dies"] = True
    elif wrong == "short":
        bench.plan["cpu"]["completion"][1] = completion([7, 8])
    else:
        bench.plan["list_status"] = 127
    failed = bench.failures("--backend", "ROCm")
    assert "server-chat" in failed


def test_a_different_token_is_a_failure(bench: Bench) -> None:
    bench.plan["gpu"]["completion"][1] = completion([7, 6, 9])
    failed = bench.failures()
    assert failed["same-greedy-tokens"] == "token 2: 6 on the device, 8 from the CPU"
    assert "server-chat" not in failed


def test_tokens_other_than_the_expected_are_a_failure(bench: Bench) -> None:
    assert bench.failures("--expect", "7,8,10") == {
        "same-greedy-tokens": "token 3: 9 on the device, 10 from the expected"
    }


def test_a_short_answer_is_a_failure(bench: Bench) -> None:
    for name in ("gpu", "cpu"):
        bench.plan[name]["completion"][1] = completion([7, 8])
    assert list(bench.failures()) == ["same-greedy-tokens"]


def test_moved_logits_are_a_failure(bench: Bench) -> None:
    bench.plan["gpu"]["completion"][1] = completion([7, 8, 9], shift=0.2)
    assert list(bench.failures()) == ["logits-close"]


def test_a_run_that_was_not_on_the_device_is_a_failure(bench: Bench) -> None:
    bench.plan["gpu"]["log"] = ON_CPU
    assert set(bench.failures()) == {"same-greedy-tokens", "logits-close", "server-chat"}


def test_layers_left_on_the_cpu_are_a_failure(bench: Bench) -> None:
    bench.plan["gpu"]["log"] = ON_VULKAN.replace("3/3", "2/3")
    assert "2 of 3 layers" in bench.failures()["same-greedy-tokens"]


def test_a_reference_that_was_not_on_the_cpu_is_a_failure(bench: Bench) -> None:
    bench.plan["cpu"]["log"] = ON_VULKAN
    assert set(bench.failures()) == {"same-greedy-tokens", "logits-close"}


def test_a_log_that_tells_nothing_is_a_failure(bench: Bench) -> None:
    bench.plan["cpu"]["log"] = bench.plan["gpu"]["log"] = ""
    assert set(bench.failures()) == {"same-greedy-tokens", "logits-close", "server-chat"}


def test_a_server_that_dies_is_a_failure_with_its_last_words(bench: Bench) -> None:
    bench.plan["gpu"] |= {"dies": True, "log": "error loading model"}
    failed = bench.failures()
    assert set(failed) == {"same-greedy-tokens", "logits-close", "server-chat"}
    assert all("status 3: error loading model" in why for why in failed.values())


@pytest.mark.parametrize("reply", [[200, chat("")], [200, {}], [500, {"error": "no"}]])
def test_a_bad_chat_reply_is_a_failure_of_that_check_alone(bench: Bench, reply: list[Any]) -> None:
    bench.plan["gpu"]["chat"] = reply
    assert list(bench.failures()) == ["server-chat"]


def test_a_missing_binary_is_reported_and_not_a_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path, "model.gguf"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert done.stdout.count('"ok": false') == 4
    assert "Traceback" not in done.stderr
