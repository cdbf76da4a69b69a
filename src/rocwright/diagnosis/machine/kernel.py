"""What the kernel was told and tells: its modules' settings, its log, modules built apart, Secure Boot."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocwright.diagnosis.facts import HostFacts
from rocwright.diagnosis.machine.model import DkmsModule, KernelLog
from rocwright.diagnosis.machine.tree import Tree

DEVICE = "/dev/kmsg"
MODPROBE = "/etc/modprobe.d"

# Characters at the end of the log of a module that did not build.
MOST_FAILED = 64 * 1024

_SETTING = re.compile(r"(?:^|(?<=\s))([a-z0-9_-]+\.[a-z0-9_-]+)=(\S+)")
_OPTION = re.compile(r"([A-Za-z0-9_]+)=(\S+)")


def read_settings_of_modules(tree: Tree, facts: HostFacts) -> dict[str, str]:
    """What is set of the card's driver, and of all modules with a setting that the catalog watches.

    The command line decides over modprobe's files, as in the kernel, and what comes last over what is before.
    """
    watched = {facts.driver.module, *(parameter.name.partition(".")[0] for parameter in facts.parameter)}
    commands = _SETTING.findall(tree.text("/proc/cmdline") or "")
    # in names of the kernel's modules and settings "-" and "_" are one
    settings = dict(_modprobe(tree)) | {name.replace("-", "_"): value for name, value in commands}
    return {name: value for name, value in settings.items() if name.partition(".")[0] in watched}


def _modprobe(tree: Tree) -> Iterator[tuple[str, str]]:
    """Lines `options MODULE name=value` (modprobe.d(5))."""
    for file in tree.names(MODPROBE):
        if not file.endswith(".conf"):
            continue
        for line in (tree.text(f"{MODPROBE}/{file}") or "").splitlines():
            words = line.split()
            if len(words) > 2 and words[0] == "options":
                for word in words[2:]:
                    if option := _OPTION.fullmatch(word):
                        yield f"{words[1].replace('-', '_')}.{option[1]}", option[2]


def read_kernel_log(tree: Tree, facts: HostFacts) -> KernelLog | None:
    """From the kernel itself on this machine, else the first of the files that has one; None without any."""
    empty_log: KernelLog | None = None
    for file in (*((DEVICE,) if tree.live else ()), *facts.kernel_log.files):
        text = tree.log(file)
        if text:
            last = text.rfind(facts.kernel_log.begins)
            begin = text.rfind("\n", 0, last) + 1 if last > 0 else 0
            return KernelLog(file=file, text=text[begin:])
        if text is not None:
            empty_log = empty_log or KernelLog(file=file)
    return empty_log


def read_dkms(tree: Tree, facts: HostFacts) -> tuple[DkmsModule, ...]:
    """Each version of the watched modules: `MODULE/VERSION/KERNEL/ARCH/module` is one that was built, and
    `build/make.log` what an attempt that failed left behind (dkms(8))."""
    return tuple(_dkms(tree, facts.dkms.folder, module) for module in _versions(tree, facts))


def _versions(tree: Tree, facts: HostFacts) -> Iterator[tuple[str, str]]:
    for module in facts.dkms.modules:
        for name in tree.names(f"{facts.dkms.folder}/{module}"):
            # a link "kernel-..." beside the versions points to what is in use
            if not name.startswith("kernel-"):
                yield module, name


def _dkms(tree: Tree, folder: str, pair: tuple[str, str]) -> DkmsModule:
    module, version = pair
    place = f"{folder}/{module}/{version}"
    kernels = [
        kernel
        for kernel in tree.names(place)
        if kernel not in ("build", "source")
        and any(tree.names(f"{place}/{kernel}/{arch}/module") for arch in tree.names(f"{place}/{kernel}"))
    ]
    log = f"{place}/build/make.log"
    text = tree.log(log) or ""
    return DkmsModule(
        module=module,
        version=version,
        kernels=tuple(kernels),
        failed_log=log if text else "",
        failed_text=text[-MOST_FAILED:],
    )


def read_secure_boot(tree: Tree, facts: HostFacts) -> bool | None:
    """Whether it is on; None where the machine's firmware does not tell (no UEFI, or a container)."""
    content = tree.raw(facts.secure_boot.file)
    return content[-1] == 1 if content else None
