"""The tools root in tests: the host's own programs, or one that all tests of a run share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from samples.fetched import FOLDER

from rocbase.processes import run as process
from rocwright.config import store_of
from rocwright.diagnosis.facts import host_facts
from rocwright.home import Home
from rocwright.sandbox.podman import base_words
from rocwright.sources.bases.tools import Tools


class HostTools(Tools):
    """The programs of a Debian host, which the tests have installed."""

    root = Path("/")
    digest = ""


def shared_tools() -> Home:
    """Return the home whose tools root all tests share; the first that needs it makes it."""
    home = Home(FOLDER)
    Tools(home).record  # noqa: B018 - it is made here
    return home


def give_tools(home: Home, shared: Home) -> None:
    """Put the shared tools root into the store of a home."""
    record = Tools(shared).record
    with store_of(shared).opened(record.output("root").sha256) as packed:
        store_of(home).put_file(Path(packed.name))
    store_of(home).put_record(record)


@contextmanager
def debian_image(folder: Path) -> Iterator[None]:
    """Have podman's storage hold Debian's image, as a registry would bring it; keep one that is there."""
    facts, podman = host_facts().tools_root, ["podman", *base_words()]
    if process.run([*podman, "image", "exists", facts.image]).ok:
        yield
        return
    root, dated = folder / "image.tar", '--aptopt=Acquire::Check-Valid-Until "false"'
    made = process.run(["mmdebstrap", "--variant=apt", "--skip=output/dev", dated, facts.suite, root])
    assert made.ok, made.stderr
    try:
        assert process.run([*podman, "import", root, facts.image]).ok
        yield
    finally:
        process.run([*podman, "rmi", "--force", facts.image])
