"""A source distribution is read, and nothing of it is run."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from rocbase.errors import FetchError
from rocwright.sources.sdist import DEFAULT_BUILD, Sdist, read_sdist

INFO = "Metadata-Version: 2.1\nName: Some.Thing\nVersion: 1.0\n"


def sdist(**files: str) -> bytes:
    """A source distribution with these files; `__` in a name stands for `/`, `_dot_` for a dot."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, text in files.items():
            data = text.encode()
            info = tarfile.TarInfo(f"thing-1.0/{name.replace('__', '/').replace('_dot_', '.')}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return target.getvalue()


def read(tmp_path: Path, data: bytes) -> Sdist:
    path = tmp_path / "thing-1.0.tar.gz"
    path.write_bytes(data)
    return read_sdist(path, path.name)


def files(info: str = INFO, **more: str) -> dict[str, str]:
    return {"PKG-INFO": info, "setup_dot_py": "raise SystemExit('it was run')", **more}


def test_what_it_needs_is_in_its_metadata(tmp_path: Path) -> None:
    info = f"{INFO}Requires-Dist: one>=2\nProvides-Extra: more\nRequires-Dist: two; extra == 'more'\n"
    found = read(tmp_path, sdist(**files(info)))
    assert (found.name, found.version) == ("some-thing", "1.0")
    assert found.requires == ("one>=2", "two; extra == 'more'")
    assert found.build == DEFAULT_BUILD


def test_an_old_one_says_it_in_its_egg_info(tmp_path: Path) -> None:
    text = (
        'one>=2\n\n[:python_version < "3"]\nolder\n\n[more]\ntwo\n\n[more:sys_platform == "win32"]\nthree\n'
    )
    found = read(tmp_path, sdist(**files(), **egg_info(text)))
    assert found.requires == (
        "one>=2",
        'older ; (python_version < "3")',
        'two ; extra == "more"',
        'three ; (sys_platform == "win32") and extra == "more"',
    )


def egg_info(text: str) -> dict[str, str]:
    return {"src__thing.egg-info__requires.txt": text}


@pytest.mark.parametrize(
    ("text", "build"),
    [
        (
            '[build-system]\nrequires = ["hatchling >= 1"]\nbuild-backend = "hatchling.build"\n',
            ("hatchling>=1",),
        ),
        ('[build-system]\nrequires = ["setuptools<80"]\n', ("setuptools<80", *DEFAULT_BUILD)),
        ("[tool.other]\nx = 1\n", DEFAULT_BUILD),
    ],
)
def test_what_builds_it_is_in_its_project_file(tmp_path: Path, text: str, build: tuple[str, ...]) -> None:
    assert read(tmp_path, sdist(**files(pyproject_dot_toml=text))).build == build


@pytest.mark.parametrize(
    "broken",
    [
        {"setup_dot_py": ""},
        files("Requires-Dist: a b c\n"),
        files(pyproject_dot_toml="[build-system"),
        files(pyproject_dot_toml='[build-system]\nrequires = ["--index-url=x"]\n'),
        files(pyproject_dot_toml="[build-system]\nrequires = 3\n"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(tmp_path: Path, broken: dict[str, str]) -> None:
    with pytest.raises(FetchError, match=r"thing-1\.0\.tar\.gz") as caught:
        read(tmp_path, sdist(**broken))
    assert "rocwright-sdist" not in caught.value.cause


def test_one_that_would_leave_its_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="not safe to unpack"):
        read(tmp_path, sdist(**files(), **{"..__..__x": "out"}))
