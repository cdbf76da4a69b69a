"""PowerShell scripts: what is run in containers, and the build of a stack whose recipes know Windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from rocwright.catalog.environment import for_recipe
from rocwright.catalog.model import Component, Windows
from rocwright.catalog.place import GitPlace
from rocwright.export.edits import PROGRAM
from rocwright.export.model import ExportFile, ExportSubject, Files, slug
from rocwright.export.prepare import edit_files
from rocwright.export.quote import comment, powershell
from rocwright.export.run import Served, served, served_env, warnings
from rocwright.model.steps import IndexOrigin, TreeAction
from rocwright.plan.make import PREPARED
from rocwright.plan.resolve.model import LockedComponent
from rocwright.plan.values import environment_of


def powershell_scripts(subject: ExportSubject) -> Files:
    """`run-COMPONENT.ps1` for what is run in a container (WSL or a remote engine); `environment.ps1` and
    `build.ps1` where every recipe and the provider of ROCm say how it is done on Windows."""
    files: Files = {}
    if builds_there(subject):
        files |= edit_files(subject)
        files["environment.ps1"] = _file(chain(_head(subject, ENVIRONMENT), environment(subject)))
        files["build.ps1"] = _file(chain(_head(subject, BUILD), build(subject)))
    for entry in served(subject):
        files[f"run-{slug(entry.component.name)}.ps1"] = _file(_run(entry, subject))
    return files


def _file(lines: Iterable[str]) -> ExportFile:
    # Windows PowerShell 5 takes a file without this mark for one of the machine's old code page
    return ExportFile(("\ufeff" + "".join(f"{line}\r\n" for line in lines)).encode())


def _head(subject: ExportSubject, purpose: str) -> Iterator[str]:
    request = subject.lock.request
    yield f"# {comment(request.stack)} for {comment(', '.join(request.gpu))}: {comment(purpose)}"
    yield "# Written, never run: nobody here has run this script on Windows."
    for warning in warnings(subject):
        yield f"# {comment(warning)}"


def _run(served: Served, subject: ExportSubject) -> Iterator[str]:
    yield from _head(
        subject, f"{served.component.name} {served.locked.version} in a container of a Linux engine"
    )
    yield "param([string]$Engine = 'podman')"
    yield from STRICT
    yield f"$image = {powershell(served.image)}"
    if not served.image:
        yield f"# PENDING: {comment(served.locked.pending or 'the digest of the image')}"
        yield "if (-not $image) { throw 'pending: the digest of the image; write NAME@sha256:... above' }"
    yield "$words = @('run', '--rm', '--init')"
    for device in served.serve.devices:
        yield f"$words += @('--device', {powershell(device)})    # the GPU, where the engine's Linux has it"
    for place, label in served.serve.folders.items():
        volume = f"{slug(served.component.name)}-{slug(label)}:{place}"
        yield f"$words += @('--volume', {powershell(volume)})    # {comment(label)}"
    for port in served.serve.ports:
        yield f"$words += @('--publish', '127.0.0.1:{port}:{port}')"
    if served.serve.shared_memory:
        yield f"$words += @('--shm-size', '{served.serve.shared_memory}')"
    for var in served_env(subject, served.component):
        yield f"$words += @('--env', {powershell(f'{var.name}={var.value}')})    # {comment(var.why)}"
    if served.program:
        yield f"$words += @('--entrypoint', {powershell(served.program)})"
    command = ", ".join(map(powershell, served.words))
    yield f"$words += @($image) + @({command}) + $args"
    yield "& $Engine @words"
    yield "exit $LASTEXITCODE"


ENVIRONMENT = "a Python environment with ROCm in it, and the variables of a build"
BUILD = "sources by commit, edited and built, each wheel installed before the next build"

# What follows `param`, which is the first statement of a script.
STRICT = ("Set-StrictMode -Version Latest", "$ErrorActionPreference = 'Stop'")

_CALLS = """\
function Invoke-Checked([string]$Program, [string[]]$Words) {
    & $Program @Words
    if ($LASTEXITCODE -ne 0) { throw "$Program $Words ended with $LASTEXITCODE" }
}
function Get-Told([string]$Program, [string[]]$Words) {
    $told = & $Program @Words
    if ($LASTEXITCODE -ne 0) { throw "$Program $Words ended with $LASTEXITCODE" }
    return ([string]$told).Trim()
}"""


def builds_there(subject: ExportSubject) -> bool:
    """Whether every recipe of a lock, and the provider of its ROCm, say how it is done on Windows."""
    rocm = subject.lock.rocm
    has_rocm = rocm is not None and bool(subject.catalog.provider(rocm.name).windows)
    parts = [_windows(subject, locked) for locked in subject.lock.components]
    return has_rocm and bool(parts) and all(parts)


def environment(subject: ExportSubject) -> Iterator[str]:
    """environment.ps1: to be called with a dot before it, since it sets variables of who calls it."""
    yield "# usage: . .\\environment.ps1 [-Folder FOLDER] [-Component NAME]"
    yield "param([string]$Folder = 'venv', [string]$Component = '')"
    yield from STRICT
    yield from _CALLS.splitlines()
    yield "$builds = @{"
    for locked in subject.lock.components:
        yield f"    {powershell(locked.name)} = @{{"
        for name, value in _variables(subject, locked).items():
            yield f"        {powershell(name)} = {powershell(value)}"
        yield "    }"
    yield "}"
    yield 'if ($Component -and -not $builds.ContainsKey($Component)) { throw "no build of $Component" }'
    yield "if (-not (Test-Path (Join-Path $Folder 'installed'))) {"
    yield f"    Invoke-Checked 'py' @({powershell(f'-{_python(subject)}')}, '-m', 'venv', '--clear', $Folder)"
    yield "    $python = Join-Path (Resolve-Path $Folder) 'Scripts\\python.exe'"
    yield "    # the lock's hashes are of wheels for Linux: the same versions, by name"
    yield from (f"    {line}" for line in _installed(subject))
    yield "    Set-Content (Join-Path $Folder 'installed') 'whole'"
    yield "}"
    yield "$python = Join-Path (Resolve-Path $Folder) 'Scripts\\python.exe'"
    yield "$env:PATH = (Split-Path $python) + ';' + $env:PATH"
    assert subject.lock.rocm is not None
    yield from subject.catalog.provider(subject.lock.rocm.name).windows
    yield "if ($Component) {"
    yield "    foreach ($entry in $builds[$Component].GetEnumerator()) {"
    yield "        Set-Item -Path ('Env:' + $entry.Key) -Value $entry.Value"
    yield "    }"
    yield "}"


def build(subject: ExportSubject) -> Iterator[str]:
    """build.ps1: in a developer prompt of Visual Studio, with git."""
    yield "# usage, in a developer prompt of Visual Studio that has git:"
    yield "#   .\\build.ps1 [-Folder FOLDER] [-Dlls FOLDER,...] [-Jobs NUMBER]"
    yield "param([string]$Folder = 'venv', [string]$Sources = 'sources', [string]$Wheels = 'wheels',"
    yield "      [string[]]$Dlls = @($env:VCToolsRedistDir), [int]$Jobs = 0)"
    yield from STRICT
    yield "$memory = (Get-CimInstance Win32_ComputerSystem).TotalPhysicalMemory"
    yield "$here = $PSScriptRoot"
    yield "New-Item -ItemType Directory -Force -Path $Sources, $Wheels | Out-Null"
    yield "$out = [string](Resolve-Path $Wheels)"
    yield "$given = @{}; Get-ChildItem Env: | ForEach-Object { $given[$_.Name] = $_.Value }"
    for locked in subject.lock.components:
        yield from _built(subject, locked)


def _built(subject: ExportSubject, locked: LockedComponent) -> Iterator[str]:
    component, windows = subject.catalog.component(locked.name), _windows(subject, locked)
    assert windows is not None
    yield ""
    yield f"# {comment(locked.name)} {comment(locked.version)}"
    yield "# each build sees its own variables alone"
    yield "Get-ChildItem Env: | Where-Object { -not $given.ContainsKey($_.Name) } | Remove-Item"
    yield "$given.GetEnumerator() | ForEach-Object { Set-Item -Path ('Env:' + $_.Key) -Value $_.Value }"
    yield f". (Join-Path $here 'environment.ps1') -Folder $Folder -Component {powershell(locked.name)}"
    yield f"$tree = Join-Path (Resolve-Path $Sources) {powershell(slug(locked.name))}"
    yield "if (-not (Test-Path (Join-Path $tree '.git/whole'))) {"
    yield "    if (Test-Path $tree) { Remove-Item -Recurse -Force $tree }"
    yield from (f"    {line}" for line in _source(component, locked))
    yield from (f"    {line}" for line in _edited(subject, locked, f"tree/{locked.name}"))
    if windows.prepare:
        yield "    Push-Location $tree"
        yield from (f"    {line}" for line in windows.prepare)
        yield "    Pop-Location"
    yield from (f"    {line}" for line in _edited(subject, locked, f"{PREPARED}/{locked.name}"))
    yield "    Set-Content (Join-Path $tree '.git/whole') 'edited'"
    yield "}"
    share = component.resources.memory_per_job
    yield f"$most = [Math]::Min([Environment]::ProcessorCount, [Math]::Floor($memory / {share}))"
    yield "$env:MAX_JOBS = if ($Jobs) { $Jobs } else { [Math]::Max(1, $most) }"
    for name, place in windows.dlls.items():
        yield f"$dll = Get-ChildItem -Path $Dlls -Recurse -Filter {powershell(name)} | Select-Object -First 1"
        yield f"if (-not $dll) {{ throw {powershell(f'{name} is in none of -Dlls: name its folder')} }}"
        yield f"Copy-Item $dll.FullName (Join-Path $tree {powershell(place)})"
    yield "Push-Location $tree"
    yield from windows.run
    yield "Pop-Location"
    pattern = powershell(component.output[0].pattern)
    yield f"$wheel = Get-ChildItem -Path $out -Filter {pattern} | Sort-Object LastWriteTime"
    yield "$wheel = $wheel | Select-Object -Last 1"
    install = "'-m', 'pip', 'install', '--no-deps', '--force-reinstall', $wheel.FullName"
    yield f"Invoke-Checked $python @({install})"


def _source(component: Component, locked: LockedComponent) -> Iterator[str]:
    """A clone at the lock's commit; at the tag where the lock has no commit yet."""
    places = component.released(locked.version).places
    place = next(candidate for candidate in places if isinstance(candidate, GitPlace))
    revision = locked.commit or place.commit or place.tag
    if not locked.commit and not place.commit:
        yield f"# PENDING: {comment(locked.pending)}; a tag can be moved"
    clone = f"'clone', '--no-checkout', {powershell(place.git)}, $tree"
    yield f"Invoke-Checked 'git' @('-c', 'core.autocrlf=false', {clone})"
    for words in (
        "'config', 'core.autocrlf', 'false'",
        f"'checkout', '--detach', {powershell(revision)}",
        "'-c', 'core.autocrlf=false', 'submodule', 'update', '--init', '--recursive'",
    ):
        yield f"Invoke-Checked 'git' @('-C', $tree, {words})"


def _edited(subject: ExportSubject, locked: LockedComponent, name: str) -> Iterator[str]:
    for step in subject.plan.steps:
        if step.name == name and isinstance(step.action, TreeAction) and step.action.edits:
            program, edits = powershell(PROGRAM), powershell(f"edits/{slug(step.name)}.json")
            yield f"Invoke-Checked $python @((Join-Path $here {program}), (Join-Path $here {edits}), $tree)"


def _installed(subject: ExportSubject) -> Iterator[str]:
    """Python packages in the lock's versions; as they are asked for where the lock has none yet."""
    python, rocm = subject.lock.python, subject.lock.rocm
    index = subject.catalog.provider(rocm.name).shelf_of(rocm.version).index if rocm is not None else ""
    for part, extra_index in ((python, ""), (rocm, index)):
        if part is None:
            continue
        pins = [pin.origin for pin in part.files if isinstance(pin.origin, IndexOrigin)]
        names = sorted({f"{origin.project}=={origin.version}" for origin in pins}) or list(part.wanted)
        indexes = ["--extra-index-url", extra_index] if extra_index else []
        if names:
            words = ", ".join(powershell(word) for word in ("-m", "pip", "install", *indexes, *names))
            yield f"Invoke-Checked $python @({words})"


def _windows(subject: ExportSubject, locked: LockedComponent) -> Windows | None:
    """What the recipe says, where its source is a git repository: a clone there holds what a build needs."""
    return subject.catalog.component(locked.name).windows if locked.kind == "git" else None


def _variables(subject: ExportSubject, locked: LockedComponent) -> dict[str, str]:
    component, windows = subject.catalog.component(locked.name), _windows(subject, locked)
    assert windows is not None
    release = component.released(locked.version)
    env = component.env | release.env | windows.env
    windows_component = component.model_copy(
        update={
            "env": {name: value for name, value in env.items() if name not in windows.without},
            "release": (release.model_copy(update={"env": {}}),),
        }
    )
    return environment_of(
        windows_component,
        locked,
        subject.lock,
        for_recipe(subject.catalog, subject.lock.request.gpu, component.name),
    )


def _python(subject: ExportSubject) -> str:
    return subject.lock.provided.get("python", "3")
