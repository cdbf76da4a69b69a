"""The process that imports torch: describes the devices, or runs cases and says how each ended.

What it says goes to a pipe of its own, one JSON object a line; standard output and error are the libraries'.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import resource
import sys
import time
import traceback
from dataclasses import replace
from typing import Any

from smoke.bits import RAISES, Bits
from smoke.cases import NEEDS, SUITES
from smoke.explain import explain, head, no_kernel_for_type, sticky
from smoke.model import AbsentError, Case, Context, WrongError

NONDETERMINISTIC = "does not have a deterministic implementation"
"""What torch raises under deterministic algorithms. Source: at::Context::alertNotDeterministic."""

RESTART = 75
"""Exit status that asks for a new process for what is left: the device is lost to this one."""


def main(order: dict[str, Any], pipe: int) -> int:
    """Do what the parent ordered."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def say(**words: Any) -> None:
        os.write(pipe, (json.dumps(words) + "\n").encode())

    try:
        import torch
    except Exception as error:
        traceback.print_exc()
        known = explain(f"{type(error).__name__}: {error}")
        say(
            failed=f"torch cannot be imported: {type(error).__name__}: {error}", cause=known[0], next=known[1]
        )
        return 1
    if order["task"] == "describe":
        from smoke.about import describe

        say(described=describe(torch))
        return 0
    if order.get("deterministic"):
        torch.use_deterministic_algorithms(True)
    return run(order, torch, say)


def run(order: dict[str, Any], torch: Any, say: Any) -> int:
    """Run the suite's cases from the place ordered."""
    context = Context(
        torch=torch,
        device=torch.device(order["device"]),
        size=order["size"],
        seed=order["seed"],
        targets=tuple(order["targets"]),
        lacks=order["lacks"],
    )
    prepare(context)
    cases = suite_cases(order["suite"], order["only"])
    say(cases=[[case.group, case.name] for case in cases])
    for place in range(order["start"], len(cases)):
        say(begin=place)
        begun = time.monotonic()
        ended = tried(cases[place], repeating(order, cases[place], context))
        say(end=place, seconds=round(time.monotonic() - begun, 3), **ended)
        if ended["state"] == "error" and context.on_gpu and sticky(ended["detail"]):
            return RESTART
    return 0


def repeating(order: dict[str, Any], case: Case, context: Context) -> Context:
    """The same, with something that takes in the bits of repeated runs where that is the task."""
    if order["task"] != "bits":
        return context
    repeat = order["repeats"].get(case.full_name, order["repeat"])
    return replace(context, bits=Bits(context.torch, repeat, context.seed))


def prepare(context: Context) -> None:
    """Make the arithmetic what its type says: no TF32, no sums in fp16 or bf16."""
    torch = context.torch
    torch.manual_seed(context.seed)
    torch.set_num_threads(min(torch.get_num_threads(), 8))
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    if context.on_gpu:
        torch.cuda.set_device(context.device)


def repeated(case: Case, context: Context, bits: Bits) -> dict[str, Any]:
    """Run a case as often as asked; how many runs gave other bits, as words for the parent."""
    bits.reseed()
    case.run(context)
    # an operation has repeated itself
    for _ in range(bits.repeat - 1 if bits.noted else 0):
        bits.reseed()
        case.run(context)
    if not bits.seen:
        raise AbsentError("it computes nothing whose bits could be compared")
    return {"state": "ok", "detail": "", "more": bits.told()}


def chain(error: BaseException) -> str:
    """An error with what it was raised from: the last one is often only a wrapper."""
    text = f"{type(error).__name__}: {error}"
    return f"{text} (from {chain(error.__cause__)})" if error.__cause__ else text


def suite_cases(suite: str, only: list[str]) -> list[Case]:
    """The cases of a suite, in their order; `only` keeps those whose full name holds one of the words."""
    modules = SUITES[suite]
    cases = [case for name in modules for case in importlib.import_module(f"smoke.cases.{name}").cases()]
    return [case for case in cases if not only or any(word in case.full_name for word in only)]


def tried(case: Case, context: Context) -> dict[str, Any]:
    """Run one case; how it ended as words for the parent. A traceback goes to the error output, whole."""
    try:
        needed = NEEDS.get(case.group, "")
        if needed in context.lacks:
            raise AbsentError(f"not served, it needs {needed}: {context.lacks[needed]}")
        if context.bits is not None:
            return repeated(case, context, context.bits)
        told = case.run(context)
        return {"state": "ok", "detail": told.detail, "error": told.error, "tolerance": told.tolerance}
    except AbsentError as absent:
        return {"state": "absent", "detail": str(absent)}
    except WrongError as wrong:
        return {
            "state": "wrong",
            "detail": str(wrong),
            "error": wrong.error,
            "tolerance": wrong.tolerance,
            "cause": wrong.cause or "computed wrongly, without an error: what uses it gives wrong results",
            "next": wrong.next_step
            or f"run it alone with --only '{case.full_name}'; then look for a known fault of the target",
        }
    except Exception as error:
        text = chain(error)
        if context.bits is not None and NONDETERMINISTIC in text:
            return {"state": RAISES, "detail": head(text, 1, 160)}
        if no_kernel_for_type(text):
            return {
                "state": "absent",
                "detail": f"torch has no such operation in this type: {head(text, 1, 160)}",
            }
        traceback.print_exc()
        sys.stderr.flush()
        known = explain(text)
        return {"state": "error", "detail": head(text), "cause": known.cause, "next": known.next_step}
