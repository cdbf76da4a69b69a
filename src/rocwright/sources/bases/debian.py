"""A Debian root file system from an exact set of packages, made by mmdebstrap without a network."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

from rocbase.errors import CheckError, InputError, OutOfDiskError, SandboxError
from rocbase.files.atomic import sha256_bytes, sha256_file
from rocbase.processes import run as process
from rocwright.model.step_environment import EPOCH
from rocwright.model.steps import BaseAction
from rocwright.sources.bases.namespace import PLACE, TOOLS, give, programs, sandboxed
from rocwright.sources.bases.roots import remove_tree
from rocwright.sources.bases.tools import PLAIN_ENVIRONMENT, Tools
from rocwright.store.packed import packing


def make_root(
    action: BaseAction,
    packages: Sequence[tuple[str, Path]],
    target: Path,
    scratch: Path,
    tools: Tools,
    on_line: Callable[[str], None],
) -> str:
    """Write the root file system of `packages` ((file name, path) of each .deb) to `target`, a .tar.zst.

    Nothing but these packages is used; the same set gives the same tar, whose hex sha256 this returns.
    Raises InputError without the tools root, SandboxError where it may not work, CheckError where it fails.
    """
    work = scratch / "work"
    repository, temporary = work / "packages", work / "temporary"
    repository.mkdir(parents=True)
    temporary.mkdir()
    for filename, path in packages:
        # a copy: what installs them may write to whatever it reads
        shutil.copyfile(path, repository / filename)
    names = write_index(tools, repository, action.suite)
    on_line(f"base: {len(names)} packages, no network")
    give(scratch, work, temporary)
    temporary.chmod(0o755)
    log: list[str] = []

    def note(line: str) -> None:
        log.append(line)
        on_line(line)

    try:
        with packing(target, threads=os.cpu_count() or 1) as packed:
            code = process.pipe(_command(action, scratch, names, tools), packed.write, note)
    finally:
        remove_tree(temporary)
    if code != 0:
        raise _explain(log)
    shutil.rmtree(repository)
    return packed.content


_MAKER = "mmdebstrap"
# Where the scratch folder is seen by mmdebstrap: it has a /tmp of its own.
_INSIDE = "/work"


def _command(action: BaseAction, scratch: Path, names: Sequence[str], tools: Tools) -> list[str]:
    mounts = [*programs(), "--bind", str(PLACE / "work"), _INSIDE, "--tmpfs", "/tmp"]  # noqa: S108
    environment = ENVIRONMENT | {"HOME": f"{_INSIDE}/temporary", "TMPDIR": f"{_INSIDE}/temporary"}
    maker, *words = mmdebstrap_words(action, f"{_INSIDE}/packages", ",".join(names))
    # the lines of dpkg tell how far it is
    words = [maker, "--verbose", *words]
    return sandboxed(scratch, words, mounts, environment, binds={TOOLS: tools.root}, mounting=True)


# Flags of unshare: no network; and whatever ends us ends it, with all that it mounted.
ALONE = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")

# The environment of mmdebstrap, but for its folders.
ENVIRONMENT = PLAIN_ENVIRONMENT | {"SOURCE_DATE_EPOCH": str(EPOCH)}


def mmdebstrap_words(action: BaseAction, repository: str, names: str) -> list[str]:
    """mmdebstrap's command for the packages `names` (with commas) of the flat repository in that folder; it
    writes a tar to its standard output."""
    return [
        _MAKER,
        "--mode=root",
        "--variant=essential",
        "--format=tar",
        f"--architectures={action.architecture}",
        f"--include={names}",
        # device nodes are the sandbox's; without them any user may unpack the archive
        "--skip=output/dev",
        "--skip=check/empty",
        # the folder of the packages, its name and its resolver are this machine's: no word of them stays
        '--customize-hook=: > "$1/etc/apt/sources.list"',
        '--customize-hook=chroot "$1" rm -f /etc/hostname /etc/resolv.conf',
        *(
            f'--customize-hook=chroot "$1" /bin/sh -eu -c {shlex.quote(command)}'
            for command in action.customize
        ),
        '--aptopt=APT::Install-Recommends "false"',
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        action.suite,
        "-",
        f"deb [trusted=yes] copy://{repository} ./",
    ]


_FIELDS = 'for file in *.deb; do dpkg-deb --field "$file" || exit; echo "Filename: ./$file"; echo; done'


def write_index(tools: Tools, repository: Path, suite: str) -> list[str]:
    """Write `Packages` and `Release` of a flat repository; gives the names of its packages, sorted.

    Raises InputError for a file that is no package.
    """
    shown = tools.run(["sh", "-c", _FIELDS], files=repository)
    if not shown.ok:
        raise InputError(
            "a file of the lock is not a Debian package",
            cause=shown.stderr.strip()[:500],
            next_step="run rocwright lock again",
        )
    stanzas = [_with_digest(stanza, repository) for stanza in shown.stdout.split("\n\n") if stanza.strip()]
    index = "\n".join(stanzas).encode()
    (repository / "Packages").write_bytes(index)
    # mmdebstrap takes the essential packages from the suite of this name only
    (repository / "Release").write_text(
        f"Suite: {suite}\nCodename: {suite}\nDate: {format_datetime(datetime.fromtimestamp(EPOCH, UTC))}\n"
        f"SHA256:\n {sha256_bytes(index)} {len(index)} Packages\n"
    )
    return sorted(stanza.split("Package: ", 1)[1].split("\n", 1)[0] for stanza in stanzas)


def _with_digest(stanza: str, repository: Path) -> str:
    path = repository / stanza.rpartition("Filename: ./")[2].strip()
    return f"{stanza.strip()}\nSize: {path.stat().st_size}\nSHA256: {sha256_file(path)}\n"


def _explain(log: Sequence[str]) -> CheckError | SandboxError | OutOfDiskError:
    starts = ("E:", "unshare:", "newuidmap:", "bwrap:")
    errors = [line for line in log if line.startswith(starts) or "dpkg: error" in line]
    text = "\n".join(log)
    cause = errors[0].removeprefix("E:").strip() if errors else "see the log"
    if "No space left on device" in text:
        return OutOfDiskError(
            "the root file system did not fit on the disk",
            cause=cause,
            next_step="free some room, or set ROCWRIGHT_HOME to a larger disk",
        )
    if any(
        word in text
        for word in ("unprivileged user namespaces", "newuidmap", "uid_map", "must be root", "subuid")
    ):
        return SandboxError(
            "mmdebstrap may not make a root file system as this user",
            cause=cause,
            next_step="rocwright doctor shows the command that gives you ranges of user and group ids",
        )
    return CheckError(
        "the root file system could not be made from the packages of the lock",
        cause=cause,
        detail="\n".join(errors[:20]),
        next_step="rocwright logs shows all; rocwright lock takes a newer set",
    )
