"""Which system calls a job may not make (seccomp.toml), in the form that each engine takes."""

from __future__ import annotations

import errno
import json
import tempfile
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rocbase.errors import SandboxError

DATA = Path(__file__).with_suffix(".toml")

PROFILES = (Path("/etc/containers/seccomp.json"), Path("/usr/share/containers/seccomp.json"))
"""Where podman and buildah have their own profile, the administrator's first.

Source: containers-common, seccomp.json(5).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentRule:
    """Only calls whose (argument & mask) is `value`; `others` is what a list of the allowed lets through."""

    argument: int
    mask: int
    value: int
    others: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """System calls that are refused with an error number, everywhere or only `where`."""

    names: tuple[str, ...]
    errno: str
    where: ArgumentRule | None


@cache
def refused() -> tuple[Refused, ...]:
    """What the table says."""
    found = []
    for entry in tomllib.loads(DATA.read_text())["refuse"]:
        where = entry.get("where")
        found.append(
            Refused(
                names=tuple(entry["names"]),
                errno=entry["errno"],
                where=where and ArgumentRule(**where | {"others": tuple(where["others"])}),
            )
        )
    return tuple(found)


def names() -> tuple[str, ...]:
    """The calls that are refused whatever their arguments, by an error that means a refusal."""
    return tuple(
        name for one in refused() if one.where is None and one.errno == "EPERM" for name in one.names
    )


MOUNTING = (
    *("mount", "umount", "umount2", "move_mount", "open_tree", "open_tree_attr"),
    *("fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"),
)
"""The calls that mount: a job that makes a root file system makes them in a namespace of its own."""


@cache
def program(allowed: Collection[str] = ()) -> bytes:
    """A filter as the kernel takes it, less the calls `allowed`. Raises SandboxError without libseccomp."""
    try:
        import pyseccomp
    except (RuntimeError, OSError) as error:
        raise SandboxError(
            "libseccomp is not installed",
            cause="without it system calls of steps cannot be filtered",
            next_step="install it (on Debian and Ubuntu: apt-get install libseccomp2), or choose podman",
        ) from error
    made = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    # programs of 32 bits get the same filter, where the kernel would end them otherwise
    for arch in _ALSO.get(pyseccomp.system_arch(), ()):
        made.add_arch(arch)
    for one in refused():
        where = one.where
        arguments = (
            [pyseccomp.Arg(where.argument, pyseccomp.MASKED_EQ, where.mask, where.value)] if where else []
        )
        for name in set(one.names).difference(allowed):
            # one that this libseccomp does not know is newer than it, or of another architecture
            if pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name) != _UNKNOWN:
                made.add_rule(pyseccomp.ERRNO(getattr(errno, one.errno)), name, *arguments)
    with tempfile.TemporaryFile() as file:
        made.export_bpf(file)
        file.seek(0)
        return file.read()


_UNKNOWN = -1
_X86_64, _AARCH64 = 0xC000003E, 0xC00000B7
_ALSO = {_X86_64: (0x40000003, 0x4000003E), _AARCH64: (0x40000028,)}
"""The architectures that a kernel of the first runs too. Source: Linux, include/uapi/linux/audit.h."""


def profile() -> str:
    """The profile of podman and buildah, less what is refused here; where they have none, what is refused
    here alone."""
    own = next((path for path in PROFILES if path.is_file()), None)
    if own is None:
        rules = [_as_rule(one) for one in refused()]
        return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules})
    found = json.loads(own.read_text())
    listed = [one for one in refused() if one.where is None or one.where.others]
    gone = {name for one in listed for name in one.names}
    rules = [
        rule | {"names": [each for each in rule["names"] if each not in gone]} for rule in found["syscalls"]
    ]
    added = [rule for one in listed for rule in _as_listed(one)]
    return json.dumps(found | {"syscalls": [rule for rule in rules if rule["names"]] + added})


def _as_rule(one: Refused) -> dict[str, Any]:
    rule: dict[str, Any] = {"names": list(one.names), "action": "SCMP_ACT_ERRNO"}
    rule |= {"errno": one.errno, "errnoRet": getattr(errno, one.errno)}
    return rule | ({"args": [_compared(one.where, one.where.value)]} if one.where else {})


def _as_listed(one: Refused) -> list[dict[str, Any]]:
    if one.where is None:
        return [_as_rule(one)]
    return [
        {"names": list(one.names), "action": "SCMP_ACT_ALLOW", "args": [_compared(one.where, value)]}
        for value in one.where.others
    ]


def _compared(where: ArgumentRule, value: int) -> dict[str, Any]:
    return {"index": where.argument, "value": where.mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}
