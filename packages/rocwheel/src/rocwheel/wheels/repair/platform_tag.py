"""The platform tags of a set of libraries: auditwheel's policies judge their symbol versions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from rocwheel.wheels.needed import Linkage

_ARCHITECTURES = {62: "x86_64", 183: "aarch64"}
"""e_machine -> as platform tags name it."""


def platform_tag(linkages: Iterable[Linkage], *, outside: bool) -> str:
    """Such as manylinux_2_34_x86_64, with its older name where it has one; "" for a machine not known here.

    With `outside` (a library must come from elsewhere) it is linux_x86_64: no policy holds.
    """
    from auditwheel.architecture import Architecture
    from auditwheel.libc import Libc
    from auditwheel.policy import WheelPolicies

    required: defaultdict[str, set[str]] = defaultdict(set)
    machine = 0
    for linkage in linkages:
        machine = machine or linkage.machine
        for library, versions in linkage.versions.items():
            required[library].update(versions)
    if machine not in _ARCHITECTURES:
        return ""
    architecture = _ARCHITECTURES[machine]
    if outside:
        return f"linux_{architecture}"
    policies = WheelPolicies(libc=Libc.GLIBC, arch=Architecture(architecture))
    policy = policies.versioned_symbols_policy(required)
    return ".".join((policy.name, *policy.aliases))
