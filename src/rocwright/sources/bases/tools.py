"""The tools root: a small Debian whose programs make and read roots of Debian, the same way on every host.

Its digest is in the record of each root that it made and in no key: two tools roots make the same root.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path, PurePosixPath

from filelock import FileLock

from rocbase.errors import ExplainedError
from rocbase.files.atomic import sha256_bytes
from rocbase.processes import run as process
from rocwright.config import store_of
from rocwright.diagnosis.facts import ToolsRoot, host_facts
from rocwright.home import Home
from rocwright.model.architecture import host_architecture
from rocwright.model.steps import ImageOrigin
from rocwright.sandbox.containers import ulimits
from rocwright.sandbox.podman import base_words
from rocwright.sources import image
from rocwright.sources.bases.namespace import PLACE, TOOLS, give, host_settings, programs, sandboxed
from rocwright.sources.bases.roots import remove_tree, unpacked_root
from rocwright.sources.bases.writable import WritableRoot, writable_root
from rocwright.sources.debian_failures import archive_failure
from rocwright.sources.patience import asked, within
from rocwright.sources.programs import check_programs, tools_sources
from rocwright.store.model import Output, Record, Store, finished
from rocwright.store.packed import content_of, packing

STEP = "tools"

# The environment of commands in a sandbox of the tools root.
PLAIN_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
}

# Where a sandbox sees the folders that a command works in.
ARCHIVE, FILES = PurePosixPath("/archive"), PurePosixPath("/files")

# A frozen snapshot's Release file is past its date.
_APT = {
    "Acquire::Check-Valid-Until": "false",
    "APT::Install-Recommends": "false",
    "APT::Sandbox::User": "root",
}
_INSTALL = """set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get {options} update
apt-get {options} install --yes "$@"
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/*.deb
"""
_SECONDS = 3600


class Tools:
    """The tools root of this machine; it is made, or fetched from a trusted store, when it is first used."""

    def __init__(self, home: Home, on_line: Callable[[str], None] = lambda line: None) -> None:
        self.home = home
        self.on_line = on_line

    @cached_property
    def root(self) -> Path:
        """Return the folder of the root. Raises InputError on a host that can neither make nor fetch it."""
        store = store_of(self.home)
        return unpacked_root(store, self.record.output("root").sha256, self.home.roots, self.on_line)

    @cached_property
    def record(self) -> Record:
        """Return its record in the store; make it if there is none. Raises as `root`."""
        store, key = store_of(self.home), tools_key()
        self.home.work.mkdir(parents=True, exist_ok=True)
        with FileLock(self.home.work / "tools.lock"):
            record = store.record(key) if has_tools(self.home) else None
            return record or _make(store, key, self.home, self.on_line)

    @property
    def digest(self) -> str:
        """Return the hex sha256 of its tar. Raises as `root`."""
        return self.record.output("root").content

    def run(
        self,
        command: Sequence[str],
        *,
        archive: Path | None = None,
        files: Path | None = None,
        network: bool = False,
        seconds: float = 1800,
    ) -> process.Finished:
        """Run a command of the root as this user, with two folders seen at ARCHIVE and FILES.

        A status other than 0 raises nothing. Raises SandboxError without libseccomp.
        """
        with _stage(self.home) as stage:
            places = {ARCHIVE: archive, FILES: files}
            shown = {place: folder for place, folder in places.items() if folder is not None}
            mounts = [*programs(), "--tmpfs", "/tmp"]  # noqa: S108 - the sandbox's own
            mounts += host_settings(stage) if network else []
            for place in shown:
                mounts += ["--bind", str(PLACE / place.name), str(place)]
            words = sandboxed(
                stage,
                command,
                mounts,
                PLAIN_ENVIRONMENT | _no_proxy(),
                binds={TOOLS: self.root, **{place.name: folder for place, folder in shown.items()}},
                ids=False,
                directory=str([*shown][-1]),
                network=network,
            )
            return process.run(words, timeout=seconds)


@contextmanager
def _stage(home: Home) -> Iterator[Path]:
    home.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.work, prefix="tools-") as stage:
        yield Path(stage)


def has_tools(home: Home) -> bool:
    """Return whether this machine has the tools root now; it is fetched from a trusted store if need be.

    A step looks into this machine's own store alone.
    """
    store, key = store_of(home), tools_key()
    return store.record(key) is not None and store.bring(key) and finished(store, key) is not None


def tools_key() -> str:
    """Return its key in stores: over its facts and the architecture of this machine."""
    facts = _facts().model_dump_json()
    return sha256_bytes(f"tools root\n{host_architecture()}\n{facts}".encode())


def _make(store: Store, key: str, home: Home, on_line: Callable[[str], None]) -> Record:
    begun, started = time.monotonic(), datetime.now(UTC).isoformat()
    otherwise = "trust a store that has the tools root (rocwright trust add URL)"
    check_programs(["debian"], tools=False, otherwise=otherwise)
    with asked(f"Debian {_facts().suite}"), _stage(home) as stage:
        target = _first_made(stage, store, on_line)
        content = content_of(target)
        sha256, size = store.put_file(target, move=True)
    output = Output(name="root", filename="root.tar.zst", sha256=sha256, size=size, content=content)
    record = Record(
        key=key,
        content_key=sha256_bytes(f"{key} {content}".encode()),
        step=STEP,
        kind="base",
        outputs=(output,),
        started=started,
        seconds=time.monotonic() - begun,
    )
    return store.put_record(record)


def _first_made(stage: Path, store: Store, on_line: Callable[[str], None]) -> Path:
    """Return the root of the first program that succeeds: docker without its daemon does not, for one.

    Raises the error of the first program if all fail.
    """
    failures: list[ExplainedError] = []
    for program in tools_sources():
        on_line(f"tools: making rocwright's own Debian {_facts().suite} by {program}, once")
        folder = stage / program
        folder.mkdir()
        try:
            _WAYS[program](folder, folder / "root.tar.zst", store)
        except ExplainedError as error:
            on_line(f"tools: {program} could not: {error.cause}")
            failures.append(error)
        else:
            return folder / "root.tar.zst"
    raise failures[0]


def _facts() -> ToolsRoot:
    return host_facts().tools_root


def _by_mmdebstrap(stage: Path, target: Path, store: Store) -> None:
    """Have the host's own mmdebstrap make it, in a sandbox that shows the host's programs."""
    work = stage / FILES.name
    (work / "temporary").mkdir(parents=True)
    give(stage, work, work / "temporary")
    mounts = [*programs(PurePosixPath("/")), "--bind", str(PLACE / work.name), str(FILES)]
    mounts += ["--tmpfs", "/tmp"]  # noqa: S108 - the sandbox's own
    words = [
        *("mmdebstrap", "--mode=root", "--variant=apt", "--format=directory", "--skip=check/empty"),
        f"--include={','.join(_facts().packages)}",
        *(f'--aptopt={name} "{value}"' for name, value in _APT.items()),
        *(_facts().suite, str(FILES / "root")),
    ]
    temporary = str(FILES / "temporary")
    environment = PLAIN_ENVIRONMENT | _no_proxy() | {"TMPDIR": temporary, "HOME": temporary}
    mounts += host_settings(stage)
    try:
        command = sandboxed(stage, words, mounts, environment, network=True, mounting=True)
        _check(process.run(command, timeout=within(_SECONDS)))
        WritableRoot(work / "root", 0, _silent).pack(target)
    finally:
        remove_tree(work)


def _by_skopeo(stage: Path, target: Path, store: Store) -> None:
    """Pull the image and let its own apt add the packages, in a sandbox."""
    reference, architecture = image.Reference.parse(_facts().image), host_architecture()
    digest = image.find_digest(reference, stage / "look", architecture)
    origin = ImageOrigin(reference=str(reference), digest=digest)
    sha256, _ = store.put_file(image.pull(origin, stage, architecture).path, move=True)
    with writable_root(store, sha256, stage / "image", _silent) as root:
        _check(root.run(_installing(), {}, network=True))
        root.pack(target)


def _by_engine(program: str, stage: Path, target: Path, store: Store) -> None:
    """Let a container of the image add the packages, and pack what it leaves."""
    name = f"rocwright-tools-{secrets.token_hex(6)}"
    engine = [program, *(base_words() if program == "podman" else ())]
    try:
        words = ["run", "--name", name, "--network", "host", *ulimits(), _facts().image]
        installed = [*engine, *words, *_installing()]
        _check(process.run(installed, timeout=within(_SECONDS)))
        errors: list[str] = []
        with packing(target, threads=os.cpu_count() or 1) as packed:
            code = process.pipe([*engine, "export", name], packed.write, errors.append)
        output = "\n".join(errors)
        _check(process.Finished(argv=(program,), returncode=code, stdout="", stderr=output, seconds=0))
    finally:
        process.run([*engine, "rm", "--force", name], timeout=120)


def _no_proxy() -> dict[str, str]:
    """Return the hosts that apt asks without a proxy; proxies are in settings that nobody else reads."""
    return {"no_proxy": os.environ.get("no_proxy", "")}


def _installing() -> list[str]:
    options = " ".join(f"-o{name}={value}" for name, value in _APT.items())
    return ["sh", "-c", _INSTALL.format(options=options), "sh", *_facts().packages]


def _silent(line: str) -> None:
    pass


def _check(completed: process.Finished) -> None:
    if not completed.ok:
        output = completed.stderr or completed.stdout
        raise archive_failure(
            "rocwright's own Debian could not be made",
            replace(completed, stderr=output),
            Path(tempfile.gettempdir()),
            "check the network, and the mirror of Debian's archive, then try again",
        )


_WAYS: Mapping[str, Callable[[Path, Path, Store], None]] = {
    "mmdebstrap": _by_mmdebstrap,
    "podman": partial(_by_engine, "podman"),
    "docker": partial(_by_engine, "docker"),
    "skopeo": _by_skopeo,
}
