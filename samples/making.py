"""Small steps, plans, locks, records and trees, made by hand for the tests."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from rocwright.catalog.address import FileAddress
from rocwright.catalog.load import Catalog, builtin_catalog
from rocwright.model.steps import (
    ArchiveOrigin,
    BaseAction,
    BuiltinOrigin,
    DebianOrigin,
    FetchAction,
    FilePin,
    IndexOrigin,
    Input,
    OutputSpec,
    Plan,
    RunAction,
    Step,
    TreeAction,
)
from rocwright.plan.resolve.lock import make_lock
from rocwright.plan.resolve.model import Lock, LockedPython, LockedSdist, Request
from rocwright.plan.resolve.upstream import OfflineUpstream
from rocwright.sources.archive import pack
from rocwright.store.model import Output, Record, Store

EPOCH = 1735689600


def digest(text: str) -> str:
    """A sha256 that stands for something."""
    return hashlib.sha256(text.encode()).hexdigest()


def deb(name: str, version: str = "1.0-1", size: int = 1000) -> FilePin:
    """A package of a lock."""
    return FilePin(
        filename=f"{name}_{version}_amd64.deb",
        sha256=digest(f"{name} {version}"),
        size=size,
        origin=DebianOrigin(suite="sid", package=name, version=version, architecture="amd64"),
    )


def builtin(name: str, sha256: str | None = None, size: int = 100) -> FilePin:
    """A tree that rocwright carries."""
    return FilePin(
        filename=f"{name}.tar.zst",
        sha256=sha256 or digest(name),
        size=size,
        origin=BuiltinOrigin(name=name),
    )


def download(address: FileAddress) -> FilePin:
    """A file that a build downloads."""
    return FilePin(
        filename=address.filename,
        sha256=address.sha256 or digest(address.url),
        size=100,
        origin=ArchiveOrigin(url=address.url),
    )


def index_pin(filename: str, project: str, version: str, index: str = "") -> FilePin:
    """A file of a package index."""
    return FilePin(
        filename=filename,
        sha256=digest(filename),
        size=100,
        origin=IndexOrigin(project=project, version=version, index=index),
    )


def with_sdist(lock: Lock, index: str = "") -> Lock:
    """The lock, where the builds install a package that has no wheel."""
    sdist = LockedSdist(
        name="old-style",
        version="1.0",
        wanted=("pip", "setuptools"),
        files=(index_pin("old-style-1.0.tar.gz", "old-style", "1.0", index),),
        requires=(
            index_pin("pip-26.0-py3-none-any.whl", "pip", "26.0"),
            index_pin("setuptools-80.0-py3-none-any.whl", "setuptools", "80.0"),
        ),
    )
    files = (index_pin("pip-26.0-py3-none-any.whl", "pip", "26.0"),)
    python = LockedPython(version="3.13", wanted=("old-style",), files=files, sdists=(sdist,))
    return lock.model_copy(update={"python": python})


def small_plan() -> Plan:
    """Packages, a root, a source, a tree with one edit, and one component built of them."""
    packages = Step(name="packages/build", component="debian:sid", action=FetchAction(files=(deb("base"),)))
    root = Step(
        name="root/build",
        component="debian:sid",
        action=BaseAction(suite="sid", architecture="amd64"),
        inputs=(Input(name="packages", key=packages.key, output="*"),),
    )
    source = Step(name="source/hello", component="hello", action=FetchAction(files=(builtin("hello"),)))
    tree = Step(
        name="tree/hello",
        component="hello",
        action=TreeAction(subdir="src"),
        inputs=(Input(name="source", key=source.key, output="*"),),
    )
    made = Step(
        name="hello",
        component="hello",
        action=RunAction(
            commands=("make -j$JOBS", "cp hello $OUT/"),
            env={"VERSION": "1.0"},
            outputs=(OutputSpec(name="program", pattern="hello"),),
        ),
        inputs=(
            Input(name="root", key=root.key, output="root"),
            Input(name="src", key=tree.key, output="tree"),
        ),
    )
    return Plan(steps=(packages, root, source, tree, made), artifacts=("hello",))


def chain(length: int) -> Plan:
    """A plan in which each step needs the one before it, and the one a hundred before it."""
    steps: list[Step] = []
    for number in range(length):
        inputs = [Input(name="last", key=steps[-1].key, output="out")] if steps else []
        if number >= 100:
            inputs.append(Input(name="older", key=steps[-100].key, output="out"))
        action = RunAction(
            commands=(f"make {number}",), outputs=(OutputSpec(name="out", pattern=f"{number}.txt"),)
        )
        steps.append(Step(name=f"s{number}", component="c", action=action, inputs=tuple(inputs)))
    return Plan(steps=tuple(steps), artifacts=(steps[-1].name,))


def lock_of(stack: str, *gpus: str, base: str = "", catalog: Catalog | None = None, size: int = 1000) -> Lock:
    """A lock with invented packages and sources for a stack of the catalog; without the libraries that a row
    of the stack for these GPUs and base goes without."""
    catalog = catalog or builtin_catalog()
    gpus, base = gpus or ("gfx1151",), base or catalog.stack(stack).bases[0]
    rows = [row for row in catalog.stack(stack).row if (row.gpu,) == gpus and row.base == base]
    missing = rows[0].accept_missing if rows else ()
    request = Request(stack=stack, gpu=gpus, base=base, accept_missing=missing)
    named = make_lock(request, catalog, OfflineUpstream(), lambda _: None)
    return named.model_copy(
        update={
            "rocwright": "0.1.0",
            "created": "2025-01-01T00:00:00Z",
            "components": tuple(
                one.model_copy(
                    update={
                        "files": (builtin(one.name),),
                        "downloads": tuple(map(download, catalog.component(one.name).downloads(one.version))),
                        "kind": "builtin",
                        "pending": "",
                    }
                )
                for one in named.components
            ),
            "roots": tuple(
                root.model_copy(
                    update={
                        "packages": (deb("libc6", size=size), deb(f"only-to-{root.role}", size=size)),
                        "pending": "",
                    }
                )
                for root in named.roots
            ),
        }
    )


def record_of(step: Step, *outputs: Output, **more: object) -> Record:
    """A record as if the step had been run."""
    data: dict[str, object] = {
        "key": step.key,
        "content_key": step.key,
        "step": step.name,
        "kind": step.kind,
        "outputs": outputs,
        "started": "2025-01-01T00:00:00Z",
        "seconds": 1.0,
    }
    return Record.model_validate(data | more)


def put_output(store: Store, step: Step, name: str, data: bytes, folder: Path) -> Output:
    """Keep `data` as the one output of `step`, with its record."""
    path = folder / f"{step.key[:8]}-{name}"
    path.write_bytes(data)
    sha256, size = store.put_file(path, move=True)
    output = Output(name=name, filename=name, sha256=sha256, size=size)
    store.put_record(record_of(step, output))
    return output


# a root file system of a few programs of this machine

PROGRAMS = (
    *("sh", "env", "chroot", "cat", "cp", "mv", "rm", "mkdir", "ls", "sleep", "head", "tail", "tr", "id"),
    *(
        "date",
        "touch",
        "sha256sum",
        "wc",
        "sort",
        "grep",
        "sed",
        "uname",
        "ln",
        "test",
        "true",
        "tar",
        "mkfifo",
        "chmod",
        "truncate",
        "gzip",
    ),
)


def make_tiny_root(
    target: Path,
    scratch: Path,
    *,
    python: bool = False,
    whole: bool = False,
    more: Iterable[str] = (),
    folders: Iterable[Path] = (),
) -> None:
    """Pack a root file system with a shell and some tools of this machine, and `more`, names or paths; with
    `python`, that too, `whole` as pip needs it; `folders` of this machine lie where they lie here."""
    root = scratch / "root"
    for folder in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "etc"):
        (root / folder).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    (root / "etc" / "passwd").write_text("root:x:0:0::/:/bin/sh\n")
    search = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin"
    programs = {name: Path(str(shutil.which(name, path=search))).resolve() for name in (*PROGRAMS, *more)}
    for name, path in programs.items():
        shutil.copy(path, root / "usr" / ("sbin" if name == "chroot" else "bin") / Path(name).name)
    binaries = list(programs.values())
    if python:
        binaries += _copy_python(root, whole=whole)
    for library in _libraries(binaries):
        usual = str(library).startswith(("/lib", "/usr/lib"))
        place = root / "usr" / (str(library).removeprefix("/usr")[1:] if usual else f"lib/{library.name}")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, place)
    for whole_folder in folders:
        shutil.copytree(whole_folder, root / str(whole_folder)[1:], symlinks=True)
    pack(root, target, epoch=EPOCH)
    shutil.rmtree(root)


def _copy_python(root: Path, *, whole: bool) -> list[Path]:
    """The interpreter that runs the tests and the modules that it needs, as /usr/bin/python3."""
    stdlib = Path(sysconfig.get_path("stdlib"))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    program = Path(os.path.realpath(sys.executable))
    shutil.copy(program, root / "usr/bin/python3")
    never = ("__pycache__", "site-packages", "dist-packages", "test", "tests", "idlelib", "config-*")
    seldom = (
        *("lib2to3", "ensurepip", "tkinter", "pydoc_data", "turtledemo", "distutils", "unittest", "asyncio"),
        *("sqlite3", "multiprocessing", "xml", "xmlrpc", "wsgiref", "curses", "dbm", "pydoc.py"),
    )
    unwanted = shutil.ignore_patterns(*never, "lib-dynload", *(() if whole else seldom))
    shutil.copytree(stdlib, root / "usr/lib" / version, ignore=unwanted)
    modules = root / "usr/lib" / version / "lib-dynload"
    modules.mkdir()
    few = (
        *("math", "zlib", "binascii", "_struct", "_json", "_posixsubprocess", "select", "_datetime"),
        *("_hashlib", "_sha256", "_sha2", "_blake2", "_md5", "_sha1", "_sha3", "_sha512"),
    )
    for name in ("*",) if whole else few:
        for module in (stdlib / "lib-dynload").glob(f"{name}.*.so"):
            shutil.copy(module, modules)
    return [program, *modules.glob("*.so")]


def _libraries(programs: Iterable[Path]) -> set[Path]:
    shown = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False)
    words = [word for line in shown.stdout.splitlines() for word in line.split()]
    return {Path(word) for word in words if word.startswith("/") and not word.endswith(":")}
