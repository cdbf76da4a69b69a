"""A PowerShell script: a lock's Python packages and variables on Windows, and what is run in containers."""

from __future__ import annotations

from collections.abc import Iterator

from rocwright.export.arguments import arguments
from rocwright.export.model import File, Files, Subject, slug
from rocwright.export.quote import comment, powershell
from rocwright.export.requirements import requirement_files
from rocwright.export.run import Served, served, served_env, warnings
from rocwright.plan.values import environment_of


def powershell_scripts(subject: Subject) -> Files:
    """`environment.ps1`, and `run-COMPONENT.ps1` for what is run in a container (WSL or a remote engine)."""
    found: Files = dict(requirement_files(subject))
    found["environment.ps1"] = _file(_environment(subject))
    for one in served(subject):
        found[f"run-{slug(one.component.name)}.ps1"] = _file(_run(one, subject))
    return found


def _file(lines: Iterator[str]) -> File:
    # Windows PowerShell 5 takes a file without this mark for one of the machine's old code page
    return File(("\ufeff" + "".join(f"{line}\r\n" for line in lines)).encode())


def _head(subject: Subject, what: str) -> Iterator[str]:
    request = subject.lock.request
    yield f"# {comment(request.stack)} for {comment(', '.join(request.gpu))}: {comment(what)}"
    yield "# This script was not run on Windows by who wrote it."
    for told in warnings(subject):
        yield f"# {comment(told)}"


def _strict() -> Iterator[str]:
    """What follows `param`, which is the first statement of a script."""
    yield "Set-StrictMode -Version Latest"
    yield "$ErrorActionPreference = 'Stop'"


def _environment(subject: Subject) -> Iterator[str]:
    yield from _head(subject, "a Python environment by hash, and the variables of each build")
    yield "# usage: .\\environment.ps1 [-Folder FOLDER] [-Component NAME]"
    yield "param([string]$Folder = 'venv', [string]$Component = '')"
    yield from _strict()
    yield "$pins = [ordered]@{"
    for one in arguments(subject):
        if one.value:
            yield f"    {powershell(one.name)} = {powershell(one.value)}    # {comment(one.about)}"
    yield "}"
    for one in arguments(subject):
        if one.pending:
            yield f"# PENDING {one.name}: {comment(one.pending)}"
            yield (
                f"if (-not $env:{one.name}) "
                f"{{ throw {powershell(f'pending: {comment(one.pending)}; set $env:{one.name}')} }}"
            )
    yield "$builds = @{"
    for locked in subject.lock.components:
        component = subject.catalog.component(locked.name)
        yield f"    {powershell(locked.name)} = @{{"
        for name, value in environment_of(component, locked, subject.lock).items():
            yield f"        {powershell(name)} = {powershell(value)}"
        yield "    }"
    yield "}"
    yield "if (-not (Test-Path $Folder)) { py -3 -m venv $Folder }"
    yield "$python = Join-Path $Folder 'Scripts\\python.exe'"
    yield "foreach ($list in @('python', 'rocm')) {"
    yield "    $file = Join-Path $PSScriptRoot (Join-Path $list 'requirements.lock')"
    yield "    if (Test-Path $file) {"
    yield "        & $python -m pip install --require-hashes --no-deps -r $file"
    yield "        if ($LASTEXITCODE -ne 0) { throw 'pip could not install what the lock names' }"
    yield "    }"
    yield "}"
    yield "if ($Component) {"
    yield "    foreach ($entry in $builds[$Component].GetEnumerator()) {"
    yield "        Set-Item -Path ('Env:' + $entry.Key) -Value $entry.Value"
    yield "    }"
    yield "}"
    yield "$pins"


def _run(one: Served, subject: Subject) -> Iterator[str]:
    yield from _head(subject, f"{one.component.name} {one.locked.version} in a container of a Linux engine")
    yield "param([string]$Engine = 'podman')"
    yield from _strict()
    yield f"$image = {powershell(one.image)}"
    if not one.image:
        yield f"# PENDING: {comment(one.locked.pending or 'the digest of the image')}"
        yield "if (-not $image) { throw 'pending: the digest of the image; write NAME@sha256:... above' }"
    yield "$words = @('run', '--rm', '--init')"
    for device in one.serve.devices:
        yield f"$words += @('--device', {powershell(device)})    # the GPU, where the engine's Linux has it"
    for place, what in one.serve.folders.items():
        volume = f"{slug(one.component.name)}-{slug(what)}:{place}"
        yield f"$words += @('--volume', {powershell(volume)})    # {comment(what)}"
    for port in one.serve.ports:
        yield f"$words += @('--publish', '127.0.0.1:{port}:{port}')"
    if one.serve.shared_memory:
        yield f"$words += @('--shm-size', '{one.serve.shared_memory}')"
    for var in served_env(subject, one.component):
        yield f"$words += @('--env', {powershell(f'{var.name}={var.value}')})    # {comment(var.why)}"
    command = ", ".join(powershell(word) for word in one.serve.command)
    yield f"$words += @($image) + @({command}) + $args"
    yield "& $Engine @words"
    yield "exit $LASTEXITCODE"
