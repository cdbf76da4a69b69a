"""Small archives of other distributions, made of real packages and served on this machine."""

from __future__ import annotations

import http.server
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

BUSYBOX = Path("/bin/busybox")
"""Debian's static one: a whole user land that needs no library."""


def run(*words: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run a command that must succeed; gives what it prints."""
    done = subprocess.run([*map(str, words)], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
    return done.stdout


@dataclass(frozen=True, kw_only=True)
class Package:
    """A package: files by their path, links by theirs, empty folders, and what it needs."""

    name: str
    version: str
    needs: tuple[str, ...] = ()
    files: Mapping[str, str | Path] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()

    def lay_out(self, folder: Path) -> None:
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Path):
                shutil.copyfile(content, path)
            else:
                path.write_text(content)
            path.chmod(0o755 if "bin" in path.parts else 0o644)
        for name in self.folders:
            (folder / name).mkdir(parents=True)
        for name, aim in self.links.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to(aim)


def tool(name: str, version: str, *needs: str) -> Package:
    """A program that says its version."""
    said = f"#!/bin/sh\necho {name} {version}\n"
    return Package(name=name, version=version, needs=needs, files={f"usr/bin/{name}": said})


def user_land(name: str) -> Package:
    """A root file system: busybox, a user, and what names the distribution."""
    words = ("sh", "cat", "mkdir", "cp", "rm", "ls", "true", "env", "id", "tar", "nproc", "sed", "test", "ln")
    return Package(
        name=name,
        version="1-1",
        files={
            "usr/bin/busybox": BUSYBOX,
            "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
            "etc/group": "root:x:0:\n",
            "etc/os-release": "ID=tiny\nNAME=Tiny\n",
            **{f"{one}/.keep": "" for one in ("root", "tmp", "var/lib")},
        },
        # empty: pacstrap mounts the machine's own there, and a file would land in it
        folders=("proc", "sys", "dev", "run"),
        links={"bin": "usr/bin", "sbin": "usr/bin"} | {f"usr/bin/{one}": "busybox" for one in words},
    )


def pacman_repository(folder: Path, name: str, packages: Sequence[Package], keys: Path) -> None:
    """A repository as pacman reads it, every package signed by the key in `keys`."""
    folder.mkdir(parents=True)
    for one in packages:
        tree = folder / ".tree"
        tree.mkdir()
        one.lay_out(tree)
        about = [f"pkgname = {one.name}", f"pkgver = {one.version}", "pkgdesc = x", "arch = x86_64"]
        about += ["size = 1", "builddate = 1760000000", *(f"depend = {need}" for need in one.needs)]
        (tree / ".PKGINFO").write_text("\n".join(about) + "\n")
        made = folder / f"{one.name}-{one.version}-x86_64.pkg.tar.zst"
        inside = sorted(path.name for path in tree.iterdir())
        run("bsdtar", "--uid", "0", "--gid", "0", "--zstd", "-cf", made, *inside, cwd=tree)
        run("gpg", "--homedir", keys, "--batch", "--detach-sign", made)
        shutil.rmtree(tree)
    made_all = sorted(folder.glob("*.pkg.tar.zst"))
    run("repo-add", "--quiet", folder / f"{name}.db.tar.gz", *made_all)
    run("gpgconf", "--homedir", keys, "--kill", "all")


def dnf_repository(folder: Path, packages: Sequence[Package]) -> None:
    """A repository as dnf reads it."""
    folder.mkdir(parents=True)
    for one in packages:
        tree = folder / ".tree"
        tree.mkdir()
        one.lay_out(tree)
        version, _, release = one.version.partition("-")
        needs = "".join(f"Requires: {need}\n" for need in one.needs)
        listed = [f"/{path}" for path in (*one.files, *one.links)]
        listed += [f"%dir /{path}" for path in one.folders]
        (folder / "x.spec").write_text(
            f"Name: {one.name}\nVersion: {version}\nRelease: {release}\nSummary: x\nLicense: MIT\n"
            f"BuildArch: x86_64\nAutoReqProv: no\n{needs}%description\nx\n"
            f"%install\ncp -a {tree}/. %{{buildroot}}/\n%files\n" + "\n".join(listed) + "\n"
        )
        settings = {
            "_topdir": folder / ".top",
            "_rpmdir": folder,
            "_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
            "__os_install_post": "%{nil}",
        }
        defined = [word for name, value in settings.items() for word in ("--define", f"{name} {value}")]
        run("rpmbuild", "--quiet", "-bb", "--target", "x86_64", *defined, folder / "x.spec")
        for leftover in (tree, folder / ".top"):
            shutil.rmtree(leftover)
        (folder / "x.spec").unlink()
    run("createrepo_c", "--quiet", folder)


def signing_key(folder: Path) -> Path:
    """A key of its own for signing, and its public half in `key.asc`."""
    folder.mkdir(mode=0o700)
    gpg = ("gpg", "--homedir", folder)
    run(*gpg, "--batch", "--passphrase", "", "--quick-gen-key", "tiny@example", "ed25519")
    (folder / "key.asc").write_text(run(*gpg, "--armor", "--export"))
    run("gpgconf", "--homedir", folder, "--kill", "all")
    return folder


def trusting(keys: Path, folder: Path) -> Path:
    """A folder of keys as pacman keeps it, which trusts the key in `keys`."""
    folder.mkdir(mode=0o755)
    (folder / "pubring.gpg").touch()
    gpg = ("gpg", "--homedir", folder, "--batch", "--quiet")
    run(*gpg, "--import", keys / "key.asc")
    shown = run(*gpg, "--list-keys", "--with-colons").splitlines()
    fingerprint = next(line for line in shown if line.startswith("fpr")).split(":")[9]  # codespell:ignore fpr
    (keys / "trust").write_text(f"{fingerprint}:6:\n")
    run(*gpg, "--import-ownertrust", keys / "trust")
    run("gpgconf", "--homedir", folder, "--kill", "all")
    return folder


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address under which the folder is served."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
