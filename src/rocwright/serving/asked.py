"""A name for what was asked for: what was found for it stands while nothing that it was found by changes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from rocbase.files.atomic import sha256_bytes
from rocbase.model import canonical_json
from rocbase.processes.outlive import boot_id
from rocwheel.version import __version__
from rocwheel.wheels.detect import SYSFS, find_gpus
from rocwright.catalog.folders import catalog_folders
from rocwright.plan.resolve.folder import PROJECT, project_folder
from rocwright.sandbox.model import GPU_DEVICES


def asked_for(words: Sequence[object], sysfs: Path = SYSFS) -> str:
    """Return a name for what was asked for, as this rocwright and its catalog understand it in this folder.

    It holds on a machine with these GPUs and device nodes until it is started again; of the catalog only the
    times of its files are read.
    """
    stamps = [stamp for folder in catalog_folders() for stamp in _stamps(folder)]
    project = project_folder(Path.cwd()) / PROJECT
    own = [str(project), project.read_text()] if project.is_file() else []
    gpus = [(gpu.target, gpu.pci_id) for gpu in find_gpus({}, sysfs)]
    nodes = [name for name in GPU_DEVICES if Path(name).exists()]
    return sha256_bytes(canonical_json([*words, boot_id(), __version__, gpus, nodes, stamps, own]))


def environment_words(
    stack: str,
    gpu: str,
    base: str,
    versions: Mapping[str, str],
    optional: Sequence[str],
    accept_missing: Sequence[str],
    extra: Sequence[str],
) -> tuple[object, ...]:
    """Return what an environment is known by: all that was said of it."""
    named = (sorted(names) for names in (optional, accept_missing, extra))
    return stack, gpu, base, sorted(versions.items()), *named


def _stamps(folder: Path) -> list[tuple[str, int, int]]:
    stamps, todo = [], [str(folder)]
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    todo.append(entry.path)
                elif entry.name.endswith(".toml"):
                    stat = entry.stat()
                    stamps.append((entry.path, stat.st_mtime_ns, stat.st_size))
    return sorted(stamps)
