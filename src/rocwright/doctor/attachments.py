"""What a bug report has beside what is found of the machine: versions, and how the last run failed."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import Any

from packaging.requirements import Requirement

from rocbase.errors import ExplainedError
from rocwright import __version__
from rocwright.home import Home
from rocwright.records.model import Run, Which
from rocwright.records.opening import read_records


def versions() -> dict[str, Any]:
    """Versions of rocwright, of Python and its C library, and of the libraries that rocwright requires."""
    return {
        "rocwright": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "libc": " ".join(platform.libc_ver()).strip(),
        "libraries": {name: _version(name) for name in sorted(_required())},
    }


def last_failure(home: Home) -> dict[str, Any]:
    """The newest run that failed: what was asked for, and each failed step's error; {} where none did.

    Records that cannot be read are told as such: a report is wanted then too.
    """
    try:
        with read_records(home) as records:
            runs = records.runs(Which(outcome="failed"), limit=1)
    except ExplainedError as error:
        return {"unreadable": error.as_dict()}
    return _run_facts(runs[0]) if runs else {}


_REQUEST_FIELDS = {
    "command",
    "started",
    "stack",
    "gpu",
    "base",
    "variant",
    "origin",
    "rocwright",
    "versions",
    "lock",
}
_OF_A_STEP = {"name", "key", "engine", "jobs", "seconds", "error"}


def _run_facts(run: Run) -> dict[str, Any]:
    failed = [step.model_dump(mode="json", include=_OF_A_STEP) for step in run.steps if step.failure]
    return run.model_dump(mode="json", include=_REQUEST_FIELDS) | {"failed": failed}


def _required() -> set[str]:
    try:
        lines = importlib.metadata.requires("rocwright") or []
    except importlib.metadata.PackageNotFoundError:  # run from a folder, never installed
        return set()
    return {
        requirement.name
        for requirement in map(Requirement, lines)
        if requirement.marker is None or requirement.marker.evaluate()
    }


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
