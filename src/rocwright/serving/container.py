"""Servers in containers: podman's and docker's command lines, and what they say of a container."""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rocbase.errors import SandboxError
from rocbase.files.bounds import LAYERS
from rocbase.files.unpacking import BROKEN, Meter, Unpacked
from rocbase.processes import run as process
from rocwright.sandbox import ENGINES
from rocwright.sandbox.containers import LABELS, ulimits
from rocwright.sandbox.engine import OTHER, USER, host_environment, is_root, last_line
from rocwright.sandbox.model import Mount
from rocwright.sandbox.podman import base_words
from rocwright.sources.programs import check_programs

PODMAN = "podman"

_UNREADABLE: tuple[type[Exception], ...] = (*BROKEN, OSError, ValueError, LookupError, TypeError)

_ASK_SECONDS = 60.0
_LOAD_SECONDS = 1800.0
_MOST_JSON = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Contained:
    """A server for a container: the image by its digest, its words, what it sees, and its one port."""

    name: str
    image: str
    entrypoint: str
    words: tuple[str, ...]
    env: Mapping[str, str]
    mounts: Sequence[Mount]
    devices: Sequence[str]
    host: str
    port: int
    inside: int


def check_works(place: str) -> None:
    """Raise an error if the engine of a place is not installed or does not answer, before anything is built.

    On the host a server runs in bubblewrap: raises InputError without it, SandboxError for another engine.
    """
    if place == "host":
        check_programs(["serve"], tools=True, otherwise=f"use --in {PODMAN}")
        return
    try:
        ENGINES[place].version()
    except SandboxError as error:
        raise SandboxError(
            error.message,
            cause=error.cause,
            next_step=f"{error.next_step.removesuffix(OTHER)}, or leave --in out: that needs no {place}",
        ) from error


def command(engine: str, contained: Contained) -> tuple[str, ...]:
    """The command that runs it in the foreground; the container is removed when it ends."""
    words = [*client(engine), "run", "--rm", "--name", contained.name, "--read-only", "--cap-drop", "all"]
    words += ["--security-opt", "no-new-privileges", *LABELS, "--pull", "never"]
    words += ["--log-driver", "none", "--entrypoint", contained.entrypoint]  # its log is the server's own
    if engine == PODMAN:
        words += [*ulimits(), "--read-only-tmpfs=false"]
        words += [] if is_root() else [f"--userns=keep-id:uid={USER},gid={USER}"]
    words += ["--user", f"{USER}:{USER}"]
    words += ["--tmpfs", "/tmp:rw,nosuid,nodev,mode=1777"]  # noqa: S108 - the container's own
    words += ["--publish", f"{_bracketed(contained.host)}:{contained.port}:{contained.inside}"]
    for device in contained.devices:
        words += ["--device", device]
    if contained.devices:
        words += _groups(engine, contained.devices)
    for mount in contained.mounts:
        words += ["--volume", f"{mount.source}:{mount.target}:{'rw' if mount.writable else 'ro'}"]
    for name, value in contained.env.items():
        words += ["--env", f"{name}={value}"]
    return (*words, contained.image, *contained.words)


def _groups(engine: str, devices: Sequence[str]) -> list[str]:
    """Without root, the caller's groups stay those of the container: who may open the devices here may there.
    As root, and with a daemon, the groups of the devices are named."""
    if engine == PODMAN and not is_root():
        return ["--group-add", "keep-groups"]
    nodes = [node for name in devices for node in (Path(name), *Path(name).glob("*")) if node.exists()]
    gids = sorted({node.stat().st_gid for node in nodes if not node.is_dir()} - {0})
    return [word for gid in gids for word in ("--group-add", str(gid))]


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def client(engine: str) -> tuple[str, ...]:
    """The words that each command of an engine begins with."""
    return (engine, *base_words()) if engine == PODMAN else (engine,)


def load(engine: str, archive: Path, scratch: Path) -> str:
    """Have the image of an archive in the engine's storage; what the engine calls it there.

    It is known by its digest: under its name and tag the engine may have another. What must be written for
    the engine lies in `scratch` meanwhile. Raises SandboxError.
    """
    names = digests(archive)
    if loaded := _loaded_image(engine, names):
        return loaded
    completed = process.run([*client(engine), "load", "--input", archive], timeout=_LOAD_SECONDS)
    if loaded := _loaded_image(engine, names):
        return loaded
    if engine != PODMAN:
        completed = _load_as_dockers_own(archive, scratch)
        if loaded := _loaded_image(engine, names):
            return loaded
    raise SandboxError(
        f"{engine} could not load the image {archive.name}",
        cause=last_line(completed.stderr)
        or f"it ended with status {completed.returncode}, and has no image {names[0]}",
        next_step=f"run `{engine} load --input {archive}` and read what it says, or use --in host",
        detail=completed.stderr.strip()[-2000:],
    )


def _load_as_dockers_own(archive: Path, scratch: Path) -> process.Finished:
    """What docker before 25 reads, which knows no OCI layout, and no zstd before 23."""
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        try:
            _lay_out_for_docker(archive, Path(folder))
        except _UNREADABLE as error:
            raise _not_unpacked(archive, scratch, error) from error
        return process.run(["/bin/sh", "-c", _PIPED, "sh", folder], timeout=_LOAD_SECONDS)


def _not_unpacked(archive: Path, scratch: Path, error: Exception) -> SandboxError:
    return SandboxError(
        f"the layers of the image {archive.name} could not be unpacked for docker",
        cause=str(error) or type(error).__name__,
        next_step=f"rocwright store verify; see that {scratch} has room; or leave --in out",
    )


_PIPED = 'tar -C "$1" -c . | docker load'


def _lay_out_for_docker(archive: Path, folder: Path) -> None:
    """Write an OCI archive's settings and layers, the layers unpacked, as docker's own archives have them.

    Source: the image specification of Docker 1.2, moby/moby image/spec/v1.2.md.
    """
    config, manifest = digests(archive)
    meter = Meter(LAYERS, archive.stat().st_size)
    with tarfile.open(archive, "r:") as layout:
        layers = _json(layout, _blob(manifest))["layers"]
        names = [f"{number}.tar" for number in range(len(layers))]
        for name, layer in zip(names, layers, strict=True):
            with _member(layout, _blob(str(layer["digest"]))) as packed, (folder / name).open("wb") as plain:
                plain.writelines(Unpacked(packed, meter).pieces())
        with _member(layout, _blob(config)) as settings:
            (folder / "config.json").write_bytes(settings.read(_MOST_JSON))
    entries = [{"Config": "config.json", "RepoTags": None, "Layers": names}]
    (folder / "manifest.json").write_text(json.dumps(entries))


def _member(layout: tarfile.TarFile, name: str) -> IO[bytes]:
    file = layout.extractfile(name)
    if file is None:
        raise ValueError(f"{name} is not a file")
    return file


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/', 1)}"


def digests(archive: Path) -> tuple[str, ...]:
    """The digests that engines take as the name of an archive's image: of its settings, of its manifest.

    Raises SandboxError for what is not an OCI archive of one image.
    """
    try:
        with tarfile.open(archive, "r:") as layout:
            manifest = str(_json(layout, "index.json")["manifests"][0]["digest"])
            config = str(_json(layout, _blob(manifest))["config"]["digest"])
    except (tarfile.TarError, OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise SandboxError(
            f"{archive.name} is no archive of an image",
            cause=str(error) or type(error).__name__,
            next_step="rocwright store verify, then rocwright build",
        ) from error
    return config, manifest


def _json(layout: tarfile.TarFile, name: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(_member(layout, name).read(_MOST_JSON))
    return parsed


def _loaded_image(engine: str, names: Sequence[str]) -> str:
    for name in names:
        if process.run([*client(engine), "image", "inspect", name], timeout=_ASK_SECONDS).ok:
            return name
    return ""


def runs(engine: str, name: str) -> bool:
    """Whether the container is there and runs."""
    form = "{{.State.Running}}"
    completed = process.run(
        [*client(engine), "container", "inspect", "--format", form, name], timeout=_ASK_SECONDS
    )
    return completed.ok and completed.stdout.strip() == "true"


def end(engine: str, name: str, seconds: int) -> None:
    """Stop a container within so many seconds, or kill it, and remove it. Raises SandboxError."""
    process.run([*client(engine), "stop", "--time", str(seconds), name], timeout=_ASK_SECONDS + seconds)
    process.run([*client(engine), "rm", "--force", name], timeout=_ASK_SECONDS)
    if runs(engine, name):
        raise SandboxError(
            f"the container {name} still runs",
            cause=f"{engine} could not stop it",
            next_step=f"{engine} kill {name}",
        )


def environment(mark: str) -> dict[str, str]:
    """What the engine's client gets of this process's environment."""
    return host_environment(mark)
