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
    command = ", ".join(powershell(word) for word in served.serve.command)
    yield f"$words += @($image) + @({command}) + $args"
    yield "& $Engine @words"
    yield "exit $LASTEXITCODE"
