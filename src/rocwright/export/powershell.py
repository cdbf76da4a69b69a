"""PowerShell scripts: what is run in containers, and the build of a stack whose recipes know Windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from rocwright.export.model import ExportFile, ExportSubject, Files, slug
from rocwright.export.prepare import edit_files
from rocwright.export.quote import comment, powershell
from rocwright.export.run import Served, served, served_env, warnings
from rocwright.export.windows import BUILD, ENVIRONMENT, STRICT, build, builds_there, environment


def powershell_scripts(subject: ExportSubject) -> Files:
    """`run-COMPONENT.ps1` for what is run in a container (WSL or a remote engine); `environment.ps1` and
    `build.ps1` where every recipe and the provider of ROCm say how it is done on Windows."""
    found: Files = {}
    if builds_there(subject):
        found |= edit_files(subject)
        found["environment.ps1"] = _file(chain(_head(subject, ENVIRONMENT), environment(subject)))
        found["build.ps1"] = _file(chain(_head(subject, BUILD), build(subject)))
    for one in served(subject):
        found[f"run-{slug(one.component.name)}.ps1"] = _file(_run(one, subject))
    return found


def _file(lines: Iterable[str]) -> ExportFile:
    # Windows PowerShell 5 takes a file without this mark for one of the machine's old code page
    return ExportFile(("\ufeff" + "".join(f"{line}\r\n" for line in lines)).encode())


def _head(subject: ExportSubject, what: str) -> Iterator[str]:
    request = subject.lock.request
    yield f"# {comment(request.stack)} for {comment(', '.join(request.gpu))}: {comment(what)}"
    yield "# Written, never run: nobody here has run this script on Windows."
    for told in warnings(subject):
        yield f"# {comment(told)}"


def _run(one: Served, subject: ExportSubject) -> Iterator[str]:
    yield from _head(subject, f"{one.component.name} {one.locked.version} in a container of a Linux engine")
    yield "param([string]$Engine = 'podman')"
    yield from STRICT
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
