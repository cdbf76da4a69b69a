"""A real registry on this machine, and images pushed to it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rocwheel_samples import MissingError
from rocwright.model.architecture import host_architecture
from rocwright.sources.bases.roots import remove_tree
from rocwright.sources.image import ARCHITECTURES

HOST = host_architecture()


@dataclass
class Registry:
    """The Debian archive's docker-registry, on a port of this machine, with its blobs in `folder`."""

    folder: Path
    port: int

    def push(self, tag: str, root: Path, *, architecture: str = "", env: str = "") -> str:
        """Push an image of this root file system; gives the digest of its manifest."""
        storage = [
            "--root",
            self.folder / "push",
            "--runroot",
            self.folder / "push-run",
            "--storage-driver",
            "vfs",
        ]

        def buildah(*words: str | Path) -> str:
            done = subprocess.run(
                ["buildah", *map(str, storage), *map(str, words)], capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            return done.stdout.strip()

        container = buildah("from", "scratch")
        buildah("add", "--quiet", container, root, "/")
        buildah("config", "--arch", architecture or ARCHITECTURES[HOST], container)
        if env:
            buildah("config", "--env", env, container)
        digest = self.folder / "digest"
        image = buildah("commit", "--quiet", "--rm", container)
        place = f"docker://127.0.0.1:{self.port}/team/debian:{tag}"
        buildah("push", "--quiet", "--tls-verify=false", "--digestfile", digest, image, place)
        return digest.read_text().strip()

    def push_saved(self, tag: str, saved: Path) -> str:
        """Push an image that is saved in an archive, which takes no storage."""
        digest = self.folder / "digest"
        command = ["skopeo", "copy", "--quiet", "--dest-tls-verify=false", "--digestfile", str(digest)]
        place = f"docker://127.0.0.1:{self.port}/team/debian:{tag}"
        done = subprocess.run([*command, f"docker-archive:{saved}", place], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return digest.read_text().strip()

    def blob(self, digest: str) -> Path:
        hexadecimal = digest.removeprefix("sha256:")
        blobs = self.folder / "data" / "docker" / "registry" / "v2" / "blobs" / "sha256"
        return blobs / hexadecimal[:2] / hexadecimal / "data"


@contextmanager
def serving_registry(folder: Path) -> Iterator[Registry]:
    """The registry, its blobs below `folder`; raises MissingError where it is not installed."""
    if shutil.which("docker-registry") is None or shutil.which("buildah") is None:
        raise MissingError("docker-registry or buildah is not installed: tools/prepare test")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "config.yml").write_text(
        "version: 0.1\nlog: {level: error}\n"
        f"storage: {{filesystem: {{rootdirectory: {folder}/data}}}}\nhttp: {{addr: '127.0.0.1:{port}'}}\n"
    )
    with subprocess.Popen(
        ["docker-registry", "serve", folder / "config.yml"], stderr=subprocess.DEVNULL
    ) as serving:
        try:
            for _ in range(100):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield Registry(folder, port)
        finally:
            serving.terminate()
    remove_tree(folder)
