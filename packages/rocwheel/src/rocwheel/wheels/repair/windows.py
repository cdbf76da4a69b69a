"""The Windows layout: DLLs inside the package, and a hook that makes Python and the loader find them.

As TheRock's fat wheel of PyTorch has it (external-builds/pytorch/windows_patch_fat_wheel.py): a ROCm root in
the package, its bin handed to os.add_dll_directory. A plain LoadLibrary does not look there, so what is
opened by name is loaded before it is asked for; a module that is loaded is found by its name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rocbase.errors import InputError
from rocwheel.wheels.repair.dlls import Folders, dll_names_in, imports, known_names
from rocwheel.wheels.repair.facts import Facts, RocmLibrary
from rocwheel.wheels.repair.model import Brought, Lacking, Plan, Request
from rocwheel.wheels.repair.reads import Gathered, archives, gather_known
from rocwheel.wheels.repair.staying import Staying, is_meant

BIN = "bin"

_HOOK = '''"""Where the DLLs of ROCm lie that this package brings along."""

import ctypes
import os

_HERE = os.path.dirname(os.path.abspath(__file__))
_BIN = os.path.join(_HERE, "bin")

if hasattr(os, "add_dll_directory"):
    # kept: the folder is searched no more when this is closed
    _HANDLE = os.add_dll_directory(_BIN)
    for _name, _place in {variables}:
        os.environ.setdefault(_name, os.path.normpath(os.path.join(_BIN, _place)))
    # opened by name, by others of these, in a way that does not look into that folder
    for _name in {opened}:
        ctypes.WinDLL(os.path.join(_BIN, _name))
'''


def plan_windows(
    own: Mapping[str, Path],
    request: Request,
    facts: Facts,
    *,
    home: str,
    requires: Iterable[str],
    package_init: str,
) -> Plan:
    """What must be brought in so that the PE files `own` (path in the wheel -> copy on disk) load.

    `package_init` is the text of the __init__.py of the package that `home` lies in. Raises InputError where
    a pattern matches nothing, or where that file is no Python.
    """
    staying = Staying(request=request, facts=facts, requires=tuple(requires))
    finding = _Finding(own, request, facts, staying)
    finding.follow()
    folder = f"{home}/{BIN}"
    libraries = finding.found
    readers = [
        (library, name, libraries[name])
        for name in sorted(libraries)
        if (library := facts.dll_library(name)) is not None
    ]
    gathered = gather_known([*readers, *archives(libraries.items())], request, folder)
    staying.used |= gathered.used
    staying.check_patterns(own)
    opened = [name for name in sorted(libraries) if name.lower() in finding.opened]
    return Plan(
        home=home,
        layout="windows",
        libraries=tuple(
            Brought(
                place=f"{folder}/{name}",
                name=name,
                soname=name,
                source=path,
                was=(name,),
                wanted_by=tuple(finding.wanted_by[name.lower()]),
                opened_as=(name,) if name in opened else (),
            )
            for name, path in sorted(libraries.items())
        ),
        data=gathered.data,
        texts={
            f"{home}/__init__.py": _HOOK.format(variables=_variables(readers, gathered), opened=opened),
            f"{home.partition('/')[0]}/__init__.py": with_hook(package_init, home.rpartition("/")[2]),
        }
        if libraries
        else {},
        missing=(*finding.missing, *gathered.missing),
        without=(*finding.without, *gathered.without),
        kept_out=dict(sorted(staying.kept_out.items())),
        dropped=gathered.dropped,
    )


def with_hook(text: str, module: str) -> str:
    """A package's __init__.py that imports its own `module` before anything else.

    Behind the docstring and what must stand first. Raises InputError for what is no Python.
    """
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise InputError(
            "the package's __init__.py is not valid Python",
            cause=str(error),
            next_step="correct it first: the code that finds the DLLs is added to it",
        ) from error
    line = 0
    for number, statement in enumerate(body):
        docstring = (
            number == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        )
        if not docstring and not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            break
        line = statement.end_lineno or 0
    lines = text.splitlines(keepends=True)
    if line and not lines[line - 1].endswith(("\n", "\r")):
        lines[line - 1] += "\n"
    return "".join((*lines[:line], f"from . import {module} as {module}\n", *lines[line:]))


def _variables(readers: Sequence[tuple[RocmLibrary, str, Path]], gathered: Gathered) -> list[tuple[str, str]]:
    """Environment variables for what is looked for in a place that was fixed at build time on Windows."""
    with_data = {file.of for file in gathered.data}
    return [
        (read.variable, read.at[0])
        for library, name, _ in readers
        for read in library.reads
        if read.fixed_on_windows and name in with_data
    ]


class _Finding:
    """The search, breadth first, and what comes up on the way; names in lower case."""

    def __init__(self, own: Mapping[str, Path], request: Request, facts: Facts, staying: Staying) -> None:
        folders = [root / folder for root in request.roots for folder in facts.layout.windows]
        candidates = dict.fromkeys((*folders, *request.roots, *request.search))
        self.folders = Folders(tuple(folder for folder in candidates if folder.is_dir()))
        self.own, self.request, self.facts, self.staying = own, request, facts, staying
        self.inside = {path.rpartition("/")[2].lower() for path in own}
        self.found: dict[str, Path] = {}
        self.wanted_by: dict[str, dict[str, None]] = {}
        self.opened: set[str] = set()
        self.missing: list[Lacking] = []
        self.without: list[Lacking] = []

    def follow(self) -> None:
        """Fill `found`, by the names of the files."""
        selected = [(path, copy) for path, copy in self.own.items() if is_meant(path, self.request.only)]
        queue = [(name, path, "") for path, copy in selected for name in imports(copy)]
        for pattern in self.request.include:
            names = self.folders.matching(pattern)
            self.staying.used |= {pattern} if names else set()
            queue += [(name, "--include", "") for name in names]
            self.opened |= {name.lower() for name in names}
        visited: set[str] = set()
        while queue:
            name, dependent, reason = queue.pop(0)
            key = name.lower()
            self.wanted_by.setdefault(key, {})[dependent] = None
            if key in visited or key in self.inside or self.staying.stays(name):
                continue
            visited.add(key)
            path = self.folders.find(name)
            if path is None:
                self.missing.append(Lacking(name=name, wanted_by=(dependent,), why=reason))
                continue
            self.found[path.name] = path
            queue += [(need, path.name, "") for need in imports(path)]
            queue += [(need, path.name, reason) for need, reason in self._opens(path)]

    def _opens(self, path: Path) -> list[tuple[str, str]]:
        rocm_library = self.facts.dll_library(path.name)
        if rocm_library is None or not rocm_library.opens:
            return []
        literals = dll_names_in(path)
        needs = []
        for opened in rocm_library.opens:
            if not opened.windows:
                continue
            named = known_names(literals, opened.windows) or self.folders.matching(opened.windows)[-1:]
            present = [
                name for name in named if self.folders.find(name) is not None and not self.staying.stays(name)
            ]
            if present:
                needs += [(name, opened.why) for name in present]
                self.opened |= {name.lower() for name in present}
            elif named and all(self.staying.stays(name) for name in named):
                continue
            elif opened.optional:
                name = (named or [opened.windows])[0]
                self.without.append(Lacking(name=name, wanted_by=(path.name,), why=opened.why))
            else:
                needs.append(((named or [opened.windows])[0], opened.why))
        return needs
