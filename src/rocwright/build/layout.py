"""Finished artifacts, laid out for people: a folder a stack, and a wheel index that pip can use."""

from __future__ import annotations

import json
import os
import shutil
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from rocwright.files import sha256_file, write_atomic
from rocwright.plan.model import Plan
from rocwright.store.model import Output

if TYPE_CHECKING:
    from rocwright.flow import Artifact, Project


def lay_out(project: Project, plan: Plan) -> tuple[Artifact, ...]:
    """Put every artifact of the plan into the output folder; gives them in the plan's order.

    A file that is already there and was checked before (same size and time) is left alone.
    """
    from rocwright.flow import Artifact

    folder = project.output / project.request.stack
    stamps = _Stamps(project.home.path / "laid-out.json")
    artifacts = []
    for name in plan.artifacts:
        step = next(step for step in plan.steps if step.name == name)
        record = project.store.record(step.key)
        assert record is not None
        for output in record.outputs:
            target = folder / output.filename
            if not stamps.same(target, output):
                _copy(project.store.verified(output.sha256), target)
                stamps.note(target, output)
            artifacts.append(Artifact(step=step, output=output, path=target))
    stamps.save()
    wheels = [one.path for one in artifacts if one.path.suffix == ".whl"]
    if wheels:
        write_index(project.output / "simple", wheels)
    return tuple(artifacts)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        shutil.copyfile(source, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


class _Stamps:
    """Which laid-out file was checked as which digest; a changed size or time makes it be checked again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.changed = False
        try:
            self.known: dict[str, list[object]] = json.loads(path.read_text())
        except (OSError, ValueError):
            self.known = {}

    def same(self, path: Path, output: Output) -> bool:
        try:
            found = path.stat()
        except OSError:
            return False
        if self.known.get(str(path)) == [output.sha256, found.st_size, found.st_mtime_ns]:
            return True
        if found.st_size == output.size and sha256_file(path) == output.sha256:
            self.note(path, output)
            return True
        return False

    def note(self, path: Path, output: Output) -> None:
        found = path.stat()
        self.known[str(path)] = [output.sha256, found.st_size, found.st_mtime_ns]
        self.changed = True

    def save(self) -> None:
        if self.changed:
            write_atomic(self.path, json.dumps(self.known, indent=0))


def write_index(folder: Path, wheels: list[Path]) -> None:
    """Add wheels to a simple repository (PEP 503) in a folder: `pip install --index-url file://...`."""
    for wheel in wheels:
        project = folder / canonicalize_name(wheel.name.split("-")[0])
        project.mkdir(parents=True, exist_ok=True)
        link = project / wheel.name
        if not link.exists() or not link.samefile(wheel):
            link.unlink(missing_ok=True)
            os.link(wheel, link)
        rows = "".join(
            f'<a href="{escape(one.name)}#sha256={sha256_file(one)}">{escape(one.name)}</a><br>\n'
            for one in sorted(project.glob("*.whl"))
        )
        _write_page(project / "index.html", rows)
    projects = [page.parent.name for page in sorted(folder.glob("*/index.html"))]
    _write_page(folder / "index.html", "".join(f'<a href="{one}/">{one}</a><br>\n' for one in projects))


def _write_page(path: Path, body: str) -> None:
    page = f"<!DOCTYPE html>\n<html><body>\n{body}</body></html>\n"
    if not path.exists() or path.read_text() != page:
        write_atomic(path, page)
