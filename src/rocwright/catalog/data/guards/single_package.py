#!/usr/bin/env python3
"""Says whether Python would find a package exactly once, and whether its first import works.

Two faults of a build look alike. Either two copies of a package can be imported (a source tree in the working
directory, PYTHONPATH, the user site, a .pth file, an editable install), or there is one copy whose first
import fails, is caught, and is tried again: then its bindings are registered twice and the second error hides
the first. So this looks, without importing, at everything that the build's own Python would find, and then
imports once in a fresh process and shows the first traceback.

    python3 single_package.py torch --workdir /build/src
    python3 single_package.py torch torchvision --loaded

Every probe is a child of the same interpreter in that directory and environment, without the flags that this
process was started with. `python -c`, `python -m build` and `setup.py` all put the working directory first;
so does the probe. Needs the standard library of Python 3.9 or later; prints text, or one JSON object with
--json. Exits with 0, with 2 for wrong usage, and with 12 where something is not as it should be.

It is one file, long as it is, because it goes alone into sandboxes, exports and other people's machines.
"""

from __future__ import annotations

import argparse
import fnmatch
import glob
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import signal
import site
import subprocess
import sys
import sysconfig
from typing import Any

Data = dict[str, Any]

MARK = "ROCWRIGHT-GUARD "
CHECK_FAILED = 12
SHARED_LIBRARIES = ("libtorch*", "libc10*", "libcaffe2*", "libshm*")
"""Names of which a process may hold one file each; --library gives others."""

STATES = {"file": "a single file", "zip": "in a zip file", "namespace": "no __init__.py"}

REGISTERED_AGAIN = r"cannot initialize type \"?[^\n\"]+\"?: an object with that name is already defined"
REGISTERED_TWICE = (
    r"generic_type: type \"[^\n\"]+\" is already registered|SystemError: .*method: bad call flags"
)

KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        r"ImportError: cannot import name '[^']+' from 'torch\._C\._distributed_rpc'",
        "torch was built with USE_DISTRIBUTED=1 and USE_TENSORPIPE=0, but its rpc "
        "package imports the names of TensorPipe all the same",
        "build torch with USE_DISTRIBUTED=0, or with USE_TENSORPIPE=1",
    ),
    (
        REGISTERED_AGAIN,
        "this is a consequence, and no sign of two copies: an earlier import of {name} in the same process "
        "failed after its bindings were registered, and something caught that failure",
        "find what imports {name} first and catches the failure; its traceback is the one to mend",
    ),
    (
        REGISTERED_TWICE,
        "the compiled parts of two copies were loaded into one process",
        "remove one copy of {name}: look for its libraries in the other packages that are imported",
    ),
    (
        r"(?:ImportError|OSError): (\S+\.so[.\d]*): cannot open shared object file",
        "a shared library that {name} was linked with is not on this system, or not where the loader looks",
        "install the package that holds it, or put its folder on LD_LIBRARY_PATH",
    ),
    (
        r"(?:ImportError|OSError): .*undefined symbol",
        "{name} was compiled against another version of a library than the one that is loaded here",
        "rebuild {name} against the libraries of this environment",
    ),
    (
        r"ModuleNotFoundError: No module named",
        "something that {name} needs is not installed",
        "install the module that the last line names",
    ),
)
"""Signatures of a failed import: pattern, cause, next step."""

BOOT = (
    "import sys; SEARCHED = list(sys.path); sys.path[:] = [entry for entry in SEARCHED if entry]; "
    "exec(compile(open(sys.argv[1], encoding='utf-8').read(), sys.argv[1], 'exec'))"
)
"""Runs this file in a child that keeps the search path as a build would have it; nothing of the standard
library is taken from the working directory meanwhile."""

TRAP = """
import builtins, importlib, json, sys, traceback
failures = []
def note(name, error):
    root = name.partition('.')[0]
    missing = isinstance(error, ModuleNotFoundError) and error.name == root
    if root and root not in sys.modules and not missing:
        told = traceback.TracebackException.from_exception(error)
        told.stack = traceback.StackSummary.from_list([f for f in told.stack if f.filename != '<trap>'])
        failures.append((root, ''.join(told.format())))
def trap(function):
    def watched(name, *rest, **named):
        try:
            return function(name, *rest, **named)
        except BaseException as error:
            note(name, error)
            raise
    return watched
builtins.__import__ = trap(builtins.__import__)
importlib.import_module = trap(importlib.import_module)
try:
    for name in NAMES:
        __import__(name)
finally:
    print(MARK + json.dumps(failures), flush=True)
"""
"""Imports NAMES and notes every import that failed and left nothing behind, caught or not."""


def main(argv: list[str] | None = None) -> int:
    """Examine, import, report; the exit status."""
    options = parse(argv)
    report = examine(options)
    errors = report["errors"]
    for package in report["packages"]:
        errors.extend(judge(package))
    if not errors and not options.no_import:
        for group in [options.names] if options.loaded else [[name] for name in options.names]:
            errors.extend(import_once(options, group, report))
    report["ok"] = not errors
    print(json.dumps(report, indent=2, sort_keys=True) if options.json else "\n".join(tell(report)))
    return 0 if report["ok"] else CHECK_FAILED


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="single_package.py",
        description="Does Python find each package exactly once, and does its first import work?",
    )
    say = parser.add_argument
    say("names", nargs="+", metavar="NAME", help="top-level package as it is imported")
    say("--workdir", default=".", help="where the build's Python will be started")
    say("--python", default=sys.executable, help="the build's Python, if not this one")
    say("--seconds", type=float, default=300.0, help="time limit of one import")
    say("--no-import", action="store_true", help="only look at what can be found")
    say("--loaded", action="store_true", help="import all in one process, and look at the libraries in it")
    say("--library", action="append", metavar="GLOB", help="libraries of which one file may be loaded")
    say("--json", action="store_true", help="one JSON object instead of text")
    options = parser.parse_args(argv)
    for name in options.names:
        if not name.isidentifier():
            parser.error(f"{name!r} is not the name of a top-level package")
    if not os.path.isdir(options.workdir):
        parser.error(f"the working directory {options.workdir} does not exist")
    options.workdir = os.path.abspath(options.workdir)
    return options


def examine(options: argparse.Namespace) -> Data:
    """What a fresh Python would find for each name; see `probe` for the shape."""
    argv = [options.python, "-B", "-c", BOOT, os.path.abspath(__file__), *options.names]
    ended = finish(argv, options)
    found = marked(ended)
    if found is not None:
        return {**found, "errors": []}
    error = fault(
        f"{options.python} in {options.workdir} {ended['how']}",
        cause="Python itself is broken, or a .pth or sitecustomize file that it reads at start-up",
        detail="".join(tracebacks(ended["stderr"])[:1]) or ended["stderr"].strip(),
    )
    return {"packages": [], "search_path": [], "python": options.python, "errors": [error]}


def judge(package: Data) -> list[Data]:
    """The faults of one examined package: missing, several copies, an empty folder, mixed metadata."""
    name, copies, metadata = package["name"], package["copies"], package["metadata"]
    if not copies:
        return [
            fault(
                f"{name} cannot be found",
                subject=name,
                cause="nothing of that name is where this Python looks: " + ", ".join(package["looked_in"]),
                next_step=f"install {name} for this Python, or start the step with the Python that has it",
            )
        ]
    if len(copies) > 1:
        return [
            fault(
                f"{name} can be imported from {len(copies)} places",
                subject=name,
                cause=why_two(copies),
                next_step=keep_one(copies),
                detail=table(copies),
            )
        ]
    only = copies[0]
    if only["kind"] == "namespace":
        return [
            fault(
                f"{name} is found as a folder that is no package",
                subject=name,
                cause=f"{only['path']} has no __init__.py, so Python imports it as an empty namespace",
                next_step=f"remove that folder or leave that directory, and install {name}",
                detail=table(copies),
            )
        ]
    if len({entry["version"] for entry in metadata}) > 1:
        return [
            fault(
                f"{name} is there once, but with the metadata of {len(metadata)} versions",
                subject=name,
                cause="one version was unpacked over another: what pip reports is not what is imported, and "
                "files of both may be mixed",
                next_step=f"uninstall {name} until nothing is left of it, then install it once",
                detail=columns(
                    [(entry["path"], entry["version"] or "?", entry["from"]) for entry in metadata]
                ),
            )
        ]
    return []


def why_two(copies: list[Data]) -> str:
    """The cause line for several copies, told from the one that wins."""
    first = next((copy for copy in copies if copy["wins"]), copies[0])
    if first["kind"] == "namespace":
        told = f"Python takes {first['path']}, which has no __init__.py and so is empty"
    elif first["lacks"]:
        told = (
            f"Python takes {first['path']}, which has no compiled {first['lacks'][0]}: its import will fail"
        )
    else:
        told = f"Python takes {first['path']} ({first['from']})"
    return (
        f"{told}; a build may compile against one copy and load the other, and one process that loads both "
        "ends with 'generic_type: type ... is already registered', 'bad call flags' or a crash"
    )


def keep_one(copies: list[Data]) -> str:
    """What to do about every copy but the one that looks installed on purpose."""
    whole = [copy for copy in copies if not copy["lacks"] and copy["kind"] != "namespace"] or copies
    kept = next((copy for copy in whole if copy["installed"]), whole[0])
    advice = [copy["mend"] for copy in copies if copy is not kept]
    return f"keep {kept['path']}; " + "; ".join(dict.fromkeys(advice))


def import_once(options: argparse.Namespace, names: list[str], report: Data) -> list[Data]:
    """Import `names` in one fresh process; with --loaded, also look at the libraries that it then holds."""
    lines = [f"import {name}" for name in names]
    if options.loaded:
        lines += ["import json", f"print({MARK!r} + json.dumps(open('/proc/self/maps').read()), flush=True)"]
    argv = [options.python, "-B", "-X", "faulthandler", "-c", "\n".join(lines)]
    ended = finish(argv, options)
    if ended["code"] != 0:
        return [failed_import(options, names, ended)]
    if not options.loaded:
        return []
    report["libraries"] = mapped(marked(ended), tuple(options.library or SHARED_LIBRARIES))
    return judge_libraries(" ".join(names), report["libraries"])


def failed_import(options: argparse.Namespace, names: list[str], ended: Data) -> Data:
    """Tell a failed import by its first traceback, even by one that was caught on the way."""
    subject = " ".join(names)
    told = tracebacks(ended["stderr"])
    if ended["timed_out"] or not told:
        return fault(
            f"the first import of {subject} in a fresh process {ended['how']}",
            subject=subject,
            cause="its compiled code crashes" if ended["code"] < 0 and not ended["timed_out"] else "",
            next_step=f"see how far it comes: {options.python} -X importtime -c 'import {names[-1]}'",
            detail=ended["stderr"].strip(),
        )
    first, last = told[0], said(told[-1])
    if re.search(REGISTERED_AGAIN, said(first)):
        root, caught = trapped(options, names)
        if caught:
            cause, following = known(caught, root)
            return fault(
                f"the first import of {root} fails, is caught, and {root} is imported again",
                subject=root,
                cause=f"{cause}. What the second import says is a consequence, not two copies: {last}",
                next_step=following,
                detail=caught,
            )
    cause, following = known(first, subject)
    if len(told) > 1 and last != said(first):
        cause += f". What comes after it is a consequence: {last}"
    return fault(
        f"the first import of {subject} in a fresh process fails",
        subject=subject,
        cause=cause,
        next_step=following,
        detail=first,
    )


def trapped(options: argparse.Namespace, names: list[str]) -> tuple[str, str]:
    """The package that is imported twice and the traceback of its first import; empty where there is none."""
    code = f"NAMES = {names!r}; MARK = {MARK!r}; exec(compile({TRAP!r}, '<trap>', 'exec'))"
    failures = marked(finish([options.python, "-B", "-c", code], options)) or []
    again = next((root for root, text in failures if re.search(REGISTERED_AGAIN, text)), "")
    first = next((text for root, text in failures if root == again), "")
    return ("", "") if re.search(REGISTERED_AGAIN, first) else (again, "".join(tracebacks(first)[:1]))


def known(text: str, name: str) -> tuple[str, str]:
    """Cause and next step for a traceback."""
    for pattern, cause, following in KNOWN:
        if re.search(pattern, text):
            return cause.format(name=name), following.format(name=name)
    return (
        f"{name} itself is broken; a build that catches this and imports again would only say "
        "'cannot initialize type ...: an object with that name is already defined'",
        "mend what the last line of the traceback says",
    )


def tracebacks(text: str) -> list[str]:
    """The tracebacks in a process's error output, in their order, each whole: frames, error, its notes."""
    found: list[list[str]] = []
    margin = 0
    state = "outside"
    for line in text.splitlines():
        body = line.lstrip()
        if body.startswith("Traceback (most recent call last):"):
            margin = len(line) - len(body)
            found.append([body])
            state = "frames"
        elif state == "error" and (not body or body.startswith("Remainder of file ignored")):
            state = "outside"
        elif state != "outside":
            kept = line[margin:] if line[:margin].strip() == "" else line
            found[-1].append(kept.rstrip())
            state = "error" if kept[:1].strip() else state
    return ["\n".join(lines) for lines in found]


def said(told: str) -> str:
    """The error of a traceback: its first line that is not indented."""
    return next((line for line in told.splitlines()[1:] if line[:1].strip()), "")


def mapped(maps: str, patterns: tuple[str, ...]) -> dict[str, list[str]]:
    """Files in /proc/self/maps by library name; a version after .so or a wheel's hash makes no other name."""
    files: dict[str, dict[tuple[str, str], str]] = {}
    for line in maps.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) < 6 or not fields[5].startswith("/"):
            continue
        path = fields[5]
        name = re.sub(r"(?:-[0-9a-f]{8})?\.so(?:\.[0-9.]+)?$", ".so", os.path.basename(path))
        if name.endswith(".so") and any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            files.setdefault(name, {})[fields[3], fields[4]] = path
    return {name: sorted(paths.values()) for name, paths in sorted(files.items())}


def judge_libraries(subject: str, libraries: dict[str, list[str]]) -> list[Data]:
    """The faults of a running process: a library in two files, or none to judge."""
    twice = {name: paths for name, paths in libraries.items() if len(paths) > 1}
    if twice:
        rows = [(name, path) for name, paths in twice.items() for path in paths]
        return [
            fault(
                f"{', '.join(twice)} is loaded from more than one file once {subject} is imported",
                subject=subject,
                cause="one package brings its own copy of a library that another one loads as well",
                next_step="rebuild the package that holds the second file, so that it uses the first",
                detail=columns(rows),
            )
        ]
    if not libraries:
        return [
            fault(
                f"none of the libraries looked for is loaded once {subject} is imported",
                subject=subject,
                cause="the package has no compiled part, or its libraries have other names",
                next_step="name them with --library",
            )
        ]
    return []


def finish(argv: list[str], options: argparse.Namespace) -> Data:
    """Run to the end in the build's directory, with this environment; its group is killed at the limit."""
    process = subprocess.Popen(
        argv,
        cwd=options.workdir,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    timed_out = False
    try:
        out, err = process.communicate(timeout=options.seconds)
    except subprocess.TimeoutExpired:
        timed_out = True
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
    code = process.returncode
    how = f"ends with exit status {code}"
    if timed_out:
        how = f"takes longer than {options.seconds:g} s"
    elif code < 0:
        how = f"is ended by signal {-code} ({signal.Signals(-code).name})"
    return {"code": code, "stdout": out, "stderr": err, "timed_out": timed_out, "how": how}


def marked(ended: Data) -> Any:
    """The JSON value that a child printed behind MARK, past whatever else wrote to its output; else None."""
    found = [line for line in ended["stdout"].splitlines() if line.startswith(MARK)]
    return json.loads(found[-1][len(MARK) :]) if found else None


def fault(what: str, *, cause: str = "", next_step: str = "", detail: str = "", subject: str = "") -> Data:
    """A failed check in the form that rocwright reads."""
    return {
        "class": "check",
        "what": what,
        "cause": cause,
        "next": next_step,
        "detail": detail,
        "subject": subject,
    }


def tell(report: Data) -> list[str]:
    """The report as lines for people."""
    lines = []
    for error in report["errors"]:
        lines.append(f"error[{error['class']}] {error['what']}")
        lines.extend(f"  {line}".rstrip() for line in error["detail"].splitlines())
        lines.extend(f"  {word:<6} {error[word]}" for word in ("cause", "next") if error[word])
    if not report["errors"]:
        for package in report["packages"]:
            only = package["copies"][0]
            lines.append(
                f"{package['name']} {only['version'] or '(version unknown)'}: one copy, {only['path']}"
            )
        lines.extend(f"{name}: {paths[0]}" for name, paths in report.get("libraries", {}).items())
    return lines


def table(copies: list[Data]) -> str:
    """A line for each copy: where, which version and state, what put it there, and which one wins."""
    rows = []
    for copy in copies:
        version = copy["version"] or "?"
        rows.append(
            (
                copy["path"],
                f"{version} ({copy['state']})" if copy["state"] else version,
                copy["from"],
                "<- wins" if copy["wins"] else "",
            )
        )
    return columns(rows)


def columns(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("   ".join(cell.ljust(widths[i]) for i, cell in enumerate(row)).rstrip() for row in rows)


def probe(names: list[str], searched: list[str]) -> Data:
    """Every place where this very process would find `names`, asked of its own finders; imports none."""
    sys.path[:] = searched
    startup = startup_lines()
    search_path = [
        {"path": entry or os.getcwd(), **origin(entry, index, startup)}
        for index, entry in enumerate(searched)
    ]
    return {
        "python": sys.executable,
        "workdir": os.getcwd(),
        "search_path": search_path,
        "packages": [look_for(name, search_path, startup) for name in names],
    }


def look_for(name: str, search_path: list[Data], startup: list[Data]) -> Data:
    """All copies of one package in the order of the search, the same real place once."""
    winner = os.path.realpath(place_of(importlib.util.find_spec(name)))
    copies: dict[str, Data] = {}
    ignored = []
    for spec, where in every_spec(name, search_path, startup):
        place = place_of(spec)
        real = os.path.realpath(place)
        if real in copies:
            if where["from"] not in copies[real]["from"]:
                copies[real]["from"] += " and " + where["from"]
        elif spec.origin is None and real != winner:
            ignored.append(
                {"path": place, "from": where["from"], "why": "no __init__.py, so another one is taken"}
            )
        else:
            copies[real] = {**describe(name, spec, place, where), "wins": real == winner}
    found = list(copies.values())
    compiled = {stem for copy in found for stem in copy["compiled"]}
    for copy in found:
        folder = copy["kind"] == "package"
        expected = compiled | set(copy.pop("stubs"))
        copy["lacks"] = sorted(expected) if folder and not copy["compiled"] else []
        notes = ["source tree"] if copy["source_tree"] else []
        notes += [f"no compiled {copy['lacks'][0]}"] if copy["lacks"] else []
        copy["state"] = ", ".join(notes + ([] if folder else [STATES[copy["kind"]]]))
    return {
        "name": name,
        "copies": found,
        "ignored": ignored,
        "imported_at_startup": name in sys.modules,
        "startup_lines": [line for line in startup if line["runs"] and name in line["text"]],
        "metadata": metadata(name, search_path),
        "looked_in": [entry["path"] for entry in search_path if entry["from"] != "standard library"],
    }


def place_of(spec: Any) -> str:
    """The folder or file of a module spec; empty for none."""
    if spec is None:
        return ""
    return next(iter(spec.submodule_search_locations or []), None) or spec.origin or ""


def every_spec(name: str, search_path: list[Data], startup: list[Data]) -> list[tuple[Any, Data]]:
    """A module spec from each finder, and from each entry of the search path, in the order of the search."""
    paths = importlib.machinery.PathFinder
    specs: list[tuple[Any, Data]] = []
    for finder in sys.meta_path:
        if finder is paths:
            specs.extend((paths.find_spec(name, [entry["path"]]), entry) for entry in search_path)
            continue
        hook = finder.__module__
        line = next((line for line in startup if line["runs"] and hook in line["text"]), None)
        told = f"{line['file']} line {line['line']}" if line else f"import hook {hook}"
        specs.append((finder.find_spec(name, None), editable(name, told)))
    return [(spec, where) for spec, where in specs if spec is not None]


def describe(name: str, spec: Any, place: str, where: Data) -> Data:
    """One copy: what it is, its version, what put it there, and how to take it away."""
    parent = os.path.dirname(place)
    told = where["from"]
    if told in ("site-packages", "user site"):
        told += installer(name, spec.origin or place, parent)
    kind = "package" if spec.submodule_search_locations is not None else "file"
    if not os.path.exists(place):
        kind = "zip"
    elif spec.origin is None:
        kind = "namespace"
    return {
        "path": place,
        "kind": kind,
        "version": version_of(name, spec, place),
        "from": told,
        "mend": where["mend"].format(path=place),
        "installed": where["installed"],
        "source_tree": any(
            os.path.exists(os.path.join(parent, file)) for file in ("setup.py", "pyproject.toml")
        ),
        "compiled": sorted({os.path.basename(file).split(".")[0] for file in files_in(place, "*.so")}),
        "stubs": sorted(
            {os.path.basename(os.path.dirname(file)) for file in files_in(place, "*/__init__.pyi*")}
        ),
    }


def version_of(name: str, spec: Any, place: str) -> str:
    """The version as text, read and not run: from the package, its metadata, or its source tree."""
    assigned = re.compile(r"^__version__\s*(?::[^=\n]+)?=\s*[\"']([^\"'\n]+)[\"']", re.MULTILINE)
    texts = [read(os.path.join(place, file)) for file in ("version.py", "_version.py", "__init__.py")]
    if spec.origin and not os.path.exists(place):
        texts.append(spec.loader.get_source(name) or "")
    for match in filter(None, map(assigned.search, texts)):
        return match.group(1)
    for item in metadata_in(name, os.path.dirname(place)):
        return str(item["version"])
    return read(os.path.join(os.path.dirname(place), "version.txt")).strip()


def startup_lines() -> list[Data]:
    """Every line of every .pth file that `site` reads; `runs` tells code from a folder."""
    folders = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    lines = []
    for path in [path for folder in dict.fromkeys(folders) for path in files_in(folder, "*.pth")]:
        for number, text in enumerate(map(str.rstrip, read(path).splitlines()), 1):
            if text and not text.startswith("#"):
                folder, file = os.path.split(path)
                runs = text.startswith(("import ", "import\t"))
                adds = "" if runs else os.path.realpath(os.path.join(folder, text))
                lines.append(
                    {"file": file, "folder": folder, "line": number, "text": text, "runs": runs, "adds": adds}
                )
    return lines


def origin(entry: str, index: int, startup: list[Data]) -> Data:
    """What put one entry on the search path, and how to take away what lies there."""
    real = os.path.realpath(entry or os.getcwd())
    given = [] if sys.flags.ignore_environment else os.environ.get("PYTHONPATH", "").split(os.pathsep)
    standard = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    standard += [os.path.join(folder, "lib-dynload") for folder in standard]
    if entry == "" and index == 0:
        return put_there("working directory", "run the step in another directory, or remove {path}")
    if site.ENABLE_USER_SITE and real == os.path.realpath(site.getusersitepackages()):
        return put_there("user site", "set PYTHONNOUSERSITE=1 for the step", installed=True)
    if real in map(os.path.realpath, site.getsitepackages()):
        return put_there("site-packages", "uninstall the one at {path}", installed=True)
    if any(given) and real in map(os.path.realpath, given):
        return put_there("PYTHONPATH", f"take {entry} off PYTHONPATH")
    if real in map(os.path.realpath, standard) or re.search(r"/python\d+\.zip$", real):
        return put_there("standard library", "remove {path}")
    for line in startup:
        if line["adds"] == real or (line["runs"] and entry in line["text"]):
            return added_by(line, real)
    return put_there("added at start-up (sitecustomize or an import hook)", "remove {path}")


def added_by(line: Data, real: str) -> Data:
    """A .pth line, told as the editable install that it belongs to where there is one."""
    told = f"{line['file']} line {line['line']}"
    for link in files_in(line["folder"], "*.egg-link"):
        if os.path.realpath(read(link).partition("\n")[0]) == real:
            return editable(os.path.basename(link)[: -len(".egg-link")], told)
    match = re.match(r"__editable__\.([^-]+)|_(\w+)\.pth$", line["file"])
    if match:
        return editable(match.group(1) or match.group(2), told)
    return put_there(told, f"remove line {line['line']} of {os.path.join(line['folder'], line['file'])}")


def editable(name: str, told: str) -> Data:
    return put_there(
        f"editable install of {name} ({told})", f"pip uninstall {name} (the editable one)", installed=True
    )


def put_there(told: str, mend: str, *, installed: bool = False) -> Data:
    """What put an entry there, how to take it away, and whether something was installed there on purpose."""
    return {"from": told, "mend": mend, "installed": installed}


def metadata(name: str, search_path: list[Data]) -> list[Data]:
    """Metadata of distributions that hold `name`, on the whole search path, each real folder once."""
    found: dict[str, Data] = {}
    for entry in search_path:
        for item in metadata_in(name, entry["path"]):
            found.setdefault(os.path.realpath(item["path"]), {**item, "from": entry["from"]})
    return list(found.values())


def metadata_in(name: str, folder: str) -> list[Data]:
    """*.dist-info and *.egg-info in one folder whose distribution is, or by top_level.txt holds, `name`."""
    found = []
    for path in files_in(folder, "*.dist-info") + files_in(folder, "*.egg-info"):
        stem = os.path.basename(path).rsplit(".", 1)[0].split("-")[0]
        same = re.sub(r"[-_.]+", "_", stem).lower() == name.lower()
        if not same and name not in read(os.path.join(path, "top_level.txt")).split():
            continue
        text = read(path) or read(os.path.join(path, "METADATA")) or read(os.path.join(path, "PKG-INFO"))
        match = re.search(r"^Version:\s*(\S+)", text, re.MULTILINE)
        direct = json.loads(read(os.path.join(path, "direct_url.json")) or "{}")
        found.append(
            {
                "path": path,
                "version": match.group(1) if match else "",
                "installer": read(os.path.join(path, "INSTALLER")).strip(),
                "editable": direct.get("url", "") if direct.get("dir_info", {}).get("editable") else "",
            }
        )
    return found


def installer(name: str, file: str, folder: str) -> str:
    """Which package manager owns a file: ', package NAME', ', installed by pip', or nothing."""
    owner = ""
    for listing in glob.iglob("/var/lib/dpkg/info/*.list"):
        if f"\n{file}\n" in read(listing):
            owner = os.path.basename(listing)[: -len(".list")].split(":")[0]
    for listing in glob.iglob("/var/lib/pacman/local/*/files"):
        if f"\n{file[1:]}\n" in read(listing):
            owner = os.path.basename(os.path.dirname(listing)).rsplit("-", 2)[0]
    if not owner and shutil.which("rpm"):
        asked = subprocess.run(
            ["rpm", "-qf", "--qf", "%{NAME}", file], capture_output=True, text=True, check=False
        )
        owner = asked.stdout.strip() if asked.returncode == 0 else ""
    if owner:
        return f", package {owner}"
    by = [item["installer"] for item in metadata_in(name, folder) if item["installer"]]
    return f", installed by {by[0]}" if by else ""


def files_in(folder: str, pattern: str) -> list[str]:
    return sorted(glob.glob(os.path.join(glob.escape(folder), pattern)))


def read(path: str) -> str:
    """A text file, or nothing where there is none."""
    if not os.path.isfile(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


if "SEARCHED" in globals():
    print(MARK + json.dumps(probe(sys.argv[2:], globals()["SEARCHED"])), flush=True)
elif __name__ == "__main__":
    sys.exit(main())
