"""The Python packages of a lock, by hash: requirements.lock for pip, and pylock.toml (PEP 751)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import tomlkit

from rocwright.export.model import ExportFile, ExportSubject, Files, lines_of
from rocwright.export.quote import comment
from rocwright.model.steps import FilePin, IndexOrigin


def requirement_files(subject: ExportSubject) -> Files:
    """`python/requirements.lock` and `rocm/requirements.lock`, of those that the lock has the files of."""
    files: Files = {}
    for folder, part in subject.packages:
        if part.files:
            files[f"{folder}/requirements.lock"] = lines_of(requirement_lines(part.files))
    return files


def requirement_lines(pins: Sequence[FilePin]) -> Iterator[str]:
    """What `pip install --require-hashes` reads."""
    rows: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for pin in pins:
        if isinstance(pin.origin, IndexOrigin):
            rows[pin.origin.index, pin.origin.project, pin.origin.version].append(pin.sha256)
    yield "# Written by rocwright from its lock: pip install --require-hashes --no-deps -r requirements.lock"
    for index in sorted({index for index, _, _ in rows} - {""}):
        yield f"--extra-index-url {index}"
    for (_, project, version), hashes in sorted(rows.items()):
        yield f"{project}=={version} \\"
        yield " \\\n".join(f"    --hash=sha256:{digest}" for digest in sorted(hashes))


def requirements(subject: ExportSubject) -> Files:
    """Both forms, and what is not known yet as a comment that pip stops at."""
    files = requirement_files(subject)
    for folder, part in subject.packages:
        if part.pending:
            words = comment(part.pending)
            files[f"{folder}/requirements.lock"] = lines_of(
                [
                    f"# PENDING: {words}",
                    "# Export anew after an online `rocwright lock`. Until then, nothing is installed:",
                    "--pending-see-the-comment-above",
                    *(f"# wanted: {comment(requirement)}" for requirement in part.wanted),
                ]
            )
        elif part.files or part.sdists:
            every = (*part.files, *(pin for sdist in part.sdists for pin in sdist.files))
            files[f"{folder}/requirements.lock"] = lines_of(requirement_lines(every))
            files[f"{folder}/pylock.toml"] = _pylock(every)
    if not files:
        files["requirements.lock"] = lines_of(
            ["# This lock builds with the packages of its base: no Python package is fetched."]
        )
    return files


def _pylock(pins: Sequence[FilePin]) -> ExportFile:
    from packaging.pylock import Pylock

    packages: dict[tuple[str, str], list[FilePin]] = {}
    for pin in pins:
        if isinstance(pin.origin, IndexOrigin):
            packages.setdefault((pin.origin.project, pin.origin.version), []).append(pin)
    data = {
        "lock-version": "1.0",
        "created-by": "rocwright",
        "packages": [
            {
                "name": project,
                "version": version,
                **_dists(rows),
            }
            for (project, version), rows in sorted(packages.items())
        ],
    }
    Pylock.from_dict(data)
    return ExportFile(tomlkit.dumps(data).encode())


def _dists(pins: Sequence[FilePin]) -> dict[str, object]:
    rows = [
        {
            "name": pin.filename,
            "path": pin.filename,
            "size": pin.size,
            "hashes": {"sha256": pin.sha256},
        }
        for pin in pins
    ]
    # a package is wheels, or a source distribution where there is none
    return {"wheels": rows} if str(rows[0]["name"]).endswith(".whl") else {"sdist": rows[0]}
