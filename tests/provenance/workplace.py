"""A project that is built as far as its store says: an archive with an image of it, and a wheel."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from samples.project import COMPONENTS, write_catalog

from rocwheel_samples.wheel_making import METADATA, WHEEL, zip_of
from rocwright.catalog.load import Catalog
from rocwright.home import Home
from rocwright.model.steps import DebianSourceOrigin, FilePin, GitOrigin, Plan, Step
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project
from rocwright.provenance.layout import Artifact, lay_out
from tests.making import deb, digest, lock_of, put_output

COMMIT = "a" * 40
PROGRAM = Path("/bin/true").resolve()
BETA = "beta-1.0-py3-none-any.whl"
FILES = {
    "beta/__init__.py": b"answer = 42\n",
    "beta/libbeta.so": PROGRAM.read_bytes(),
    "beta-1.0.dist-info/METADATA": METADATA.replace(b"small", b"beta").replace(
        b"\n\n", b"\nRequires-Dist: alpha>=1\nRequires-Dist: numpy; extra == 'fast'\n\n", 1
    ),
    "beta-1.0.dist-info/WHEEL": WHEEL,
}
WHEEL_BYTES = zip_of(FILES)
"""As one backend packed it, once."""

SOURCES = {
    "alpha": GitOrigin(url="https://github.com/Example/alpha.git", commit=COMMIT),
    "beta": DebianSourceOrigin(suite="trixie", package="beta", version="1.0-2", architecture="amd64"),
}


def make_lock(catalog: Catalog) -> Lock:
    """A lock whose sources are of two kinds, and whose packages have a compiler among them."""
    lock = lock_of("tiny", catalog=catalog)
    packages = (deb("libc6"), deb("g++-15", "15.2.0-3"))
    return lock.model_copy(
        update={
            "components": tuple(
                one.model_copy(
                    update={
                        "place": f"somewhere that has {one.name}",
                        "files": (
                            FilePin(
                                filename=f"{one.name}.tar.gz",
                                sha256=digest(one.name),
                                size=9,
                                origin=SOURCES[one.name],
                            ),
                        ),
                    }
                )
                for one in lock.components
            ),
            "roots": tuple(
                root.model_copy(update={"packages": packages if root.role == "build" else packages[:1]})
                for root in lock.roots
            ),
        }
    )


def packed(name: str) -> bytes:
    """An archive with one program in it."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as file:
        for path, content in ((f"{name}/bin/program", PROGRAM.read_bytes()), (f"{name}/README", b"text")):
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(content), 0o755
            file.addfile(info, io.BytesIO(content))
    return gzip.compress(data.getvalue(), mtime=0)


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """The project, its lock and its plan; every artifact is in the store."""

    project: Project
    lock: Lock
    plan: Plan

    def step(self, name: str) -> Step:
        return next(one for one in self.plan.steps if one.name == name)

    def lay_out(self, said: list[str] | None = None) -> dict[str, Artifact]:
        """The artifacts laid out, by file name."""
        say = (said if said is not None else []).append
        return {one.path.name: one for one in lay_out(self.project, self.plan, self.lock, say)}


def make_workplace(
    home: Home,
    folder: Path,
    wheel: bytes = b"",
    components: Mapping[str, Mapping[str, object]] = COMPONENTS,
) -> Workplace:
    """A project in `folder`; `wheel` stands in for the wheel that was built."""
    catalog = write_catalog(folder / "catalog", components)
    lock = make_lock(catalog)
    project = Project(
        request=lock.request,
        lock_path=folder / "rocwright.lock",
        output=folder / "rocwright-out",
        home=home,
        catalog=catalog,
    )
    work = Workplace(project=project, lock=lock, plan=make_plan(lock, catalog))
    store = project.store
    for name, output, file, data in (
        ("alpha", "archive", "alpha-1.0.tar.gz", packed("alpha-1.0")),
        ("image/alpha", "image", "alpha-tiny.oci.tar", b"an image"),
        ("beta", "wheel", BETA, wheel or WHEEL_BYTES),
    ):
        put_named(store, work.step(name), output, file, data, folder)
    return work


def put_named(store, step, output, file, data, folder) -> None:  # type: ignore[no-untyped-def]
    """Keep `data` as the output of a step, under the file's own name."""
    put = put_output(store, step, output, data, folder)
    record = store.record(step.key)
    assert record is not None
    store.local.remove("record", step.key)
    store.put_record(record.model_copy(update={"outputs": (put.model_copy(update={"filename": file}),)}))
