"""Root file systems: made by a script from exact packages, or in a stage from an image and packages."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from rocwright.catalog.base import PackageManager, filled
from rocwright.catalog.load import lookup
from rocwright.export.model import ExportFile, ExportSubject, Files, lines_of, variable
from rocwright.export.quote import comment, shell
from rocwright.export.templates import template
from rocwright.model.step_environment import EPOCH, PACKAGES
from rocwright.model.steps import BaseAction, DebianOrigin, FilePin, ImageOrigin, PackageOrigin, Step
from rocwright.plan.resolve.model import LockedRoot
from rocwright.sources.bases.debian import ALONE, ENVIRONMENT, mmdebstrap_words

# Where the scripts of an export lie in a stage.
INSIDE = "/rocwright"

_REPOSITORY = "@REPOSITORY@"
_NAMES = "@NAMES@"


def root_files(subject: ExportSubject, roots: Sequence[LockedRoot]) -> Files:
    """The package lists of these roots, and the scripts that make the roots of them."""
    files: Files = {}
    for root in roots:
        packages = [pin for pin in root.packages if not isinstance(pin.origin, ImageOrigin)]
        if packages:
            files[f"base/{root.role}.sha256"] = lines_of(f"{pin.sha256}  {pin.filename}" for pin in packages)
            files[f"base/{root.role}.packages"] = lines_of(_package_spec(pin) for pin in packages)
        if root.image:
            manager = lookup("package manager", root.manager, subject.catalog.managers)
            files[f"base/{root.role}-root.sh"] = _stage_script(root, manager)
            if manager.settings:
                settings = manager.settings.replace("{snapshot}", manager.snapshot_of(root.suite))
                files[f"base/{root.role}.conf"] = ExportFile(settings.lstrip("\n").encode())
    if from_packages(roots):
        files["base/make-root.sh"] = _make_root(subject, from_packages(roots))
    return files


def from_packages(roots: Iterable[LockedRoot]) -> list[LockedRoot]:
    """The roots that are made from packages alone, outside of the engine."""
    return [root for root in roots if not root.image]


def _package_spec(pin: FilePin) -> str:
    match pin.origin:
        case DebianOrigin():
            return f"{pin.origin.package}={pin.origin.version}"
        case PackageOrigin():
            return pin.origin.package
        case _:
            return pin.filename


def _action(subject: ExportSubject, role: str) -> BaseAction:
    step: Step = next(candidate for candidate in subject.plan.steps if candidate.name == f"root/{role}")
    assert isinstance(step.action, BaseAction)
    return step.action


def _make_root(subject: ExportSubject, roots: Sequence[LockedRoot]) -> ExportFile:
    cases = []
    for root in roots:
        name = variable("packages", root.role)
        cases.append(
            f"    {root.role}) suite={shell(root.suite)} architecture={shell(root.architecture)} "
            f"variable={name} given=${{{name}:-}} pending={shell(root.pending or 'base files are gone')} ;;"
        )
    # the roots of a lock differ in their packages and in nothing else
    action = _action(subject, roots[0].role).model_copy(update={"suite": "@SUITE@", "architecture": "@ARCH@"})
    words = mmdebstrap_words(action, _REPOSITORY, _NAMES)
    stands = {
        _REPOSITORY: '"$work"/repository',
        _NAMES: '"${names%,}"',
        "@SUITE@": '"$suite"',
        "@ARCH@": '"$architecture"',
    }
    text = template("make-root.sh").replace("@CASES@", "\n".join(cases))
    text = text.replace(
        "@ENVIRONMENT@", " ".join(f"{name}={shell(text)}" for name, text in ENVIRONMENT.items())
    )
    text = text.replace("@ALONE@", shlex.join(ALONE)).replace("@EPOCH@", str(EPOCH))
    text = text.replace("@MMDEBSTRAP@", " ".join(_standing(word, stands) for word in words))
    return ExportFile(text.encode(), executable=True)


def _standing(word: str, stands: dict[str, str]) -> str:
    """A word of a command as sh takes it, with variables where names stand for them."""
    for name, text in stands.items():
        first, match, suffix = word.partition(name)
        if match:
            return (shell(first) if first else "") + text + (shell(suffix) if suffix else "")
    return shell(word)


def _stage_script(root: LockedRoot, manager: PackageManager) -> ExportFile:
    """Run in the image: exactly the packages of the lock, each checked; what is no part of the root goes."""
    name = variable("packages", root.role)
    snapshot = manager.snapshot_of(root.suite)
    lines = [
        "#!/bin/sh",
        f"# {comment(root.base)} {comment(root.suite)}: the packages to {root.role}, put into its image.",
        "set -eu",
        *(f"export {key}={shell(value)}" for key, value in manager.env.items()),
        f"export SOURCE_DATE_EPOCH={EPOCH}",
        f"mkdir -p {PACKAGES}",
    ]
    if root.pending:
        lines += [
            f'if [ -z "${{{name}:-}}" ]; then',
            f"    echo {shell(f'pending: {root.pending}')} >&2",
            f"    echo \"  give --build-arg {name}='...', or export again after an online lock\" >&2",
            "    exit 2",
            "fi",
            "# shellcheck disable=SC2086",
            f"set -- ${name}",
        ]
    elif root.packages:
        lines += ["# shellcheck disable=SC2046", f"set -- $(cat {INSIDE}/base/{root.role}.packages)"]
    if snapshot:
        lines.append(_command(filled(manager.repository, snapshot=snapshot)))
    lines.append(_command(manager.refresh))
    fetch = manager.download if root.pending else manager.fetch
    lines.append(_command(filled(fetch, [_NAMES], folder=PACKAGES)).replace(_NAMES, '"$@"'))
    if not root.pending:
        lines.append(f"(cd {PACKAGES} && sha256sum --check --quiet {INSIDE}/base/{root.role}.sha256)")
    lines.append(_command(filled(manager.install, folder=PACKAGES)))
    lines += [f"rm -rf -- {pattern}" for pattern in manager.forget]
    lines.append(f"rm -rf {PACKAGES} {INSIDE}/base")
    if not root.pending and not any(isinstance(pin.origin, PackageOrigin) for pin in root.packages):
        lines = [*lines[:3], ": the image has all that is needed"]
    return lines_of(lines, executable=True)


def bootstrap(root: LockedRoot, subject: ExportSubject) -> tuple[str, str] | None:
    """The program that makes a root of the archive on a machine that has it, and the command for the packages
    in "$@"; None where the package manager knows no such way."""
    manager = lookup("package manager", root.manager, subject.catalog.managers)
    if not manager.bootstrap:
        return None
    minimal = subject.catalog.base(f"{root.base}:{root.suite}")[0].minimal
    stands = {"{root}": f'"$WORK"/root-{root.role}', "{settings}": f"base/{root.role}.conf"}
    filled_in = filled(manager.bootstrap, [*minimal, _NAMES], release=root.suite)
    words = " ".join(_standing(word, stands | {_NAMES: '"$@"'}) for word in filled_in)
    return manager.bootstrap_with, words


def _command(words: tuple[str, ...]) -> str:
    return shlex.join(words)
