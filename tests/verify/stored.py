"""An artifact that is in the store before anything is verified."""

from __future__ import annotations

import tarfile
from pathlib import Path

from samples.project import TinyProject
from tests.making import record_of

from rocwright.plan.make import make_plan
from rocwright.store.model import Output


def put_alpha(project: TinyProject, folder: Path) -> None:
    """Keep an archive of one file as what the step `alpha` made; it is packed in `folder`."""
    (folder / "file").write_text("x")
    path = folder / "alpha-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder / "file", "alpha-1/file")
    sha256, size = project.store.put_file(path)
    step = next(one for one in make_plan(project.locked, project.catalog).steps if one.name == "alpha")
    output = Output(name="archive", filename=path.name, sha256=sha256, size=size)
    project.store.put_record(record_of(step, output))
