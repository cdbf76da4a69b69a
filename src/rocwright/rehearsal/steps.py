"""The steps of a rehearsal: source, edited tree, and one step for each stand-in that tries what it can."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rocbase.errors import InputError
from rocbase.files.atomic import sha256_file
from rocwright.catalog.folders import DATA
from rocwright.catalog.model import Component
from rocwright.execution.run import GUARDS
from rocwright.model.edits import Edit
from rocwright.model.step_environment import FIXED
from rocwright.model.steps import (
    About,
    FetchAction,
    Input,
    OutputSpec,
    Resources,
    RunAction,
    Step,
    TreeAction,
)
from rocwright.plan.make import TREE
from rocwright.plan.resolve.model import LockedComponent
from rocwright.plan.values import expand
from rocwright.rehearsal.book import Trial
from rocwright.rehearsal.stand_ins import Ready

# What runs in the sandbox, of the folder that every sandbox sees.
PROGRAMS = ("rehearse.py", "import_edited.py")

REPORT = OutputSpec(name="report", pattern="report.json")

# How the names of these steps begin.
STEP = "rehearse/"

MEMORY = 2 * 1024**3
SECONDS = 120.0
LIMIT = 4 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRequest:
    """What a step is to try: the trials, the row's GPU, the seed of samples, and whether there are none."""

    trials: tuple[Trial, ...]
    gpu: str
    seed: str
    every: bool


def source_step(name: str, locked: LockedComponent) -> Step:
    """Fetch a source."""
    return Step(
        name=f"source/{name}",
        component=locked.name,
        action=FetchAction(files=locked.files),
        resources=Resources(disk=sum(pin.size for pin in locked.files), seconds=5),
    )


def tree_step(name: str, locked: LockedComponent, source: Step, edits: Sequence[Edit], version: str) -> Step:
    """The source unpacked, with these edits of a `version` of the component."""
    return Step(
        name=f"tree/{name}",
        component=locked.name,
        action=TreeAction(
            subdir=locked.subdir,
            series=locked.series,
            packaging=locked.packaging,
            edits=tuple(edits),
            version=version,
        ),
        inputs=(Input(name="source", key=source.key, output="*"),),
        resources=Resources(disk=TREE * sum(pin.size for pin in locked.files), seconds=5, limit=3600),
    )


def trial_step(
    name: str, component: Component, ready: Ready, tree: Step, request: TrialRequest, env: Mapping[str, str]
) -> Step:
    """Try them on a stand-in, in an edited tree; with the recipe's environment where its own commands run,
    else with those of its variables that a trial's command names.

    Raises InputError for a trial of the recipe's own commands, where it does not say which of them configure.
    """
    configure = component.run[: component.resume - 1] if component.resume else ()
    return _step(name, component, ready, tree, request, env, configure)


def built_trial_step(
    name: str,
    component: Component,
    ready: Ready,
    built: Step,
    tree: Step,
    request: TrialRequest,
    env: Mapping[str, str],
) -> Step:
    """Try them in the tree of a stand-in's own plan, with the Python environment of the step that builds the
    component there."""
    action = built.action
    assert isinstance(action, RunAction)
    setup = action.commands[: len(action.commands) - len(component.run)]
    configure = action.commands[len(setup) : action.resume - 1] if action.resume else ()
    step = _step(name, component, ready, tree, request, env, configure, setup)
    assert isinstance(step.action, RunAction)
    # its root and tree are those of the stand-in
    mine = {entry.name: entry for entry in step.inputs}
    inputs = [mine.get(entry.name, entry) for entry in built.inputs if entry.name != "src"]
    return step.model_copy(
        update={
            "action": step.action.model_copy(update={"install": action.install, "python": action.python}),
            "inputs": (*inputs, mine["src"]),
        }
    )


def _step(
    name: str,
    component: Component,
    ready: Ready,
    tree: Step,
    request: TrialRequest,
    env: Mapping[str, str],
    configure: Sequence[str],
    setup: Sequence[str] = (),
) -> Step:
    trials = [_trial_words(component.name, trial, configure) for trial in request.trials]
    settings = {"seed": request.seed, "all": request.every, "trials": trials}
    mine = {
        "REHEARSAL": json.dumps(settings, sort_keys=True),
        "REHEARSAL_PROGRAMS": " ".join(sha256_file(DATA / "guards" / program) for program in PROGRAMS),
        "SETUP": "\n".join(component.setup),
    }
    # rows that differ in nothing else share the step: of the recipe's variables it has those that are named
    own = any(not trial.run for trial in request.trials)
    named = {
        word
        for trial in request.trials
        for word in re.findall(r"\$\{?(\w+)", trial.run)
        if word not in trial.each
    }
    if own or any("$GPU" in trial.run for trial in request.trials):
        mine["GPU"] = request.gpu
    around = {
        name: expand(value, {"path": FIXED["PATH"]}, f"{ready.stand_in.name}: {name}")
        for name, value in ready.stand_in.env.items()
    }
    return Step(
        name=f"{STEP}{name}",
        component=component.name,
        action=RunAction(
            commands=(*setup, f"python3 {GUARDS}/{PROGRAMS[0]}"),
            env={name: value for name, value in env.items() if own or name in named} | around | mine,
            outputs=(REPORT,),
            compiler_reads=ready.compiler_reads,
        ),
        inputs=(
            Input(name="root", key=ready.root.key, output="root"),
            Input(name="src", key=tree.key, output="tree"),
        ),
        resources=Resources(cores=64, memory=MEMORY, disk=1024**3, seconds=SECONDS, limit=LIMIT),
        about=About(base=ready.stand_in.base, targets=(request.gpu,), architecture=_architecture(ready)),
    )


def _architecture(ready: Ready) -> str:
    return ready.root.about.architecture


def _trial_words(component: str, trial: Trial, configure: Sequence[str]) -> dict[str, object]:
    """A trial as the program in the sandbox reads it."""
    run = trial.run or "\n".join(configure)
    if not run:
        raise InputError(
            f"the trial {trial.name!r} of {component} has nothing to run",
            cause="it names no command, and the recipe does not say which of its own configure (`resume`)",
            next_step="give it a `run`",
        )
    keys = ("name", "files", "skip", "always", "each", "says", "never", "sample", "seconds")
    fields = trial.model_dump(mode="json", include=set(keys))
    return fields | {"run": run}
