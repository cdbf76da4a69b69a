"""References, engines by their command lines, and what their failures are called."""

from __future__ import annotations

import json
import platform
import re
import stat
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import cast

import pytest
from tests.sources.test_layers import layer, save

from rocwright.errors import FetchError, InputError, NetworkError, OutOfDiskError, RocwrightError
from rocwright.model.steps import ImageOrigin
from rocwright.sources.image import (
    ARCHITECTURES,
    Reference,
    choose_digest,
    find_digest,
    machine_architecture,
    pull,
)
from rocwright.sources.pullers import PULLERS, Buildah, Docker, Podman, Puller, Skopeo, puller_at_hand

DIGEST = f"sha256:{'1' * 64}"
OTHER = f"sha256:{'2' * 64}"
REFERENCE = Reference.parse("registry.example/team/x:1")
ORIGIN = ImageOrigin(reference="registry.example/team/x:1", digest=DIGEST)

Engine = Callable[..., Path]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Stand a shell script in for an engine; gives the file in which it writes down what it was asked."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def make(name: str, script: str) -> Path:
        path, log = folder / name, tmp_path / f"{name}.log"
        path.write_text(f'#!/bin/sh\necho "$*" >> {log}\n{script}\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return log

    return make


def asked(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


# references


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    "text",
    ["", "ubuntu", "ubuntu:24.04", "library/ubuntu:1", "docker.io/x", "-x.y/z:1", "docker.io/X:1",
     "docker.io/x:1 y", "docker.io/x@sha256:12", "docker.io/x@md5:1", "docker.io//x:1", "docker.io/../x:1", "http://docker.io/x:1"],
)  # fmt: skip
def test_a_name_that_is_short_or_odd_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not the full name of an image"):
        Reference.parse(text)


# which engine


def test_the_first_engine_that_is_installed_is_taken(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for puller in reversed(PULLERS):
        engine(puller.name, "")
        assert puller_at_hand() == puller


def test_without_an_engine_the_one_to_install_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="nothing that pulls images") as caught:
        puller_at_hand()
    assert "skopeo" in caught.value.next_step


# what they are asked

MACHINE = machine_architecture()
PLACE = "registry.example/team/x"


def saves(tmp_path: Path, after: str) -> str:
    """A script that writes the archive of an image to the word that follows, or to the file of, `after`."""
    folder = tmp_path / "saved"
    folder.mkdir()
    saved = save(folder, layer(("a", "f:1")), config={"architecture": MACHINE})
    return (
        f'for word; do case "$before $word" in "{after} "*) cp {saved} "$word";; '
        f'*" docker-archive:"*) cp {saved} "${{word#docker-archive:}}";; esac; before=$word; done'
    )


@pytest.mark.parametrize(
    ("puller", "expected"),
    [
        (
            Skopeo(),
            [f"--override-os linux --override-arch {MACHINE} --tmpdir FOLDER copy --quiet "
             f"--remove-signatures docker://{PLACE}@{DIGEST} docker-archive:FOLDER/image.tar"],
        ),
        (
            Podman(),
            ["--runroot SHORT --root FOLDER/root --tmpdir FOLDER/tmpdir pull --quiet --os linux "
             f"--arch {MACHINE} docker://{PLACE}@{DIGEST}",
             "--runroot SHORT --root FOLDER/root --tmpdir FOLDER/tmpdir save --quiet --format docker-archive "
             f"--output FOLDER/image.tar {PLACE}@{DIGEST}",
             "--runroot SHORT --root FOLDER/root --tmpdir FOLDER/tmpdir rmi --all --force"],
        ),
        (
            Buildah(),
            [f"--root FOLDER/root --runroot FOLDER/runroot pull --quiet --os linux --arch {MACHINE} "
             f"docker://{PLACE}@{DIGEST}",
             f"--root FOLDER/root --runroot FOLDER/runroot push --quiet {PLACE}@{DIGEST} "
             "docker-archive:FOLDER/image.tar",
             "--root FOLDER/root --runroot FOLDER/runroot rmi --all --force"],
        ),
        (
            Docker(),
            [f"image inspect {PLACE}@{DIGEST}",
             f"pull --quiet --platform linux/{MACHINE} {PLACE}@{DIGEST}",
             f"save --output FOLDER/image.tar {PLACE}@{DIGEST}"],
        ),
    ],
    ids=lambda one: getattr(one, "name", ""),
)  # fmt: skip
def test_each_engine_pulls_by_digest_alone_into_a_folder_of_ours(
    puller: Puller, expected: list[str], engine: Engine, tmp_path: Path
) -> None:
    log = engine(puller.name, saves(tmp_path, "--output"))
    found = pull(ORIGIN, tmp_path / "pull", puller)
    folder = str(tmp_path / "pull" / f"x-{'1' * 16}.pull")
    text = log.read_text().replace(folder, "FOLDER")
    short = re.findall(r"--runroot (/\S+)", text)
    assert re.sub(r"--runroot /\S+", "--runroot SHORT", text).splitlines() == expected
    assert all(len(one) <= 50 and not Path(one).exists() for one in short)
    assert found.path.read_bytes()
    assert [path.name for path in (tmp_path / "pull").iterdir()] == [found.pin.filename]


def test_docker_removes_an_image_that_was_not_there_before(engine: Engine, tmp_path: Path) -> None:
    log = engine("docker", '[ "$1 $2" = "image inspect" ] && exit 1\n' + saves(tmp_path, "--output"))
    pull(ORIGIN, tmp_path / "pull", Docker())
    assert asked(log)[-1] == f"image rm {PLACE}@{DIGEST}"


def test_all_engines_give_the_same_bytes(engine: Engine, tmp_path: Path) -> None:
    script = saves(tmp_path, "--output")
    pins = set()
    for puller in PULLERS:
        engine(puller.name, script)
        pins.add(pull(ORIGIN, tmp_path / puller.name, puller).pin)
    assert len(pins) == 1


def test_a_mirror_is_where_it_is_asked_for_and_its_own_name_is_what_is_pinned(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = engine("skopeo", saves(tmp_path, "--output"))
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", "registry.example/=http://localhost:5000/mirror/")
    found = pull(ORIGIN, tmp_path / "pull", Skopeo())
    [line] = asked(log)
    assert f"--src-tls-verify=false docker://localhost:5000/mirror/team/x@{DIGEST}" in line
    assert found.pin.origin == ORIGIN


def test_plain_http_is_never_asked_for_unless_a_mirror_says_so(engine: Engine, tmp_path: Path) -> None:
    script = saves(tmp_path, "--output")
    for puller in PULLERS:
        log = engine(puller.name, script)
        pull(ORIGIN, tmp_path / f"pull-{puller.name}", puller)
        assert "tls-verify" not in log.read_text()


def test_a_folder_cannot_stand_in_for_a_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", "registry.example/=/srv/images/")
    with pytest.raises(InputError, match="a folder cannot stand in"):
        find_digest(REFERENCE, tmp_path / "find", Skopeo())


# digests


def manifest(*architectures: str) -> str:
    rows = [
        {"digest": f"sha256:{str(number) * 64}", "platform": {"os": "linux", "architecture": one}}
        for number, one in enumerate(architectures, 1)
    ]
    return json.dumps({"schemaVersion": 2, "manifests": rows})


def test_the_digest_of_one_manifest_is_that_of_its_bytes(engine: Engine, tmp_path: Path) -> None:
    text = '{"schemaVersion": 2}'
    engine("skopeo", f"printf '%s' '{text}'")
    digest = f"sha256:{sha256(text.encode()).hexdigest()}"
    assert find_digest(REFERENCE, tmp_path / "find", Skopeo()) == digest


def test_of_a_list_of_manifests_the_one_for_this_machine_is_taken(engine: Engine, tmp_path: Path) -> None:
    engine("skopeo", f"echo '{manifest('s390x', MACHINE)}'")
    assert find_digest(REFERENCE, tmp_path / "find", Skopeo()) == OTHER


def test_a_list_without_this_machine_says_which_there_are(engine: Engine, tmp_path: Path) -> None:
    engine("skopeo", f"echo '{manifest('s390x', 'mips64le')}'")
    with pytest.raises(FetchError, match=f"is not for {MACHINE} machines") as caught:
        find_digest(REFERENCE, tmp_path / "find", Skopeo())
    assert caught.value.cause == "it is there for mips64le, s390x"


def test_a_manifest_that_is_not_what_its_digest_says_is_refused(engine: Engine, tmp_path: Path) -> None:
    engine("skopeo", "echo '{}'")
    with pytest.raises(FetchError, match="is not what the digest says"):
        find_digest(Reference(PLACE, digest=DIGEST), tmp_path / "find", Skopeo())


@pytest.mark.parametrize("digests", [[DIGEST], [OTHER, DIGEST], [DIGEST, OTHER]])
def test_podman_tells_this_machines_digest_and_not_that_of_the_list(
    engine: Engine, tmp_path: Path, digests: list[str]
) -> None:
    told = " ".join([OTHER if OTHER in digests else DIGEST, *(f"{PLACE}@{one}" for one in digests)])
    engine("podman", f'case "$*" in *inspect*) echo "{told}";; esac')
    assert find_digest(REFERENCE, tmp_path / "find", Podman()) == DIGEST


@pytest.mark.parametrize("listed", [True, False])
def test_docker_tells_the_digest_from_the_registry_not_from_its_daemon(
    engine: Engine, tmp_path: Path, listed: bool
) -> None:
    row = {"Descriptor": {"digest": DIGEST, "platform": {"os": "linux", "architecture": MACHINE}}}
    odd = {"Descriptor": {"digest": OTHER, "platform": {"os": "linux", "architecture": "s390x"}}}
    log = engine("docker", f"echo '{json.dumps([odd, row] if listed else row)}'")
    assert find_digest(REFERENCE, tmp_path / "find", Docker()) == DIGEST
    assert asked(log) == [f"manifest inspect --verbose {PLACE}:1"]


def test_the_machines_of_images_are_known_by_their_name() -> None:
    assert ARCHITECTURES["x86_64"] == "amd64"
    assert machine_architecture() == ARCHITECTURES.get(platform.machine(), platform.machine())


# which digest is locked


class Fixed:
    """An engine for which a tag names what it is told to."""

    name = "fixed"

    def __init__(self, tag: str) -> None:
        self.tag = tag

    def digest(self, place: object, folder: Path) -> str:
        if not self.tag:
            raise FetchError("the registry has no such image")
        return getattr(place, "digest", "") or self.tag

    def save(self, place: object, target: Path, folder: Path) -> None: ...

    def clean(self, folder: Path) -> None: ...


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
    text: str, known: str, tag: str, chosen: str, told: str, tmp_path: Path
) -> None:
    lines: list[str] = []
    engine = cast("Puller", Fixed(tag))  # no more of an engine is used
    found = choose_digest(Reference.parse(text), known, tmp_path / "find", lines.append, engine)
    assert found == chosen
    assert told in "".join(lines) if told else lines == []


# failures

REFUSALS: list[tuple[str, type[RocwrightError], str]] = [
    ("pinging container registry x: dial tcp: lookup x: no such host", NetworkError, "does not answer"),
    ("dial tcp 127.0.0.1:1: connect: connection refused", NetworkError, "does not answer"),
    ("http: server gave HTTP response to HTTPS client", NetworkError, "does not answer"),
    ("tls: failed to verify certificate: x509: unknown authority", NetworkError, "does not answer"),
    ("reading manifest 1 in x: manifest unknown: manifest unknown", FetchError, "has no image"),
    ("Error response from daemon: manifest for x:1 not found", FetchError, "has no image"),
    ("unauthorized: authentication required", FetchError, "does not give"),
    ("requested access to the resource is denied", FetchError, "does not give"),
    ("reading JSON file /run/x/auth.json: permission denied", FetchError, "could not pull"),
    ("Digest did not match, expected sha256:1, got sha256:2", FetchError, "is not what the digest says"),
    ("filesystem layer verification failed for digest sha256:1", FetchError, "is not what the digest says"),
    ("writing blob: happened during read: unexpected EOF", FetchError, "is not what the digest says"),
    ("no image found in manifest list for architecture amd64, OS linux", FetchError, "is not for"),
    ("no matching manifest for linux/amd64 in the manifest list entries", FetchError, "is not for"),
    ("write /x: no space left on device", OutOfDiskError, "did not fit"),
    ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock", FetchError, "could not pull"),
    ("", FetchError, "could not pull"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "kind", "what"), REFUSALS, ids=[one[0][:30] for one in REFUSALS])
def test_what_an_engine_says_has_a_class_and_a_next_step_and_nothing_is_kept(
    said: str, kind: type[RocwrightError], what: str, engine: Engine, tmp_path: Path
) -> None:
    (tmp_path / "said").write_text(said)
    engine("skopeo", f"cat {tmp_path}/said >&2; exit 1")
    with pytest.raises(kind, match=what) as caught:
        pull(ORIGIN, tmp_path / "pull", Skopeo())
    assert caught.value.next_step
    assert said[:20] in caught.value.cause
    assert list((tmp_path / "pull").iterdir()) == []


def test_an_image_for_another_machine_is_refused(engine: Engine, tmp_path: Path) -> None:
    saved = save(tmp_path, layer(("a", "f:1")), config={"architecture": "s390x"})
    engine("skopeo", f'for word; do :; done; cp {saved} "${{word#docker-archive:}}"')
    with pytest.raises(FetchError, match="is for s390x") as caught:
        pull(ORIGIN, tmp_path / "pull", Skopeo())
    assert MACHINE in caught.value.cause
    assert list((tmp_path / "pull").iterdir()) == []


def test_what_an_engine_notes_by_itself_stays_in_the_folder_of_the_pull(
    engine: Engine, tmp_path: Path
) -> None:
    script = (
        f'echo "$XDG_DATA_HOME $TMPDIR" > {tmp_path}/seen; mkdir -p "$XDG_DATA_HOME"; touch "$TMPDIR/big"\n'
    )
    engine("skopeo", script + saves(tmp_path, "--output"))
    pulled = pull(ORIGIN, tmp_path / "pull", Skopeo())
    assert all(Path(one).is_relative_to(tmp_path / "pull") for one in (tmp_path / "seen").read_text().split())
    assert list((tmp_path / "pull").iterdir()) == [pulled.path]
