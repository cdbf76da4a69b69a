"""How a run stack is run by compose: a compose.yaml for each component (JSON, which is YAML)."""

from __future__ import annotations

import json
from typing import Any

from rocwright.export.model import ExportFile, ExportSubject, Files, slug, variable
from rocwright.export.run import Served, served, served_env, warnings

FILE = "compose.yaml"


def compose(subject: ExportSubject) -> Files:
    """`compose.yaml` with a service for each component that is run."""
    services = {slug(one.component.name): _service(one, subject) for one in served(subject)}
    if not services:
        return {}
    volumes: dict[str, dict[str, str]] = {name: {} for one in services.values() for name in _named(one)}
    told: dict[str, Any] = {"x-about": _about(subject), "services": services}
    if volumes:
        told["volumes"] = volumes
    text = json.dumps(told, indent=2, ensure_ascii=False) + "\n"
    return {FILE: ExportFile(data=text.encode())}


def _about(subject: ExportSubject) -> list[str]:
    lock = subject.lock
    versions = ", ".join(f"{name} {version}" for name, version in lock.versions.items())
    return [f"{versions}, for {', '.join(lock.request.gpu)}", *warnings(subject)]


def _service(one: Served, subject: ExportSubject) -> dict[str, Any]:
    name, serve = slug(one.component.name), one.serve
    found: dict[str, Any] = {"image": _literal(one.image) or _asked(one), "init": True}
    if serve.command:
        found["command"] = [_literal(word) for word in serve.command]
    if serve.devices:
        found["devices"] = [f"{device}:{device}" for device in serve.devices]
    if serve.groups:
        found["group_add"] = list(serve.groups)
    if serve.folders:
        found["volumes"] = [f"{name}-{slug(what)}:{place}" for place, what in serve.folders.items()]
    if serve.ports:
        # for this machine alone; without 127.0.0.1 others reach it too
        found["ports"] = [f"127.0.0.1:{port}:{port}" for port in serve.ports]
    if serve.shared_memory:
        found["shm_size"] = str(serve.shared_memory)
    env = {var.name: _literal(var.value) for var in served_env(subject, one.component)}
    if env:
        found["environment"] = env
    return found | {"restart": "on-failure"}


def _asked(one: Served) -> str:
    """An image that is not known yet: compose stops where the variable is not set, and says why."""
    return f"${{{variable(one.component.name, 'image')}:?NAME@sha256 of the image}}"


def _literal(text: str) -> str:
    """A value in which compose fills nothing in."""
    return text.replace("$", "$$")


def _named(service: dict[str, Any]) -> list[str]:
    return [one.partition(":")[0] for one in service.get("volumes", ())]
