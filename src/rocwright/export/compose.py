"""How a run stack is run by compose: a compose.yaml for each component (JSON, which is YAML)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from rocwright.export.model import ExportFile, ExportSubject, Files, slug, variable
from rocwright.export.run import Served, served, served_env, warnings

FILE = "compose.yaml"


def compose(subject: ExportSubject) -> Files:
    """`compose.yaml` with a service for each component that is run."""
    services = {slug(entry.component.name): _service(entry, subject) for entry in served(subject)}
    if not services:
        return {}
    volumes: dict[str, dict[str, str]] = {
        name: {} for service in services.values() for name in _named(service)
    }
    document: dict[str, Any] = {"x-about": _heading(subject), "services": services}
    if volumes:
        document["volumes"] = volumes
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return {FILE: ExportFile(data=text.encode())}


def _heading(subject: ExportSubject) -> list[str]:
    lock = subject.lock
    versions = ", ".join(f"{name} {version}" for name, version in lock.versions.items())
    return [f"{versions}, for {', '.join(lock.request.gpu)}", *warnings(subject)]


def _service(served: Served, subject: ExportSubject) -> dict[str, Any]:
    name, serve = slug(served.component.name), served.serve
    service: dict[str, Any] = {"image": _literal(served.image) or _required_image(served), "init": True}
    if serve.entrypoint:
        service["entrypoint"] = [_literal(word) for word in serve.entrypoint]
    if serve.command:
        service["command"] = [_literal(word) for word in serve.command]
    if serve.devices:
        service["devices"] = [f"{device}:{device}" for device in serve.devices]
    if serve.groups:
        service["group_add"] = group_numbers(serve.groups)
    if serve.folders:
        service["volumes"] = [f"{name}-{slug(label)}:{place}" for place, label in serve.folders.items()]
    if serve.ports:
        # for this machine alone; without 127.0.0.1 others reach it too
        service["ports"] = [f"127.0.0.1:{port}:{port}" for port in serve.ports]
    if serve.shared_memory:
        service["shm_size"] = str(serve.shared_memory)
    env = {var.name: _literal(var.value) for var in served_env(subject, served.component)}
    if env:
        service["environment"] = env
    return service | {"restart": "on-failure"}


def _required_image(served: Served) -> str:
    """An image that is not known yet: compose stops where the variable is not set, and says why."""
    return f"${{{variable(served.component.name, 'image')}:?NAME@sha256 of the image}}"


def group_numbers(names: Iterable[str]) -> list[str]:
    """The numbers of this machine's groups, by variables: a name would be looked for in the image."""
    return [f"${{{variable(name, 'gid')}:?getent group {name} | cut -d: -f3}}" for name in names]


def _literal(text: str) -> str:
    """A value in which compose fills nothing in."""
    return text.replace("$", "$$")


def _named(service: dict[str, Any]) -> list[str]:
    return [volume.partition(":")[0] for volume in service.get("volumes", ())]
