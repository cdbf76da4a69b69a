"""The command `rocwright`: parses, calls, prints. A verb's module is imported when the verb is used."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rocbase.cli.start import start
from rocwheel.cli import quick

if TYPE_CHECKING:
    import click

    from rocwright.cli.group import cli as cli

# Every verb with a line of help, by what one wants.
SECTIONS = {
    "Begin": {
        "stacks": "What can be built: every stack, GPU and base, and how well each is tested.",
        "targets": "GPUs by any name, and the ones in this machine.",
        "doctor": "Is this machine ready to build and to run? What is wrong, why, and how to fix it.",
        "check": "Will this list of Python packages work on the GPU? What to write instead.",
        "init": "Write rocwright.toml: this stack, for this GPU, on this base.",
    },
    "Lock and plan": {
        "lock": "rocwright.toml -> rocwright.lock: every commit, package and hash.",
        "plan": "What a build would run, what is in the store, and why.",
        "why": "The inputs of a step's key, and which differ from the last time.",
        "watch": "New upstream versions that the lock does not have: how old, and allowed or not.",
        "bump": "Write a candidate lock with the new upstream versions, and list the changes.",
    },
    "Build and prove": {
        "build": "Build everything in the lock that is not in the store yet.",
        "install": "Install the wheels of a built stack into your virtual environment.",
        "verify": "Run checks and smoke tests on what is built; record evidence.",
        "bench": "Measure what is built: tokens a second, products, memory; compare backends.",
        "rehearse": "Try rows on bases that can be had here: edits, configuring, compilers, imports.",
        "reproduce": "Build again, in another folder and with other jobs: are the bytes the same?",
        "sbom": "What is in an artifact or a stack: sources, edits, packages, libraries, licences.",
        "attest": "Sign how a file was built, or verify such a statement.",
    },
    "Run it": {
        "run": "Serve a model on this machine's GPU: build what is missing, start it, print its address.",
        "ps": "The servers that were started here, and whether they run.",
        "stop": "End a server, and remove what it left.",
        "restart": "End a server and start it again.",
    },
    "When it breaks": {
        "logs": "The log of a step or a server.",
        "diagnose": "Explain a failure from its log: the first error, and the known issue.",
        "issues": "Known failures of the ROCm stack: what they mean, their causes and remedies.",
        "heal": "The remedies of the lock: what was tried, why, and whether it helped.",
        "shell": "Open a shell in the sandbox of a step, with its tree as it was left.",
        "patch": "Edits of source trees: check them, or save your changes as edits.",
        "bisect": "Find the upstream change that broke a build: first the pins, then the commit.",
    },
    "Keep it going": {
        "cycle": "Follow upstream: build and check a candidate, then promote it or keep the old lock.",
        "promote": "Promote a row to a channel by hand; show what each channel holds and what the "
        "next one needs.",
        "serve": "Dashboard in a browser: what works, what runs, what broke.",
        "notify": "Tell people what changed: rows that broke, pass again, were promoted, or need a decision.",
        "report": "Status of every stack, GPU and base, as a table or one self-contained page.",
        "history": "Earlier runs on this machine.",
    },
    "Wheels and export": {
        "wheel": "The machine code in wheels and libraries: inspect, check, trim and serve it.",
        "export": "Export the lock as a Containerfile, scripts or units that do not need rocwright.",
        "import": "Put the versions of a versions.env into rocwright.toml.",
        "env": "The environment variables that a GPU needs, with reasons, for your shell.",
    },
    "This machine": {
        "store": "What is kept, and sharing it: ls, usage, verify, gc, push, pull.",
        "trust": "Whose builds are taken instead of building: keys, and stores to look in.",
        "farm": "Run steps on many machines: a coordinator, workers, their certificates and state.",
        "clean": "What takes disk space on this machine, by kind, and what can be removed.",
        "records": "The database of runs and findings: check, vacuum, export, import.",
        "sandbox": "Which sandbox engines work here, and why the others do not.",
        "catalog": "The catalog: check its files, and JSON schemas for editors.",
        "exec-step": "Run one step from the store alone.",
        "completion": "Shell completion for bash, zsh or fish.",
    },
}

VERBS = {name: summary for verbs in SECTIONS.values() for name, summary in verbs.items()}

# Words of other programs, and the verb for each; two words are a verb and an option.
ELSEWHERE = {
    **dict.fromkeys(("list", "ls", "search", "show"), "stacks"),
    **dict.fromkeys(("gpus", "devices"), "targets"),
    **dict.fromkeys(("build --dry-run", "build --plan", "lock --dry-run", "dry-run"), "plan"),
    **dict.fromkeys(("update", "upgrade", "outdated"), "watch"),
    **dict.fromkeys(("chat", "start"), "run"),
    **dict.fromkeys(("prune", "gc", "purge"), "clean"),
    **dict.fromkeys(("status", "servers"), "ps"),
    "new": "init",
    "test": "verify",
    "fix": "heal",
    "dashboard": "serve",
    "version": "--version",
}

# Verbs whose module cannot have their name: Python has the word.
MODULES = {"import": "import_"}

# The group of entry points of the verbs that have no module here.
PLUGINS = "rocwright.verbs"


def main() -> None:
    """Run the command line; every failure ends with its class's exit code, and no traceback."""
    start(_group, _failed, _answered)


def _answered(words: Sequence[str]) -> bool:
    return words[:1] == ["wheel"] and quick.answered(words[1:])


def _group() -> click.Command:
    from rocwright.cli.group import cli

    return cli


def __getattr__(name: str) -> object:
    # what is answered quickly does without it
    if name == "cli":
        return _group()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _failed(error: Exception) -> int:
    from rocwright.cli.tell import tell_any

    return tell_any(error, as_json="--json" in sys.argv)
