"""compose.yaml: what is run says the same there as in the script and the unit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.export.test_rows import ROWS, lock_of_row

from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog
from rocwright.export.compose import compose
from rocwright.export.model import ExportSubject, slug
from rocwright.export.run import served, served_env
from rocwright.export.write import export
from rocwright.serving.prepare import variables


@each("row", ROWS)
def test_each_component_that_is_run_is_a_service(row: str) -> None:
    subject = ExportSubject.of(lock_of_row(*ROWS[row]), builtin_catalog())
    told: dict[str, Any] = json.loads(compose(subject)["compose.yaml"].text) if compose(subject) else {}
    services = told.get("services", {})
    assert services.keys() == {slug(one.component.name) for one in served(subject)}
    for one in served(subject):
        service = services[slug(one.component.name)]
        assert [word.replace("$$", "$") for word in service.get("command", [])] == [*one.serve.command]
        assert [word.replace("$$", "$") for word in service.get("entrypoint", [])] == [*one.serve.entrypoint]
        assert service.get("devices", []) == [f"{device}:{device}" for device in one.serve.devices]
        numbers = zip(one.serve.groups, service.get("group_add", []), strict=True)
        groups = [f"getent group {name} " in number for name, number in numbers]
        assert all(groups), "a name would be looked for in the image"
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), "nobody else"
        assert len(service.get("ports", [])) == len(one.serve.ports)
        env = {var.name: var.value.replace("$", "$$") for var in served_env(subject, one.component)}
        assert service.get("environment", {}) == env
        named = {volume.partition(":")[0] for volume in service.get("volumes", [])}
        assert named <= told.get("volumes", {}).keys()
        assert service["image"] == one.image or (not one.image and service["image"].startswith("${"))


def test_what_a_library_below_wants_is_in_the_environment_too() -> None:
    catalog = builtin_catalog()
    stack = catalog.stack("vllm-debian")
    subject = ExportSubject.of(lock_of_row(stack, stack.row[0]), catalog)
    env = {var.name: var.value for var in served_env(subject, catalog.component("vllm"))}
    assert env["USE_LIBUV"] == "0", "gloo's"
    assert env["VLLM_ROCM_USE_AITER"] == "0"
    assert "USE_LIBUV" in variables(subject.lock, catalog)
    plain = lock_of_row(catalog.stack("pytorch"), catalog.stack("pytorch").row[0])
    assert "USE_LIBUV" not in variables(plain, catalog)


def test_a_stack_that_is_not_run_has_none() -> None:
    catalog = builtin_catalog()
    stack = catalog.stack("gfx-smoke")
    lock = lock_of_row(stack, stack.row[0])
    with pytest.raises(Exception, match="nothing to export as compose"):
        export(lock, catalog, "compose")
