"""The skeleton of a root: mount points and symlinks in a folder of a few inodes, and the mounts that fill it.

No engine copies or imports a root. The skeleton is small, each sandbox has its own, and the mounts are the
same for all engines.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from rocbase.errors import InputError, SandboxError
from rocwright.sandbox.engine import HOSTNAME, USER
from rocwright.sandbox.model import Mount, SandboxJob
from rocwright.sandbox.untrusted import Untrusted

# Top-level folders that are never the root's.
OWN = frozenset({"proc", "sys", "dev", "run", "tmp"})

# The folders that a job may write to without being given them; some engines copy the mode seen here.
SCRATCH = ("tmp", "run")

# All that is shown of the host's own root: programs and their settings, nobody's data.
SYSTEM = frozenset({"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc"})


# More steps than any honest path takes.
_LINKS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class MountLayout:
    """A skeleton on disk, and the mounts over it, parents before children."""

    skeleton: Path
    mounts: tuple[Mount, ...]


def make_layout(job: SandboxJob, folder: Path) -> MountLayout:
    """Write the skeleton for `job` to `folder`/root.

    Raises InputError for a root, mount or device that is not there, or a mount where none can be.
    """
    _check(job)
    skeleton = folder / "root"
    skeleton.mkdir()
    for name in sorted(OWN):
        (skeleton / name).mkdir()
    settled = [_settled(job.root, mount) for mount in (*_settings(job, folder), *job.mounts)]
    extra = list({mount.target: mount for mount in settled}.values())
    targets = [PurePosixPath(mount.target) for mount in extra]
    base = list(_cover(job.root, skeleton, PurePosixPath("/"), targets))
    ordered = sorted(extra, key=lambda mount: len(PurePosixPath(mount.target).parts))
    _add_points(skeleton, job.root, base, ordered)
    for directory, folders, _ in os.walk(skeleton):
        for path in (directory, *(f"{directory}/{name}" for name in folders)):
            if not Path(path).is_symlink():
                Path(path).chmod(0o755)
    for name in SCRATCH:
        (skeleton / name).chmod(0o1777)
    hidden = {mount.target for mount in ordered}
    return MountLayout(
        skeleton=skeleton, mounts=(*(mount for mount in base if mount.target not in hidden), *ordered)
    )


def _check(job: SandboxJob) -> None:
    if not job.root.is_absolute() or not job.root.is_dir():
        raise InputError(
            f"{job.root} is not a root folder",
            cause="it does not exist, is not a folder, or its path is not absolute",
            next_step="name an existing folder by its absolute path",
        )
    for path in (*(mount.source for mount in job.mounts), *map(Path, job.devices)):
        if not path.is_absolute() or not path.exists():
            raise InputError(
                f"{path} cannot be mounted",
                cause="it does not exist, or its path is not absolute",
                next_step="use the absolute path of an existing file or folder",
            )
    for mount in job.mounts:
        parts = PurePosixPath(mount.target).parts
        if len(parts) < 2 or parts[0] != "/" or ".." in parts or parts[1] in {"proc", "sys", "dev"}:
            raise InputError(
                f"nothing can be mounted at {mount.target}",
                cause="the target is relative, contains .., or is a folder that the sandbox makes itself",
                next_step="use an absolute path other than /, /proc, /sys and /dev",
            )


def _cover(
    root: Path, skeleton: Path, folder: PurePosixPath, targets: list[PurePosixPath]
) -> Iterator[Mount]:
    """Mount each entry of a root's folder whole; go into one only where a mount point is missing in it."""
    for entry in sorted(os.scandir(root / folder.relative_to("/")), key=lambda entry: entry.name):
        target = folder / entry.name
        point = skeleton / target.relative_to("/")
        top = folder == PurePosixPath("/")
        if top and (entry.name in OWN or (root.samefile("/") and entry.name not in SYSTEM)):
            continue
        if entry.is_symlink():
            point.symlink_to(Path(entry.path).readlink())
        elif entry.is_dir():
            point.mkdir()
            if any(_lacks(root, target, mount_point) for mount_point in targets):
                yield from _cover(root, skeleton, target, targets)
            else:
                yield Mount(source=Path(entry.path), target=str(target))
        elif entry.is_file() and not top:
            point.touch()
            yield Mount(source=Path(entry.path), target=str(target))


def _lacks(root: Path, folder: PurePosixPath, mount_point: PurePosixPath) -> bool:
    return mount_point.is_relative_to(folder) and not os.path.lexists(root / mount_point.relative_to("/"))


def _add_points(skeleton: Path, root: Path, base: list[Mount], extra: list[Mount]) -> None:
    """Make the mount points that no mount of the root brings."""
    covered = [PurePosixPath(mount.target) for mount in base]
    for mount in extra:
        target = PurePosixPath(mount.target)
        own = target.parts[1] in OWN
        if not own and not any(target.is_relative_to(place) for place in covered):
            _add_point(skeleton / target.relative_to("/"), mount.source)
        covered.append(target)


def _add_point(point: Path, source: Path) -> None:
    if source.is_dir():
        point.mkdir(parents=True, exist_ok=True)
    else:
        point.parent.mkdir(parents=True, exist_ok=True)
        point.touch()


def _settings(job: SandboxJob, folder: Path) -> Iterator[Mount]:
    """Files of /etc that are the sandbox's: its names, user and group 1000 where the root lacks them.

    Given to all engines, so that none writes its own.
    """
    if not (job.root / "etc").is_dir():
        return
    texts = {
        "hostname": f"{HOSTNAME}\n",
        "hosts": f"127.0.0.1 localhost {HOSTNAME}\n::1 localhost {HOSTNAME}\n",
    }
    texts |= _accounts(job.root)
    for name, text in texts.items():
        ours = folder / name
        ours.write_text(text)
        ours.chmod(0o644)
        yield Mount(source=ours, target=f"/etc/{name}")
    resolver = Path("/etc/resolv.conf")
    if job.network and resolver.exists():
        yield Mount(source=resolver.resolve(), target="/etc/resolv.conf")


def _accounts(root: Path) -> dict[str, str]:
    added = {"passwd": f"builder:x:{USER}:{USER}:builder:/tmp:/bin/sh", "group": f"builder:x:{USER}:"}
    texts = {}
    for name, line in added.items():
        have: list[str] = []
        # a root may be of an image of anybody's: a link in it would show a file of the host to the job
        with contextlib.suppress(FileNotFoundError, SandboxError):
            have = Untrusted(root, "the root").read_text(f"etc/{name}").splitlines()
        if not any(_number(account) == USER for account in have):
            texts[name] = "\n".join([*have, line, ""])
    return texts


def _number(line: str) -> int | None:
    fields = line.split(":")
    return int(fields[2]) if len(fields) > 2 and re.fullmatch(r"[0-9]{1,10}", fields[2]) else None


def _settled(root: Path, mount: Mount) -> Mount:
    """The mount at the place that its target means in the root, whose symlinks lead on within the root."""
    remaining, place = list(PurePosixPath(mount.target).parts[1:]), PurePosixPath("/")
    for _ in range(_LINKS):
        if not remaining:
            return replace(mount, target=str(place))
        part = remaining.pop(0)
        link = root / (place / part).relative_to("/")
        if part == "..":
            place = place.parent
        elif place / part != place and link.is_symlink():
            to = PurePosixPath(link.readlink())
            remaining = [segment for segment in to.parts if segment != "/"] + remaining
            place = PurePosixPath("/") if to.is_absolute() else place
        else:
            place = place / part
    raise InputError(
        f"nothing can be mounted at {mount.target}",
        cause="its symlinks form a loop",
        next_step="repair the symlinks in the root, or use another target",
    )
