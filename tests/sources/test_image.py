"""References, skopeo by its command lines, and what its failures are called."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from tests.sources.test_layers import bring, layer

from rocbase.errors import ExplainedError, FetchError, InputError, NetworkError, OutOfDiskError
from rocwheel_samples.tables import each
from rocwright.model.architecture import Architecture, host_architecture
from rocwright.model.steps import ImageOrigin
from rocwright.sources import skopeo
from rocwright.sources.image import (
    ARCHITECTURES,
    Reference,
    choose_digest,
    find_digest,
    pull,
)

DIGEST = f"sha256:{'1' * 64}"
OTHER = f"sha256:{'2' * 64}"
REFERENCE = Reference.parse("registry.example/team/x:1")
ORIGIN = ImageOrigin(reference="registry.example/team/x:1", digest=DIGEST)

Skopeo = Callable[[str], Path]


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Skopeo:
    """Stand a shell script in for skopeo; gives the file in which it writes down what it was asked."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def make(script: str) -> Path:
        path, log = folder / "skopeo", tmp_path / "skopeo.log"
        path.write_text(f'#!/bin/sh\necho "$*" >> {log}\n{script}\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return log

    return make


def asked(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


# references


@each(
    ("text", "parts"),
    [
        ("docker.io/library/ubuntu:24.04", ("docker.io/library/ubuntu", "24.04", "")),
        (f"quay.io/x/y@{DIGEST}", ("quay.io/x/y", "", DIGEST)),
        (f"localhost:5000/y:1@{DIGEST}", ("localhost:5000/y", "1", DIGEST)),
        ("localhost/y:1", ("localhost/y", "1", "")),
        ("127.0.0.1:5000/a/b-c__d.e:v1", ("127.0.0.1:5000/a/b-c__d.e", "v1", "")),
    ],
)
def test_a_reference_is_read_and_written(text: str, parts: tuple[str, str, str]) -> None:
    found = Reference.parse(text)
    assert (found.name, found.tag, found.digest) == parts
    assert str(found) == text


@each(
    "text",
    ["", "ubuntu", "ubuntu:24.04", "library/ubuntu:1", "docker.io/x", "-x.y/z:1", "docker.io/X:1",
     "docker.io/x:1 y", "docker.io/x@sha256:12", "docker.io/x@md5:1", "docker.io//x:1", "docker.io/../x:1", "http://docker.io/x:1"],
)  # fmt: skip
def test_a_name_that_is_short_or_odd_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not the full name of an image"):
        Reference.parse(text)


# what skopeo is asked

HOST = host_architecture()
MACHINE = ARCHITECTURES[HOST]
PLACE = "registry.example/team/x"


def test_without_skopeo_it_is_named_as_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="skopeo, which pulls images, is not installed") as caught:
        pull(ORIGIN, tmp_path / "pull", HOST)
    assert "apt-get install skopeo" in caught.value.next_step
    assert list((tmp_path / "pull").iterdir()) == []


def saves(tmp_path: Path) -> str:
    """A script that writes the archive of an image where it is asked to."""
    folder = tmp_path / "saved"
    folder.mkdir()
    saved = bring(folder, layer(("a", "f:1")), config={"architecture": MACHINE})
    return f'for word; do :; done; cp -r {saved} "${{word#dir:}}"'


def test_it_pulls_by_digest_alone_into_a_folder_of_ours(stand_in: Skopeo, tmp_path: Path) -> None:
    log = stand_in(saves(tmp_path))
    found = pull(ORIGIN, tmp_path / "pull", HOST)
    folder = tmp_path / "pull" / f"x-{'1' * 16}.pull"
    assert asked(log) == [
        f"--override-os linux --override-arch {MACHINE} --tmpdir {folder} copy --quiet --remove-signatures "
        f"docker://{PLACE}@{DIGEST} dir:{folder}/image"
    ]
    assert found.path.read_bytes()
    assert [path.name for path in (tmp_path / "pull").iterdir()] == [found.pin.filename]


def test_a_mirror_is_where_it_is_asked_for_and_its_own_name_is_what_is_pinned(
    stand_in: Skopeo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = stand_in(saves(tmp_path))
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", "registry.example/=http://localhost:5000/mirror/")
    found = pull(ORIGIN, tmp_path / "pull", HOST)
    [line] = asked(log)
    assert f"--src-tls-verify=false docker://localhost:5000/mirror/team/x@{DIGEST}" in line
    assert found.pin.origin == ORIGIN


def test_plain_http_is_never_asked_for_unless_a_mirror_says_so(stand_in: Skopeo, tmp_path: Path) -> None:
    log = stand_in(saves(tmp_path))
    pull(ORIGIN, tmp_path / "pull", HOST)
    assert "tls-verify" not in log.read_text()


def test_a_mirror_with_a_login_is_refused_before_any_command_line_has_it(
    stand_in: Skopeo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = stand_in(saves(tmp_path))
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", "registry.example/=https://ada:hunter2@localhost:5000/")
    with pytest.raises(InputError, match="contains a login") as caught:
        pull(ORIGIN, tmp_path / "pull", HOST)
    assert "hunter2" not in str(caught.value.as_dict())
    assert asked(log) == []


def test_a_folder_cannot_stand_in_for_a_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", "registry.example/=/srv/images/")
    with pytest.raises(InputError, match="a folder cannot replace the registry"):
        find_digest(REFERENCE, tmp_path / "find", HOST)


# digests


def manifest(*architectures: str) -> str:
    rows = [
        {"digest": f"sha256:{str(number) * 64}", "platform": {"os": "linux", "architecture": one}}
        for number, one in enumerate(architectures, 1)
    ]
    return json.dumps({"schemaVersion": 2, "manifests": rows})


def test_the_digest_of_one_manifest_is_that_of_its_bytes(stand_in: Skopeo, tmp_path: Path) -> None:
    text = '{"schemaVersion": 2}'
    stand_in(f"printf '%s' '{text}'")
    digest = f"sha256:{sha256(text.encode()).hexdigest()}"
    assert find_digest(REFERENCE, tmp_path / "find", HOST) == digest


def test_of_a_list_of_manifests_the_one_for_this_machine_is_taken(stand_in: Skopeo, tmp_path: Path) -> None:
    stand_in(f"echo '{manifest('s390x', MACHINE)}'")
    assert find_digest(REFERENCE, tmp_path / "find", HOST) == OTHER


def test_a_list_without_this_machine_says_which_there_are(stand_in: Skopeo, tmp_path: Path) -> None:
    stand_in(f"echo '{manifest('s390x', 'mips64le')}'")
    with pytest.raises(FetchError, match=f"is not for {MACHINE} machines") as caught:
        find_digest(REFERENCE, tmp_path / "find", HOST)
    assert caught.value.cause == "it exists for mips64le, s390x"


def test_a_manifest_that_is_not_what_its_digest_says_is_refused(stand_in: Skopeo, tmp_path: Path) -> None:
    stand_in("echo '{}'")
    with pytest.raises(FetchError, match="does not match the digest"):
        find_digest(Reference(PLACE, digest=DIGEST), tmp_path / "find", HOST)


@pytest.mark.parametrize(
    "text", ["no JSON", "[]", '{"manifests": 1}', '{"manifests": [1]}', '{"manifests": [{}]}']
)
def test_what_is_no_manifest_is_a_failure_of_the_image(text: str, stand_in: Skopeo, tmp_path: Path) -> None:
    stand_in(f"echo '{text}'")
    with pytest.raises(FetchError):
        find_digest(REFERENCE, tmp_path / "find", HOST)


def test_the_machines_of_images_are_known_by_their_name() -> None:
    assert ARCHITECTURES == {Architecture.X86_64: "amd64", Architecture.AARCH64: "arm64"}


# which digest is locked


@pytest.mark.parametrize(
    ("text", "known", "tag", "chosen", "told"),
    [
        ("registry.example/x:1", "", DIGEST, DIGEST, ""),
        ("registry.example/x:1", DIGEST, DIGEST, DIGEST, ""),
        ("registry.example/x:1", DIGEST, OTHER, DIGEST, f"has moved: {DIGEST} -> {OTHER}"),
        (f"registry.example/x:1@{DIGEST}", OTHER, OTHER, DIGEST, f"has moved: {DIGEST} -> {OTHER}"),
        (f"registry.example/x@{DIGEST}", "", OTHER, DIGEST, ""),
    ],
)
def test_what_is_known_is_locked_and_a_tag_that_moved_on_is_told(
    text: str, known: str, tag: str, chosen: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(skopeo, "digest", lambda place, _folder: place.digest or tag)
    found = choose_digest(Reference.parse(text), known, tmp_path / "find", HOST, lines.append)
    assert found == chosen
    assert told in "".join(lines) if told else lines == []


# failures

REFUSALS: list[tuple[str, type[ExplainedError], str]] = [
    ("pinging container registry x: dial tcp: lookup x: no such host", NetworkError, "does not answer"),
    ("dial tcp 127.0.0.1:1: connect: connection refused", NetworkError, "does not answer"),
    ("http: server gave HTTP response to HTTPS client", NetworkError, "does not answer"),
    ("tls: failed to verify certificate: x509: unknown authority", NetworkError, "does not answer"),
    ("reading manifest 1 in x: manifest unknown: manifest unknown", FetchError, "has no image"),
    ("Error response from daemon: manifest for x:1 not found", FetchError, "has no image"),
    ("unauthorized: authentication required", FetchError, "refuses access to"),
    ("requested access to the resource is denied", FetchError, "refuses access to"),
    ("reading JSON file /run/x/auth.json: permission denied", FetchError, "could not pull"),
    ("Digest did not match, expected sha256:1, got sha256:2", FetchError, "does not match the digest"),
    ("filesystem layer verification failed for digest sha256:1", FetchError, "does not match the digest"),
    ("writing blob: happened during read: unexpected EOF", FetchError, "does not match the digest"),
    ("no image found in manifest list for architecture amd64, OS linux", FetchError, "is not for"),
    ("no matching manifest for linux/amd64 in the manifest list entries", FetchError, "is not for"),
    ("write /x: no space left on device", OutOfDiskError, "did not fit"),
    ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock", FetchError, "could not pull"),
    ("", FetchError, "could not pull"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "kind", "what"), REFUSALS, ids=[one[0][:30] for one in REFUSALS])
def test_what_skopeo_says_has_a_class_and_a_next_step_and_nothing_is_kept(
    said: str, kind: type[ExplainedError], what: str, stand_in: Skopeo, tmp_path: Path
) -> None:
    (tmp_path / "said").write_text(said)
    stand_in(f"cat {tmp_path}/said >&2; exit 1")
    with pytest.raises(kind, match=what) as caught:
        pull(ORIGIN, tmp_path / "pull", HOST)
    assert caught.value.next_step
    assert said[:20] in caught.value.cause
    assert list((tmp_path / "pull").iterdir()) == []


def test_an_image_for_another_machine_is_refused(stand_in: Skopeo, tmp_path: Path) -> None:
    saved = bring(tmp_path, layer(("a", "f:1")), config={"architecture": "s390x"})
    stand_in(f'for word; do :; done; cp -r {saved} "${{word#dir:}}"')
    with pytest.raises(FetchError, match="is for s390x") as caught:
        pull(ORIGIN, tmp_path / "pull", HOST)
    assert MACHINE in caught.value.cause
    assert list((tmp_path / "pull").iterdir()) == []


def test_what_skopeo_notes_by_itself_stays_in_the_folder_of_the_pull(
    stand_in: Skopeo, tmp_path: Path
) -> None:
    script = (
        f'echo "$XDG_DATA_HOME $TMPDIR" > {tmp_path}/seen; mkdir -p "$XDG_DATA_HOME"; touch "$TMPDIR/big"\n'
    )
    stand_in(script + saves(tmp_path))
    pulled = pull(ORIGIN, tmp_path / "pull", HOST)
    assert all(Path(one).is_relative_to(tmp_path / "pull") for one in (tmp_path / "seen").read_text().split())
    assert list((tmp_path / "pull").iterdir()) == [pulled.path]
