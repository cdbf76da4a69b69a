"""A program that stands for one outside, whose name it has: it records its arguments, and leaves the files
that a script needs of it."""

from __future__ import annotations

import io
import json
import os
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

NAME, WORDS = Path(sys.argv[0]).name, sys.argv[1:]
HASH = "0" * 64


def record() -> None:
    """Write this call down, next to the program."""
    with Path(sys.argv[0]).with_name(".calls").open("a") as log:
        log.write(json.dumps({"program": NAME, "words": WORDS, "folder": str(Path.cwd())}) + "\n")


def value(flag: str) -> str:
    return WORDS[WORDS.index(flag) + 1]


def archive(path: Path, *parts: str) -> None:
    """Make an archive of empty files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as packed:
        for part in parts or ("outer/file", "outer/vendor/llama.cpp/file"):
            packed.addfile(tarfile.TarInfo(part), io.BytesIO(b""))


def git() -> None:
    folder = Path(value("-C")) if "-C" in WORDS else Path()
    if "init" in WORDS:
        (folder / ".git/info").mkdir(parents=True)
        (folder / "file").touch()
    if "fetch" in WORDS:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".commit").write_text(WORDS[-1])
    if "rev-parse" in WORDS:
        print((folder / ".commit").read_text())


def python3() -> None:
    if WORDS[:1] == ["sources/sdist.py"]:
        archive(Path(WORDS[3]) / f"{WORDS[1]}-{WORDS[2]}.tar.gz")
    elif WORDS[:3] == ["-m", "pip", "download"]:
        listed = Path(value("--requirement"))
        assert "==" in listed.read_text(), f"{listed} names no package"
        (Path(value("--dest")) / "package-1-py3-none-any.whl").touch()
    elif WORDS[:2] == ["-m", "zipfile"]:
        Path(WORDS[-1], "outer").mkdir(parents=True)
        Path(WORDS[-1], "outer/file").touch()
    elif WORDS[:1] == ["edits/apply.py"]:
        assert json.loads(Path(WORDS[1]).read_text()), "no edits"
        assert Path(WORDS[2]).is_dir(), f"{WORDS[2]} is no tree"
    else:
        sys.exit(f"python3 {WORDS}: nothing stands for that")


def apt_get() -> None:
    if "source" in WORDS:
        archive(Path(f"{WORDS[-1].partition('=')[0]}_1.orig.tar.xz"))
        archive(Path("x_1.debian.tar.xz"), *json.loads(os.environ["DEBIAN_FILES"]), "debian/rules")


def mmdebstrap() -> None:
    sources = Path(WORDS[-1], "etc/apt/sources.list")
    sources.parent.mkdir(parents=True)
    sources.write_text("deb http://archive.example suite main\n")


def sums() -> None:
    for path in WORDS:
        if not path.startswith("-"):
            print(f"{HASH}  {path}")


def nspawn() -> None:
    """Leave the outputs of the step whose script is run."""
    place = next((word for word in WORDS if word.endswith(":/out")), "")
    for output in json.loads(os.environ.get("OUTPUTS", "{}")).get(Path(WORDS[-1]).name, []):
        path = Path(place.removeprefix("--bind=").removesuffix(":/out"), output)
        archive(path, "file")


def engine() -> None:
    if WORDS[:1] == ["create"]:
        print("container")
    if WORDS[:1] == ["export"]:
        with tarfile.open(fileobj=sys.stdout.buffer, mode="w|"):
            pass


PROGRAMS: dict[str, Callable[[], None]] = {
    "git": git,
    "python3": python3,
    "apt-get": apt_get,
    "mmdebstrap": mmdebstrap,
    "sha256sum": sums,
    "systemd-nspawn": nspawn,
    "podman": engine,
    "docker": engine,
    "curl": lambda: archive(Path(value("--output"))),
    "getent": lambda: print(f"{WORDS[-1]}:x:4{len(WORDS[-1])}:"),
    "sudo": lambda: os.execvp("env", ["env", *WORDS]),
    "id": lambda: print(os.environ.get("USER_ID", "0")),
}

if __name__ == "__main__":
    record()
    PROGRAMS.get(NAME, lambda: None)()
