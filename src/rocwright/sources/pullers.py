"""What pulls images: skopeo, podman, buildah or docker, each by its own commands.

They keep what they pull in a folder of rocwright's own. Proxies, credentials, and which registries may speak
plain HTTP are the engine's own settings; only a mirror that begins with http:// asks for plain HTTP itself.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from rocwright.errors import FetchError, InputError, NetworkError, OutOfDiskError, RocwrightError
from rocwright.processes import run as process

LOOK_SECONDS = 120
PULL_SECONDS = 4 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLocation:
    """An image where this machine gets it: its name there, a tag or a digest, the architecture wanted, and
    how long to look for it."""

    name: str
    tag: str
    digest: str
    architecture: str
    plain_http: bool = False
    seconds: float = LOOK_SECONDS

    def __str__(self) -> str:
        # no engine takes a tag beside a digest
        return f"{self.name}@{self.digest}" if self.digest else f"{self.name}:{self.tag}"


class Puller(Protocol):
    """One engine that pulls images. `folder` is the pull's own, empty at first and removed afterwards."""

    @property
    def name(self) -> str:
        """The engine's command."""

    @property
    def looks(self) -> bool:
        """Whether it can tell a digest without pulling the image."""

    def digest(self, place: ImageLocation, folder: Path) -> str:
        """The digest of the one manifest that is for the place's architecture."""

    def created(self, place: ImageLocation, folder: Path) -> str:
        """When the image was made, ISO 8601; empty where that is not told without pulling it."""

    def tags(self, place: ImageLocation, folder: Path) -> tuple[str, ...]:
        """All tags of the image's name; none where that is not told."""

    def save(self, place: ImageLocation, target: Path, folder: Path) -> None:
        """Write the image as an archive in the form of `docker save`."""

    def clean(self, folder: Path) -> None:
        """Take leave of what removing `folder` would not remove."""


@dataclass(frozen=True, slots=True)
class Skopeo:
    """skopeo: no storage at all, and any user may."""

    name: str = "skopeo"
    looks: bool = True

    def digest(self, place: ImageLocation, folder: Path) -> str:
        words = ["skopeo", *_for(place), "inspect", "--raw", *_tls(place), f"docker://{place}"]
        raw = _told(place, folder, words, place.seconds)
        digest = f"sha256:{sha256(raw.encode()).hexdigest()}"
        if place.digest not in ("", digest):
            raise _explain(place, self.name, f"the digest of what came does not match: it is {digest}")
        listed = json.loads(raw).get("manifests")
        return digest if listed is None else _instance(place, listed)

    def created(self, place: ImageLocation, folder: Path) -> str:
        words = ["skopeo", *_for(place), "inspect", "--config", *_tls(place), f"docker://{place}"]
        return str(json.loads(_told(place, folder, words, place.seconds)).get("created") or "")

    def tags(self, place: ImageLocation, folder: Path) -> tuple[str, ...]:
        words = ["skopeo", "list-tags", *_tls(place), f"docker://{place.name}"]
        return tuple(json.loads(_told(place, folder, words, place.seconds))["Tags"])

    def save(self, place: ImageLocation, target: Path, folder: Path) -> None:
        tls = ["--src-tls-verify=false"] if place.plain_http else []
        copy = [
            "copy",
            "--quiet",
            "--remove-signatures",
            *tls,
            f"docker://{place}",
            f"docker-archive:{target}",
        ]
        _told(place, folder, ["skopeo", *_for(place), "--tmpdir", str(folder), *copy])

    def clean(self, folder: Path) -> None:
        pass


class _PullsToLook:
    """An engine that has an image, or knows nothing of it."""

    def created(self, place: ImageLocation, folder: Path) -> str:
        return ""

    def tags(self, place: ImageLocation, folder: Path) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Podman(_PullsToLook):
    """podman, with a storage of its own in the pull's folder."""

    name: str = "podman"
    looks: bool = False

    def _words(self, folder: Path) -> list[str]:
        return ["podman", "--runroot", str(_short(folder)), *_folders(folder, "root", "tmpdir")]

    def _pull(self, place: ImageLocation, folder: Path) -> None:
        pull = ["pull", "--quiet", "--os", "linux", "--arch", place.architecture, *_tls(place)]
        _told(place, folder, [*self._words(folder), *pull, f"docker://{place}"])

    def digest(self, place: ImageLocation, folder: Path) -> str:
        self._pull(place, folder)
        look = ["image", "inspect", "--format", "{{.Digest}} {{range .RepoDigests}}{{.}} {{end}}", str(place)]
        asked, *all_of_it = _told(place, folder, [*self._words(folder), *look], LOOK_SECONDS).split()
        # of an image for several machines, what was asked for is the list, and the other is this machine's
        others = [one.rpartition("@")[2] for one in all_of_it]
        return next((one for one in others if one != asked), asked)

    def save(self, place: ImageLocation, target: Path, folder: Path) -> None:
        self._pull(place, folder)
        save = ["save", "--quiet", "--format", "docker-archive", "--output", str(target), str(place)]
        _told(place, folder, [*self._words(folder), *save])

    def clean(self, folder: Path) -> None:
        # its layers belong to the user's subordinate ids, which only podman can be
        process.run([*self._words(folder), "rmi", "--all", "--force"], timeout=600)
        shutil.rmtree(_short(folder), ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Buildah(_PullsToLook):
    """buildah, likewise."""

    name: str = "buildah"
    looks: bool = False

    def _words(self, folder: Path) -> list[str]:
        return ["buildah", *_folders(folder, "root", "runroot")]

    def _pull(self, place: ImageLocation, folder: Path) -> None:
        pull = ["pull", "--quiet", "--os", "linux", "--arch", place.architecture, *_tls(place)]
        _told(place, folder, [*self._words(folder), *pull, f"docker://{place}"])

    def digest(self, place: ImageLocation, folder: Path) -> str:
        self._pull(place, folder)
        look = ["inspect", "--type", "image", "--format", "{{.FromImageDigest}}", str(place)]
        return _told(place, folder, [*self._words(folder), *look], LOOK_SECONDS).strip()

    def save(self, place: ImageLocation, target: Path, folder: Path) -> None:
        self._pull(place, folder)
        _told(
            place, folder, [*self._words(folder), "push", "--quiet", str(place), f"docker-archive:{target}"]
        )

    def clean(self, folder: Path) -> None:
        process.run([*self._words(folder), "rmi", "--all", "--force"], timeout=600)


@dataclass(frozen=True, slots=True)
class Docker(_PullsToLook):
    """docker: its daemon's storage is the only one it has, and an image that was there before stays there.

    Plain HTTP is the daemon's own setting (`insecure-registries`).
    """

    name: str = "docker"
    looks: bool = True

    def digest(self, place: ImageLocation, folder: Path) -> str:
        insecure = ["--insecure"] if place.plain_http else []
        words = ["docker", "manifest", "inspect", "--verbose", *insecure, str(place)]
        told = json.loads(_told(place, folder, words, place.seconds))
        rows = [one["Descriptor"] for one in (told if isinstance(told, list) else [told])]
        return str(rows[0]["digest"]) if len(rows) == 1 else _instance(place, rows)

    def save(self, place: ImageLocation, target: Path, folder: Path) -> None:
        had = process.run(["docker", "image", "inspect", str(place)], timeout=LOOK_SECONDS).ok
        _told(
            place,
            folder,
            ["docker", "pull", "--quiet", "--platform", f"linux/{place.architecture}", str(place)],
        )
        _told(place, folder, ["docker", "save", "--output", str(target), str(place)])
        if not had:
            process.run(["docker", "image", "rm", str(place)], timeout=LOOK_SECONDS)

    def clean(self, folder: Path) -> None:
        pass


PULLERS: tuple[Puller, ...] = (Skopeo(), Podman(), Buildah(), Docker())
"""In the order of preference: the least that is needed first."""


def puller_at_hand() -> Puller:
    """The first that is installed. Raises InputError where none is."""
    for puller in PULLERS:
        if shutil.which(puller.name) is not None:
            return puller
    raise InputError(
        "nothing that pulls images is installed",
        cause=f"none of {', '.join(one.name for one in PULLERS)} was found on PATH",
        next_step="install skopeo (on Debian and Ubuntu: apt-get install skopeo), then try again",
    )


def _short(folder: Path) -> Path:
    """A folder for this pull whose path is short: podman takes no run-time folder above 50 characters."""
    link = folder / "runroot"
    if not link.is_symlink():
        link.symlink_to(tempfile.mkdtemp(prefix="rocwright-"))
    return link.readlink()


def _folders(folder: Path, *names: str) -> list[str]:
    return [word for name in names for word in (f"--{name}", str(folder / name))]


def _for(place: ImageLocation) -> list[str]:
    return ["--override-os", "linux", "--override-arch", place.architecture]


def _tls(place: ImageLocation) -> list[str]:
    return ["--tls-verify=false"] if place.plain_http else []


def _instance(place: ImageLocation, manifests: Sequence[dict[str, Any]]) -> str:
    platforms = [one.get("platform", {}) for one in manifests]
    for one, meant in zip(manifests, platforms, strict=True):
        if (meant.get("os"), meant.get("architecture")) == ("linux", place.architecture):
            return str(one["digest"])
    raise _other_architecture(place, ", ".join(sorted({str(one.get("architecture")) for one in platforms})))


def _other_architecture(place: ImageLocation, known: str) -> FetchError:
    return FetchError(
        f"the image {place} is not for {place.architecture} machines",
        cause=f"it is there for {known}",
        next_step="name an image for this architecture, or use another machine",
        subject=str(place),
    )


def _told(place: ImageLocation, folder: Path, words: Sequence[str], seconds: float = PULL_SECONDS) -> str:
    # what engines note and unpack on the way stays in the folder too; logins and settings are elsewhere
    env = os.environ | {"XDG_DATA_HOME": str(folder / "data"), "TMPDIR": str(folder)}
    done = process.run(words, timeout=seconds, env=env)
    if not done.ok:
        late = "i/o timeout: no answer in time"
        raise _explain(place, words[0], late if done.timed_out else done.stderr)
    return done.stdout


_FULL = ("no space left on device",)
_NOT_AS_SAID = (
    *("did not match", "does not match", "digest mismatch", "mismatched digest"),
    *("unexpected eof", "unexpected end of", "filesystem layer verification failed"),
)
_OTHER = ("no image found in manifest list", "no image found in image index", "no matching manifest")
_ABSENT = ("manifest unknown", "name unknown", "not found", "repository does not exist")
_REFUSED = ("unauthorized", "resource is denied", "access denied", "authentication required")
_SILENT = (
    *("connection refused", "no such host", "dial tcp", "i/o timeout", "tls:", "x509", "response to https"),
    *("network is unreachable", "connection reset", "deadline exceeded", "pinging container registry"),
    *("bad gateway", "service unavailable", "too many requests"),
)


def _explain(place: ImageLocation, engine: str, said: str) -> RocwrightError:
    """An engine's words as one of our failures. They come from a few libraries, which say them much alike."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    last = lines[-1] if lines else f"{engine} said nothing"
    text = last.lower()
    about = {"cause": f"{engine}: {last}"[:700], "subject": str(place)}
    if any(sign in text for sign in _FULL):
        next_step = "free some room, or set ROCWRIGHT_HOME to a larger disk"
        return OutOfDiskError(f"the image {place} did not fit on the disk", **about, next_step=next_step)
    if any(sign in text for sign in _OTHER):
        return FetchError(
            f"the image {place} is not for {place.architecture} machines",
            **about,
            next_step="name an image for this architecture, or use another machine",
        )
    if any(sign in text for sign in _NOT_AS_SAID):
        return FetchError(
            f"what the registry gives for {place} is not what the digest says",
            **about,
            next_step="try again; if it stays so, do not trust that registry or mirror",
        )
    if any(sign in text for sign in _ABSENT):
        return FetchError(
            f"the registry has no image {place}",
            **about,
            next_step="check the name; an image that was removed upstream is only had from a mirror",
        )
    if any(sign in text for sign in _REFUSED):
        return FetchError(
            f"the registry does not give {place} to you",
            **about,
            next_step=f"check the name, and log in with {engine} login where the image is private",
        )
    if any(sign in text for sign in _SILENT):
        return NetworkError(
            f"the registry of {place} does not answer",
            **about,
            next_step="check the network, and the mirrors in config.toml, then try again",
        )
    return FetchError(
        f"{engine} could not pull {place}",
        **about,
        next_step=f"see what {' '.join(('', engine, 'pull', str(place))).strip()} says",
    )
