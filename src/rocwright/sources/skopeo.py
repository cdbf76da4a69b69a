"""Images of registries by skopeo, which needs no storage, no daemon and no rights.

Proxies, credentials, and which registries may speak plain HTTP are skopeo's own settings; only a mirror that
begins with http:// asks for plain HTTP itself. No login is ever in a command line.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from rocbase.errors import ExplainedError, FetchError, InputError, NetworkError, OutOfDiskError
from rocbase.processes import run as process
from rocwright.sources.patience import asked, within

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
        # skopeo takes no tag beside a digest
        return f"{self.name}@{self.digest}" if self.digest else f"{self.name}:{self.tag}"


def digest(place: ImageLocation, folder: Path) -> str:
    """The digest of the one manifest that is for the place's architecture.

    Raises what all functions here raise: InputError where skopeo is not installed, OutOfDiskError,
    NetworkError without an answer, FetchError for an image that is not there, not for you, or not what its
    digest says.
    `folder` takes what skopeo writes on the way; whoever made it removes it.
    """
    words = [*_for(place), "inspect", "--raw", *_tls(place), f"docker://{place}"]
    raw = _run(place, folder, words, within(place.seconds))
    computed = f"sha256:{sha256(raw.encode()).hexdigest()}"
    if place.digest not in ("", computed):
        raise _explain(place, f"the digest of what came does not match: it is {computed}")
    with _readable(place):
        listed = json.loads(raw).get("manifests")
        return computed if listed is None else _instance(place, listed)


def created(place: ImageLocation, folder: Path) -> str:
    """When the image was made, ISO 8601; empty where it does not say so. Raises as `digest`."""
    words = [*_for(place), "inspect", "--config", *_tls(place), f"docker://{place}"]
    output = _run(place, folder, words, within(place.seconds))
    with _readable(place):
        return str(json.loads(output).get("created") or "")


def tags(place: ImageLocation, folder: Path) -> tuple[str, ...]:
    """All tags of the image's name. Raises as `digest`."""
    words = ["list-tags", *_tls(place), f"docker://{place.name}"]
    output = _run(place, folder, words, within(place.seconds))
    with _readable(place):
        return tuple(map(str, json.loads(output)["Tags"]))


def save(place: ImageLocation, target: Path, folder: Path) -> None:
    """Write the image into the folder `target`, its blobs as they come, each checked. Raises as `digest`."""
    tls = ["--src-tls-verify=false"] if place.plain_http else []
    copy = ["copy", "--quiet", "--remove-signatures", *tls, f"docker://{place}", f"dir:{target}"]
    _run(place, folder, [*_for(place), "--tmpdir", str(folder), *copy])


@contextmanager
def _readable(place: ImageLocation) -> Iterator[None]:
    """What a registry sends is a stranger's."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise FetchError(
            f"the registry's description of {place} cannot be read",
            cause=f"{type(error).__name__}: {error}"[:300],
            next_step="try again; if it happens again, the image is broken where it was published",
            subject=str(place),
        ) from error


def _for(place: ImageLocation) -> list[str]:
    return ["--override-os", "linux", "--override-arch", place.architecture]


def _tls(place: ImageLocation) -> list[str]:
    return ["--tls-verify=false"] if place.plain_http else []


def _instance(place: ImageLocation, manifests: Sequence[dict[str, Any]]) -> str:
    platforms = [manifest.get("platform", {}) for manifest in manifests]
    for manifest, platform in zip(manifests, platforms, strict=True):
        if (platform.get("os"), platform.get("architecture")) == ("linux", place.architecture):
            return str(manifest["digest"])
    architectures = ", ".join(sorted({str(platform.get("architecture")) for platform in platforms}))
    raise _OTHER_ARCHITECTURE.of(place, f"it exists for {architectures}")


def _run(place: ImageLocation, folder: Path, words: Sequence[str], seconds: float = PULL_SECONDS) -> str:
    if shutil.which("skopeo") is None:
        raise InputError(
            "skopeo, which pulls images, is not installed",
            cause="no program of that name was found on PATH",
            next_step="install it (on Debian and Ubuntu: apt-get install skopeo), then try again",
        )
    # what skopeo unpacks on the way stays in the folder too; logins and settings are elsewhere
    env = os.environ | {"XDG_DATA_HOME": str(folder / "data"), "TMPDIR": str(folder)}
    with asked(f"docker://{place.name}"):
        completed = process.run(["skopeo", *words], timeout=seconds, env=env)
        if not completed.ok:
            raise _explain(
                place, "i/o timeout: no answer in time" if completed.timed_out else completed.stderr
            )
    return completed.stdout


@dataclass(frozen=True, slots=True)
class _Told:
    """A kind of failure: how it is said, its class, what is said of it, and what to do. In texts `place` and
    `architecture` are filled in."""

    signs: tuple[str, ...]
    error: type[ExplainedError]
    message: str
    next_step: str

    def of(self, place: ImageLocation, cause: str) -> ExplainedError:
        """The failure of this kind that befell an image."""
        named = {"place": place, "architecture": place.architecture}
        return self.error(
            self.message.format(**named),
            cause=cause[:700],
            next_step=self.next_step.format(**named),
            subject=str(place),
        )


_OTHER_ARCHITECTURE = _Told(
    ("no image found in manifest list", "no image found in image index", "no matching manifest"),
    FetchError,
    "the image {place} is not for {architecture} machines",
    "name an image for this architecture, or use another machine",
)

# What skopeo's words mean, the first that fits; registries and its libraries say them in several ways.
_KINDS = (
    _Told(
        ("no space left on device",),
        OutOfDiskError,
        "the image {place} did not fit on the disk",
        "free some room, or set ROCWRIGHT_HOME to a larger disk",
    ),
    _OTHER_ARCHITECTURE,
    _Told(
        (
            *("did not match", "does not match", "digest mismatch", "mismatched digest"),
            *("unexpected eof", "unexpected end of", "filesystem layer verification failed"),
        ),
        FetchError,
        "what the registry serves for {place} does not match the digest",
        "try again; if it happens again, do not trust that registry or mirror",
    ),
    _Told(
        ("manifest unknown", "name unknown", "not found", "repository does not exist"),
        FetchError,
        "the registry has no image {place}",
        "check the name; an image that was removed upstream can only come from a mirror",
    ),
    _Told(
        ("unauthorized", "resource is denied", "access denied", "authentication required"),
        FetchError,
        "the registry refuses access to {place}",
        "check the name; for a private image: skopeo login REGISTRY",
    ),
    _Told(
        (
            *("connection refused", "no such host", "dial tcp", "i/o timeout", "tls:", "x509"),
            *("response to https", "network is unreachable", "connection reset", "deadline exceeded"),
            *("pinging container registry", "bad gateway", "service unavailable", "too many requests"),
        ),
        NetworkError,
        "the registry of {place} does not answer",
        "check the network, and the mirrors in config.toml, then try again",
    ),
    _Told(
        ("",), FetchError, "skopeo could not pull {place}", "try it by hand: skopeo inspect docker://{place}"
    ),
)


def _explain(place: ImageLocation, output: str) -> ExplainedError:
    """skopeo's words as one of our failures."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    last = lines[-1] if lines else "no output"
    kind = next(candidate for candidate in _KINDS if any(sign in last.lower() for sign in candidate.signs))
    return kind.of(place, f"skopeo: {last}")
