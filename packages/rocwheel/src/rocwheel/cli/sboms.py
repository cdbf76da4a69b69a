"""Where SBOMs lie in a wheel."""

from __future__ import annotations

from pathlib import Path


def paths(wheel: Path) -> list[str]:
    """The files of a wheel that lie where SBOMs do (PEP 770)."""
    if wheel.suffix != ".whl" or not wheel.is_file():
        return []
    from rocbase.errors import ExplainedError
    from rocwheel.wheels.source import FileSource
    from rocwheel.wheels.zips import zip_members

    try:
        return [one.path for one in zip_members(FileSource(wheel)) if ".dist-info/sboms/" in one.path]
    except ExplainedError:
        # no whole wheel: what is wrong with it is told by who judges it
        return []
