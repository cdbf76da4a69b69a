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

# Where podman and buildah have their own profile, the administrator's first.
#
# Source: containers-common, seccomp.json(5).
PROFILES = (Path("/etc/containers/seccomp.json"), Path("/usr/share/containers/seccomp.json"))


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
    rules = []
    for entry in tomllib.loads(DATA.read_text())["refuse"]:
        condition = entry.get("where")
        rules.append(
            Refused(
                names=tuple(entry["names"]),
                errno=entry["errno"],
                where=condition and ArgumentRule(**condition | {"others": tuple(condition["others"])}),
            )
        )
    return tuple(rules)


def names() -> tuple[str, ...]:
    """The calls that are refused whatever their arguments, by an error that means a refusal."""
    return tuple(
        name
        for refusal in refused()
        if refusal.where is None and refusal.errno == "EPERM"
        for name in refusal.names
    )


# The calls that mount: a job that makes a root file system makes them in a namespace of its own.
MOUNTING = (
    *("mount", "umount", "umount2", "move_mount", "open_tree", "open_tree_attr"),
    *("fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"),
)


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
    syscall_filter = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    # programs of 32 bits get the same filter, where the kernel would end them otherwise
    for arch in _ALSO.get(pyseccomp.system_arch(), ()):
        syscall_filter.add_arch(arch)
    for refusal in refused():
        condition = refusal.where
        arguments = (
            [pyseccomp.Arg(condition.argument, pyseccomp.MASKED_EQ, condition.mask, condition.value)]
            if condition
            else []
        )
        for name in set(refusal.names).difference(allowed):
            # one that this libseccomp does not know is newer than it, or of another architecture
            if pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name) != _UNKNOWN:
                syscall_filter.add_rule(pyseccomp.ERRNO(getattr(errno, refusal.errno)), name, *arguments)
    with tempfile.TemporaryFile() as file:
        syscall_filter.export_bpf(file)
        file.seek(0)
        return file.read()


_UNKNOWN = -1
_X86_64, _AARCH64 = 0xC000003E, 0xC00000B7
# The architectures that a kernel of the first runs too. Source: Linux, include/uapi/linux/audit.h.
_ALSO = {_X86_64: (0x40000003, 0x4000003E), _AARCH64: (0x40000028,)}


def profile() -> str:
    """The profile of podman and buildah, less what is refused here; where they have none, what is refused
    here alone."""
    own = next((path for path in PROFILES if path.is_file()), None)
    if own is None:
        rules = [_as_rule(refusal) for refusal in refused()]
        return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules})
    document = json.loads(own.read_text())
    listed = [refusal for refusal in refused() if refusal.where is None or refusal.where.others]
    dropped = {name for refusal in listed for name in refusal.names}
    rules = [
        rule | {"names": [name for name in rule["names"] if name not in dropped]}
        for rule in document["syscalls"]
    ]
    added = [rule for refusal in listed for rule in _as_listed(refusal)]
    return json.dumps(document | {"syscalls": [rule for rule in rules if rule["names"]] + added})


def _as_rule(refusal: Refused) -> dict[str, Any]:
    rule: dict[str, Any] = {"names": list(refusal.names), "action": "SCMP_ACT_ERRNO"}
    rule |= {"errno": refusal.errno, "errnoRet": getattr(errno, refusal.errno)}
    return rule | ({"args": [_compared(refusal.where, refusal.where.value)]} if refusal.where else {})


def _as_listed(refusal: Refused) -> list[dict[str, Any]]:
    if refusal.where is None:
        return [_as_rule(refusal)]
    return [
        {"names": list(refusal.names), "action": "SCMP_ACT_ALLOW", "args": [_compared(refusal.where, value)]}
        for value in refusal.where.others
    ]


def _compared(condition: ArgumentRule, value: int) -> dict[str, Any]:
    return {
        "index": condition.argument,
        "value": condition.mask,
        "valueTwo": value,
        "op": "SCMP_CMP_MASKED_EQ",
    }
