"""Whether what a wheel holds runs on a GPU: a verdict and its reason for each library and set of kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from rocwheel.wheels.choose import ANY_GPU, ProcessorCode, Target, needed
from rocwheel.wheels.code_tree import CodeTree, read_tree
from rocwheel.wheels.devicecode.code_objects import refuse_other
from rocwheel.wheels.devicecode.generic import generic_targets
from rocwheel.wheels.devicecode.loose import LooseKind, kinds, loose
from rocwheel.wheels.kpacked import Distribution, Kpacked, Place, check_versions, join
from rocwheel.wheels.overrides import Overrides, the_overrides
from rocwheel.wheels.without_code import dependences


class RunsOn(StrEnum):
    """How code runs on a GPU, from best to worst."""

    NATIVE = "native"
    GENERIC = "by a generic target"
    COMPILED = "compiled when it is loaded"
    SLOWER = "slower"
    OVERRIDE = "only with an override"
    RUNTIME = "needs ROCm's runtime"
    UNKNOWN = "cannot be told"
    NO = "not at all"

    @property
    def runs(self) -> bool:
        """Whether it runs as it is, on a machine where nothing was set."""
        return self not in (RunsOn.OVERRIDE, RunsOn.RUNTIME, RunsOn.UNKNOWN, RunsOn.NO)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The verdict on `path`: a library or program, or a folder of kernels that a library loads.

    `through` is the target whose code would run, `setting` the environment that an override needs. Without
    `device_code` it depends on the GPU, and holds no code for it.
    """

    path: str
    verdict: RunsOn
    reason: str
    through: str = ""
    setting: Mapping[str, str] | None = None
    device_code: bool = True


class Verdicts(NamedTuple):
    """The verdicts on one path, and how many of its kpack archives libraries were judged by."""

    judged: list[Judged]
    archives: int


def runs_on(path: Path, gpu: Target, overrides: Overrides | None = None) -> list[Judged]:
    """The verdicts on everything in `path` (as `members` takes it) that holds GPU code.

    If nothing does, those on what depends on a GPU: it needs ROCm's runtime, or compiles when it runs.

    `overrides` are the known ways to make the GPU pass for another, those in use if not given. Code that
    cannot be read, or that is not there, has the verdict UNKNOWN. Raises InputError where `path` cannot be
    read, CheckError where it is damaged as a whole.
    """
    (verdicts,) = runs_together([path], gpu, overrides)
    return verdicts.judged


def runs_together(paths: Sequence[Path], gpu: Target, overrides: Overrides | None = None) -> list[Verdicts]:
    """The same for each of several paths, where a library's code may lie in another of them (kpack archives).

    Raises CheckError too where a wheel brings code for another version of one of the others.
    """
    overrides = overrides or the_overrides()
    for path in paths:
        refuse_other(path)
    trees = [read_tree(number, path) for number, path in enumerate(paths)]
    distributions = [distribution for tree in trees for distribution in tree.distributions]
    check_versions(distributions)
    archives = {place: archive for tree in trees for place, archive in tree.archives.items()}
    joined = join(
        {place: reference for tree in trees for place, reference in tree.references.items()}, archives
    )
    used = {place for kpacked in joined.values() for place in kpacked.archives}
    judged = []
    for tree in trees:
        verdicts = [_library(path, bundles, gpu, overrides) for path, bundles in tree.libraries.items()]
        verdicts += [
            _kpacked(place.path, kpacked, gpu, overrides, distributions)
            for place, kpacked in joined.items()
            if place.tree == tree.number
        ]
        verdicts += [_alone(path, codes, gpu) for path, codes in tree.alone.items()]
        verdicts += [_files_of_code(folder, files, gpu, overrides) for folder, files in tree.objects.items()]
        verdicts += list(_left_archives(tree, used, gpu, overrides))
        verdicts += [Judged(path=path, verdict=RunsOn.UNKNOWN, reason=reason) for path, reason in tree.unread]
        verdicts.sort(key=lambda verdict: verdict.path)
        verdicts += _folders(tree.paths, gpu, overrides)
        archived = sum(place.tree == tree.number for place in used)
        judged.append(
            Verdicts(verdicts if verdicts or archived else _without_code(paths[tree.number]), archived)
        )
    return judged


def _without_code(path: Path) -> list[Judged]:
    """The verdicts on a path that holds no GPU code."""
    verdicts = {True: RunsOn.RUNTIME, False: RunsOn.UNKNOWN}
    return [
        Judged(
            path=dependence.path,
            verdict=verdicts[dependence.runtime_only],
            reason=dependence.reason,
            device_code=False,
        )
        for dependence in dependences(path)
    ]


def _files_of_code(
    folder: str, files: Sequence[tuple[str, ProcessorCode]], gpu: Target, overrides: Overrides
) -> Judged:
    """The verdict on code objects of one folder or name: a program takes those for its GPU."""
    ((path, _), *further) = files
    judged = _library(folder if further else path, [[code for _, code in files]], gpu, overrides)
    if not further:
        return judged
    mine = sum(_outcome([code], gpu) is not None for _, code in files)
    count = f"{len(files):,} files, a code object each"
    if judged.verdict.runs:
        return replace(judged, reason=f"{count}; {mine:,} of them for {gpu}")
    return replace(judged, reason=f"{count}: {judged.reason}")


def _alone(path: str, codes: Sequence[ProcessorCode], gpu: Target) -> Judged:
    """The verdict on code objects that are embedded one by one: how the program chooses is not known."""
    outcome = _outcome(codes, gpu)
    count = f"{len(codes):,} embedded code {'object' if len(codes) == 1 else 'objects'}"
    if outcome is not None:
        return Judged(path=path, verdict=outcome, reason=f"{count}, some for {gpu}", through=gpu.name)
    lack = f"{count}, for {', '.join(_targets([codes]))}; whether it needs one for {gpu} is not known"
    return Judged(path=path, verdict=RunsOn.UNKNOWN, reason=lack)


def _kpacked(
    path: str, kpacked: Kpacked, gpu: Target, overrides: Overrides, distributions: Sequence[Distribution]
) -> Judged:
    """The verdict on a library whose code lies in kpack archives."""
    if kpacked.archives and kpacked.code:
        bundles = [
            [ProcessorCode((packed.target,), packed.features) for packed in objects]
            for objects in kpacked.code.values()
        ]
        return _library(path, bundles, gpu, overrides)
    names = (gpu.name, *_generic(gpu), ANY_GPU)
    hint = "".join(
        sorted({f"; {text}" for distribution in distributions if (text := distribution.wheel_for(names))})
    )
    searched = ", ".join(kpacked.reference.search)
    lack = "of which those that are here have none" if kpacked.archives else "that are not here"
    reason = f"its code is in kpack archives {lack} ({searched}){hint}"
    return Judged(path=path, verdict=RunsOn.UNKNOWN, reason=reason)


def _left_archives(
    tree: CodeTree, used: Collection[Place], gpu: Target, overrides: Overrides
) -> Iterator[Judged]:
    """The verdict on each folder of archives to which no library leads that is here."""
    folders: dict[str, dict[str, list[ProcessorCode]]] = {}
    for place, archive in tree.archives.items():
        if place not in used:
            bundles = folders.setdefault(place.path.rpartition("/")[0], {})
            for packed in archive.code:
                bundles.setdefault(packed.name, []).append(ProcessorCode((packed.target,), packed.features))
    for folder, bundles in folders.items():
        judged = _library(folder or ".", list(bundles.values()), gpu, overrides)
        libraries = len({name.partition("#")[0] for name in bundles})
        word = "a library that is" if libraries == 1 else f"{libraries:,} libraries that are"
        yield replace(judged, reason=f"kpack archives for {word} not here: {judged.reason}")


def worst(judged: Iterable[Judged]) -> RunsOn:
    """The verdict on all of them together; native where there are none."""
    order = list(RunsOn)
    return max((entry.verdict for entry in judged), key=order.index, default=RunsOn.NATIVE)


def _library(
    path: str, bundles: Sequence[Sequence[ProcessorCode]], gpu: Target, overrides: Overrides
) -> Judged:
    outcomes = [_outcome(bundle, gpu) for bundle in bundles]
    lacking = sum(outcome is None for outcome in outcomes)
    count = f"{len(bundles):,} {'fat binary' if len(bundles) == 1 else 'fat binaries'}"
    if not lacking:
        verdict = max(
            (outcome for outcome in outcomes if outcome is not None),
            key=list(RunsOn).index,
            default=RunsOn.NATIVE,
        )
        return Judged(
            path=path, verdict=verdict, reason=_reason(verdict, bundles, gpu, count), through=gpu.name
        )
    targets = _targets(bundles)
    part = "" if lacking == len(bundles) else f"{lacking:,} of "
    lack = f"{part}{count} without code for {gpu}; there is code for {', '.join(targets) or 'no GPU'}"
    for override in _overrides(gpu, overrides):
        # with an override, all code is looked for under the other name
        if all(_outcome(bundle, override.passes_for) is not None for bundle in bundles):
            does = f"{override.variables} makes it run code for {override.passes_for}"
            return override.judged(path, f"{lack}. {does}; {override.advice}")
    return Judged(path=path, verdict=RunsOn.NO, reason=lack)


def _outcome(bundle: Sequence[ProcessorCode], gpu: Target) -> RunsOn | None:
    """How one bundle runs on a GPU without an override; None where it does not."""
    numbers, missing = needed(bundle, (gpu,), generic_targets())
    if missing:
        return None
    names = {name for number in numbers for name in bundle[number].names}
    if gpu.name in names:
        return RunsOn.NATIVE
    return RunsOn.COMPILED if names == {ANY_GPU} else RunsOn.GENERIC


def _reason(verdict: RunsOn, bundles: Sequence[Sequence[ProcessorCode]], gpu: Target, count: str) -> str:
    targets = _targets(bundles)
    match verdict:
        case RunsOn.NATIVE:
            mine = [target for target in targets if target.partition(":")[0] == gpu.name]
            return f"{count} with code for {', '.join(mine)}"
        case RunsOn.GENERIC:
            through = [name for name in targets if gpu.name in generic_targets().get(name, ())]
            return f"{count}, some of them through {', '.join(through)}, which covers {gpu.name}"
        case _:
            return f"{count}, some of them as SPIR-V, which the runtime compiles for {gpu.name}"


def _targets(bundles: Iterable[Sequence[ProcessorCode]]) -> list[str]:
    return sorted(
        {":".join((name, *code.features)) for bundle in bundles for code in bundle for name in code.names}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Override:
    """A target that a GPU was made to pass for, and how; `warning` is what was seen to go wrong."""

    gpu: Target
    passes_for: Target
    setting: Mapping[str, str]
    warning: str

    @property
    def variables(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.setting.items())

    @property
    def advice(self) -> str:
        ask = f"`rocwheel audit-override --code {self.passes_for} --on {self.gpu.name}` compares"
        return f"{ask}. Known: {self.warning}" if self.warning else ask

    def judged(self, path: str, reason: str) -> Judged:
        return Judged(
            path=path,
            verdict=RunsOn.OVERRIDE,
            reason=reason,
            through=self.passes_for.name,
            setting=self.setting,
        )


def _overrides(gpu: Target, overrides: Overrides) -> Iterator[_Override]:
    mine = overrides.by_target.get(gpu.name)
    for name in mine.spoof if mine else ():
        if (substitute := overrides.by_target.get(name)) and mine:
            setting = {overrides.variable: substitute.identity}
            yield _Override(gpu=gpu, passes_for=Target(name), setting=setting, warning=mine.warning)


def _folders(paths: Iterable[str], gpu: Target, overrides: Overrides) -> Iterator[Judged]:
    """The verdict on each folder of loose kernels, of each kind."""
    by_name = {kind.name: kind for kind in kinds()}
    folders: dict[tuple[str, str], list[str]] = {}
    for path in paths:
        if (kernel := loose(path)) is not None:
            folders.setdefault((_folder(path, by_name[kernel.kind]), kernel.kind), []).append(path)
    for (folder, name), inside in sorted(folders.items()):
        yield _set_of_kernels(folder, by_name[name], inside, gpu, overrides)


def _folder(path: str, kind: LooseKind) -> str:
    """Where a kind of loose file lies: the folder, or that which holds the folders named by target."""
    parts = PurePosixPath(path).parts
    named = [number for number, part in enumerate(parts[:-1]) if "gfx" in part]
    return "/".join(parts[: named[0]] if named else parts[:-1])


def _set_of_kernels(
    folder: str, kind: LooseKind, paths: Sequence[str], gpu: Target, overrides: Overrides
) -> Judged:
    by_target: dict[str, list[str]] = {}
    for path in paths:
        kernel = loose(path)
        for target in kernel.targets if kernel else ():
            by_target.setdefault(target, []).append(path)
    mine = [*by_target.get(gpu.name, ()), *(p for name in _generic(gpu) for p in by_target.get(name, ()))]
    if not mine:
        return _no_kernels(folder, kind, by_target, gpu, overrides)
    slow = _slow_operations(kind, by_target, gpu)
    if slow:
        operations = ", ".join(slow)
        return Judged(
            path=folder,
            verdict=RunsOn.SLOWER,
            reason=f"{kind.name}: {_files(mine)} for {gpu.name}, but only fallback kernels for {operations}, "
            "where other GPUs have tuned ones",
            through=gpu.name,
        )
    return Judged(
        path=folder,
        verdict=RunsOn.NATIVE,
        reason=f"{kind.name}: {_files(mine)} for {gpu.name}",
        through=gpu.name,
    )


def _no_kernels(
    folder: str, kind: LooseKind, by_target: Mapping[str, Sequence[str]], gpu: Target, overrides: Overrides
) -> Judged:
    lack = (
        f"{kind.name}: no file for {gpu.name} among those for {', '.join(sorted(by_target))}; {kind.missing}"
    )
    if not kind.needed:
        return Judged(path=folder, verdict=RunsOn.SLOWER, reason=lack)
    for override in _overrides(gpu, overrides):
        if override.passes_for.name in by_target:
            does = f"{override.variables} makes it use those of {override.passes_for}"
            return override.judged(folder, f"{lack}. {does}; {override.advice}")
    return Judged(path=folder, verdict=RunsOn.NO, reason=lack)


def _slow_operations(kind: LooseKind, by_target: Mapping[str, Sequence[str]], gpu: Target) -> list[str]:
    """Operations for which other targets have files of their own and this one only fallbacks, in words."""
    tuned = {target: set(kind.tuned_for(paths)) for target, paths in by_target.items()}
    mine = tuned.get(gpu.name, set())
    count = Counter(
        operation for target, operations in tuned.items() if target != gpu.name for operation in operations
    )
    return sorted(
        kind.operations.get(operation, operation) or "every operation"
        for operation in count
        if operation not in mine
    )


def _generic(gpu: Target) -> list[str]:
    return [name for name, covered in generic_targets().items() if gpu.name in covered]


def _files(paths: Sequence[str]) -> str:
    return f"{len(paths):,} {'file' if len(paths) == 1 else 'files'}"
