"""Which action is tried for a failed step, and why not the others."""

from __future__ import annotations

from typing import Any

from rocbase.errors import CompileError, ExplainedError, NetworkError, PatchError
from rocwheel_samples.tables import each
from rocwright.catalog.issue import Issue, the_issues
from rocwright.catalog.load import builtin_catalog
from rocwright.doctor.remedies.choose import Case, RemedyOffer, choose
from rocwright.doctor.remedies.rounds import Went, settled
from rocwright.model.steps import Plan
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Lock, Remedy
from tests.making import lock_of

NOW = "2026-01-01T00:00:00Z"
STEP = "llama.cpp"


def issue(*actions: dict[str, Any]) -> Issue:
    said = {"name": "cmake-minimum", "class": "compile", "means": "m", "cause": "c", "remedy": "r"}
    texts = {"patterns": ["x"], "examples": ["x"], "no_match": ["y"], "source": ["s"]}
    return Issue.model_validate(said | texts | {"confidence": "low: quoted", "remedies": actions})


def plan_of(lock: Lock) -> Plan:
    return make_plan(lock, builtin_catalog())


def case(*actions: dict[str, Any], lock: Lock | None = None, **other: Any) -> Case:
    lock = lock or lock_of("llama-vulkan", "gfx1151")
    plan = plan_of(lock)
    step = next(one for one in plan.steps if one.name == STEP)
    return Case(issue=issue(*actions), step=step, failed="x", lock=lock, plan=plan, **other)


def offer(*actions: dict[str, Any], **other: Any) -> RemedyOffer:
    return choose(case(*actions, **other), builtin_catalog(), plan_of, NOW)


EDIT = {"file": "a.c", "include": "<cstdint>", "why": "it is missing"}


@each(
    ("action", "why"),
    [
        ({"kind": "set", "variables": {"A": "1"}, "scope": "run"}, "where the thing runs"),
        ({"kind": "set", "variables": {"HSA_OVERRIDE_GFX_VERSION": "11.0.0"}}, "in a build:"),
        ({"kind": "unset", "variables": ["NOT_THERE"]}, "changes nothing here"),
        ({"kind": "edit", "component": "pytorch", "edit": EDIT}, "changes nothing here"),
        ({"kind": "edit", "component": STEP, "edit": EDIT | {"for": "<0"}}, "changes nothing here"),
        ({"kind": "version", "component": "pytorch", "versions": "<3"}, "does not choose pytorch itself"),
        ({"kind": "version", "component": STEP, "versions": ">0"}, "already"),
        ({"kind": "version", "component": STEP, "versions": "<0"}, f"no {STEP} <0"),
        ({"kind": "packages", "names": ["c++"]}, "already have them"),
        ({"kind": "packages", "names": ["nobody-has-this"]}, "unknown system package"),
        ({"kind": "jobs", "share": 0.5}, "one job"),
    ],
    ids=lambda one: one["kind"] if isinstance(one, dict) else None,
)
def test_an_action_that_cannot_be_taken_says_why_and_the_next_is_tried(
    action: dict[str, Any], why: str
) -> None:
    found = offer(action, {"kind": "set", "variables": {"B": "2"}}, jobs=1)
    assert found.remedy is not None
    assert found.remedy.action.kind == "set"
    assert len(found.why) == 1
    assert why in found.why[0]


def test_what_a_stack_below_builds_is_to_be_healed_there() -> None:
    lock = lock_of("vllm-debian", "gfx1151")
    plan = plan_of(lock)
    set_a = issue({"kind": "set", "variables": {"A": "1"}})
    step = next(one for one in plan.steps if one.name == "pytorch")
    of_below = Case(issue=set_a, step=step, failed="x", lock=lock, plan=plan)
    found = choose(of_below, builtin_catalog(), plan_of, NOW)
    assert found.remedy is None
    [why] = found.why
    assert "rocwright build pytorch" in why and "--with gloo" in why and "--heal" in why
    assert "rocwright lock vllm-debian" in why
    step = next(one for one in plan.steps if one.name == "vllm")
    own = Case(issue=set_a, step=step, failed="x", lock=lock, plan=plan)
    assert choose(own, builtin_catalog(), plan_of, NOW).remedy is not None


def test_what_is_in_the_lock_or_did_not_help_at_this_version_is_not_tried_again() -> None:
    action = {"kind": "set", "variables": {"A": "1"}}
    first = offer(action).remedy
    assert first is not None
    lock = lock_of("llama-vulkan", "gfx1151")
    for change, why in (
        ({}, "the lock already has it"),
        (
            {"outcome": "useless", "told": "it failed in the same way"},
            "tried before, it failed in the same way",
        ),
    ):
        with_it = lock.model_copy(update={"remedies": (first.model_copy(update=change),)})
        found = offer(action, lock=with_it)
        assert found.remedy is None
        assert why in found.why[0]
    older = first.model_copy(update={"outcome": "useless", "version": "0.0.1"})
    assert offer(action, lock=lock.model_copy(update={"remedies": (older,)})).remedy is not None


def test_what_makes_the_lock_anew_is_not_tried_where_nothing_outside_answers() -> None:
    action = {"kind": "packages", "names": ["torch-headers"]}
    assert offer(action).remedy is not None
    assert "the index is silent" in offer(action, silent="the index is silent").why[0]


def test_a_bound_of_jobs_is_kept_as_bytes_for_one_and_changes_no_key() -> None:
    remedy = offer({"kind": "jobs", "share": 0.5}, jobs=8, memory=16 * 1024**3).remedy
    assert remedy is not None
    assert remedy.memory == 4 * 1024**3
    lock = lock_of("llama-vulkan", "gfx1151")
    bound = plan_of(lock.model_copy(update={"remedies": (remedy,)}))
    plain = plan_of(lock)
    assert [one.key for one in bound.steps] == [one.key for one in plain.steps]
    assert next(one for one in bound.steps if one.name == STEP).resources.memory == 4 * 1024**3


def test_every_action_of_the_catalog_that_a_build_can_have_is_offered_or_refused_with_a_reason() -> None:
    lock = lock_of("pytorch", "gfx1151")
    plan = plan_of(lock)
    step = next(one for one in plan.steps if one.name == "pytorch")
    for one in the_issues()[0].values():
        if one.remedies:
            found = choose(
                Case(issue=one, step=step, failed="x", lock=lock, plan=plan), builtin_catalog(), plan_of, NOW
            )
            assert found.remedy or len(found.why) == len(one.remedies)


def trial(lock: Lock) -> Lock:
    remedy = offer({"kind": "set", "variables": {"A": "1"}}).remedy
    assert isinstance(remedy, Remedy)
    return lock.model_copy(update={"remedies": (remedy,)})


def failed(kind: type[ExplainedError], known: str = "") -> ExplainedError:
    error = kind("it broke")
    error.issue = known
    return error


@each(
    ("failures", "outcome"),
    [
        ({}, "helped"),
        ({STEP: failed(CompileError, "cmake-minimum")}, "useless"),
        ({STEP: failed(CompileError, "missing-cstdint")}, "helped"),
        ({STEP: failed(CompileError)}, "helped"),
        ({STEP: failed(NetworkError)}, "trial"),
        ({f"tree/{STEP}": failed(PatchError)}, "useless"),
        ({f"source/{STEP}": failed(NetworkError)}, "trial"),
        ({"root/build": failed(CompileError)}, "trial"),
    ],
    ids=["built", "same", "another", "unknown", "network", "edit", "fetch", "elsewhere"],
)
def test_a_trial_is_settled_by_what_became_of_its_step(
    failures: dict[str, ExplainedError], outcome: str
) -> None:
    lock = trial(lock_of("llama-vulkan", "gfx1151"))
    skipped = frozenset() if STEP in failures or not failures else frozenset({STEP})
    (remedy,) = settled(lock, Went(plan=plan_of(lock), failed=failures, skipped=skipped)).remedies
    assert remedy.outcome == outcome
    assert bool(remedy.told) == (outcome != "trial")


def test_a_family_that_fails_for_another_thing_was_got_past() -> None:
    def line(header: str) -> str:
        return f"a.cpp:1:10: fatal error: {header}: No such file or directory"

    def verdict(now: str) -> tuple[str, str]:
        lock = lock_of("llama-vulkan", "gfx1151")
        remedy = offer({"kind": "set", "variables": {"A": "1"}}).remedy
        assert remedy is not None
        remedy = remedy.model_copy(update={"issue": "missing-header", "failed": line("png.h")})
        error = CompileError("it broke", detail=now)
        error.issue = "missing-header"
        went = Went(plan=plan_of(lock), failed={STEP: error})
        (found,) = settled(lock.model_copy(update={"remedies": (remedy,)}), went).remedies
        return found.outcome, found.told

    assert verdict(line("png.h"))[0] == "useless"
    assert verdict("no line that is one")[0] == "useless"
    told = verdict(line("jpeglib.h"))
    assert told == ("helped", f"{STEP} got past missing-header, then failed with it for jpeglib.h")
