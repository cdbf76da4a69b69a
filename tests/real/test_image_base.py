"""Images of a real registry on this machine: by digest, moved, wrong, of another machine; a base of one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from samples.project import write_catalog
from tests.real.registry import Registry
from tests.sources.test_layers import save

from rocbase.errors import FetchError, NetworkError
from rocbase.files.atomic import sha256_file, write_atomic
from rocwheel_samples.trees import write_tree
from rocwright import flow
from rocwright.catalog.base import Base, BaseRelease
from rocwright.catalog.load import builtin_catalog, load_catalog
from rocwright.execution.exec_step import execute
from rocwright.execution.fetch import fetch
from rocwright.execution.options import BuildOptions, StepOptions
from rocwright.execution.progress import PlainProgress
from rocwright.export.write import carried_sources, export
from rocwright.home import Home
from rocwright.model.architecture import host_architecture
from rocwright.model.steps import ImageOrigin, Input, OutputSpec, RunAction, Step
from rocwright.plan.resolve.model import Request
from rocwright.plan.resolve.network import NetworkUpstream
from rocwright.project import Project
from rocwright.sandbox import cgroup
from rocwright.sources.bases.roots import remove_tree
from rocwright.sources.image import ARCHITECTURES, Reference, find_digest, pull
from rocwright.store.local import LocalStore
from rocwright.store.model import Output, verified

HOST = host_architecture()

pytestmark = pytest.mark.real

NAME = "registry.example/team/debian"
"""Its own name; a mirror says where it is had here."""

PACKAGE = "hello"


@pytest.fixture(autouse=True)
def mirror(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that this machine is told of the registry: where the images of that name are."""
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", f"registry.example/=http://127.0.0.1:{registry.port}/")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root of a few files, for what is about images alone."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "root" / "etc").mkdir(parents=True)
    (folder / "root" / "etc" / "hello").write_text("hello\n")
    (folder / "root" / "etc" / "other").hardlink_to(folder / "root" / "etc" / "hello")
    (folder / "root" / "bin").symlink_to("usr/bin")
    return folder / "root"


@pytest.fixture
def reference() -> Reference:
    return Reference(NAME, "1")


def test_an_image_is_pulled_by_the_digest_that_its_tag_names(
    registry: Registry, small: Path, tmp_path: Path
) -> None:
    digest = registry.push("1", small, env="GREETING=hello")
    assert find_digest(Reference(NAME, "1"), tmp_path / "find", HOST) == digest
    assert find_digest(Reference(NAME, digest=digest), tmp_path / "find", HOST) == digest
    pulled = pull(ImageOrigin(reference=f"{NAME}:1", digest=digest), tmp_path / "pull", HOST)
    again = pull(ImageOrigin(reference=f"{NAME}:1", digest=digest), tmp_path / "again", HOST)
    assert pulled.pin == again.pin
    assert pulled.config.env["GREETING"] == "hello"
    assert [path.name for path in (tmp_path / "pull").iterdir()] == [pulled.pin.filename]


def test_a_tag_that_moved_changes_nothing_of_what_is_locked(
    registry: Registry, small: Path, tmp_path: Path, store: LocalStore
) -> None:
    old = registry.push("moving", small)
    pinned = pull(ImageOrigin(reference=f"{NAME}:moving", digest=old), tmp_path / "pull", HOST).pin
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("another image\n")
    new = registry.push("moving", tmp_path / "other")
    assert find_digest(Reference(NAME, "moving"), tmp_path / "find", HOST) == new != old
    fetch([pinned], store, Home(tmp_path), tmp_path / "scratch", print)
    assert verified(store, pinned.sha256)


@pytest.mark.parametrize("what", ["layer", "config", "manifest"])
def test_what_is_not_as_the_digest_says_is_refused_and_nothing_is_kept(
    what: str, registry: Registry, tmp_path: Path
) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "file").write_text(f"{what}\n")
    digest = registry.push(f"wrong-{what}", folder)
    manifest = json.loads(registry.blob(digest).read_text())
    told = {
        "layer": manifest["layers"][0]["digest"],
        "config": manifest["config"]["digest"],
        "manifest": digest,
    }
    blob = registry.blob(told[what])
    data = bytearray(blob.read_bytes())
    at = len(data) // 2 if what == "layer" else data.rindex(b"sha256:") + 10
    data[at] = ord("0") if data[at] != ord("0") else ord("1")
    blob.write_bytes(data)
    with pytest.raises((FetchError, NetworkError)) as caught:
        pull(ImageOrigin(reference=f"{NAME}:1", digest=digest), tmp_path / "pull", HOST)
    assert isinstance(caught.value, FetchError), caught.value.as_dict()
    assert list((tmp_path / "pull").iterdir()) == []


def test_a_digest_and_a_tag_that_are_not_there_are_told(registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="has no image"):
        pull(ImageOrigin(reference=f"{NAME}:1", digest=f"sha256:{'0' * 64}"), tmp_path / "pull", HOST)
    with pytest.raises(FetchError, match="has no image"):
        find_digest(Reference(NAME, "absent"), tmp_path / "find", HOST)


def test_a_registry_that_does_not_answer_is_the_networks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", "registry.example/=http://127.0.0.1:9/")
    with pytest.raises(NetworkError, match="does not answer"):
        find_digest(Reference(NAME, "1"), tmp_path / "find", HOST)


def test_an_image_of_another_machine_is_refused(registry: Registry, small: Path, tmp_path: Path) -> None:
    digest = registry.push("s390x", small, architecture="s390x")
    with pytest.raises(FetchError, match=r"is for s390x|is not for"):
        pull(ImageOrigin(reference=f"{NAME}:s390x", digest=digest), tmp_path / "pull", HOST)
    assert list((tmp_path / "pull").iterdir()) == []


def test_of_an_image_for_several_machines_this_ones_is_locked(
    registry: Registry, small: Path, tmp_path: Path
) -> None:
    other = registry.push("of-other", small, architecture="s390x")
    own = registry.push("of-own", small)
    both = put_index(registry, "both", {"s390x": other, ARCHITECTURES[HOST]: own})
    neither = put_index(registry, "neither", {"s390x": other})
    assert find_digest(Reference(NAME, "both"), tmp_path / "find", HOST) == own
    assert find_digest(Reference(NAME, digest=both), tmp_path / "find", HOST) == own
    with pytest.raises(FetchError, match="is not for"):
        find_digest(Reference(NAME, digest=neither), tmp_path / "find", HOST)


def put_index(registry: Registry, tag: str, digests: dict[str, str]) -> str:
    """Put a list of manifests, one for each architecture, into the registry, as its interface has it."""
    import urllib.request

    media = "application/vnd.oci.image.{}.v1+json"
    rows = [
        {
            "mediaType": media.format("manifest"),
            "digest": digest,
            "size": registry.blob(digest).stat().st_size,
            "platform": {"os": "linux", "architecture": architecture},
        }
        for architecture, digest in digests.items()
    ]
    data = json.dumps({"schemaVersion": 2, "mediaType": media.format("index"), "manifests": rows}).encode()
    url = f"http://127.0.0.1:{registry.port}/v2/team/debian/manifests/{tag}"
    asked = urllib.request.Request(url, data, {"Content-Type": media.format("index")}, method="PUT")
    with urllib.request.urlopen(asked) as answer:
        assert answer.status == 201
    return f"sha256:{sha256(data).hexdigest()}"


# a base


@pytest.fixture(scope="module")
def debian(registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of an image of a minimal Debian, whose apt is set up as this machine's."""
    folder = tmp_path_factory.mktemp("debian")
    root = folder / "root.tar"
    done = subprocess.run(
        ["mmdebstrap", "--variant=apt", "--skip=output/dev", '--aptopt=Acquire::Check-Valid-Until "false"',
         "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
         "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=force-unsafe-io", "trixie", root],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    config: dict[str, object] = {
        "architecture": ARCHITECTURES[HOST],
        "config": {"Env": ["GREETING=hello"]},
        # builders count the layers in it
        "history": [{"created": "2025-01-01T00:00:00Z", "created_by": "mmdebstrap"}],
    }
    digest = registry.push_saved("debian", save(folder, root.read_bytes(), config=config))
    remove_tree(folder)
    return digest


@pytest.mark.nightly
def test_a_base_of_an_image_is_locked_fetched_and_made_without_a_network(
    debian: str, home: Home, store: LocalStore, engine: str, tmp_path: Path
) -> None:
    catalog = builtin_catalog()
    base = Base(
        name="debian-image",
        summary="x",
        manager="apt",
        made="image",
        release=(BaseRelease(name="trixie", image=f"{NAME}:debian", source="this test"),),
        architecture={"x86_64": "amd64", "aarch64": "arm64"},
        source="this test",
    )
    catalog = replace(catalog, bases={**catalog.bases, base.name: base})
    lines: list[str] = []
    with NetworkUpstream(base, base.release[0], catalog, store, home, lines.append) as online:
        root = online.root("build", base, base.release[0], (PACKAGE,))
    assert root.image == f"{NAME}:debian@{debian}"
    assert root.env["GREETING"] == "hello"
    assert [pin.filename.partition("_")[0] for pin in root.packages[1:]] == [PACKAGE]

    from rocwright.plan.roots import root_steps

    packages, made = root_steps(root, catalog)
    other = LocalStore(tmp_path / "other")
    digests = []
    for where in (store, other):
        for step in (packages, made):
            where.put_step(step.key, step.model_dump_json(by_alias=True).encode())
            record = execute(step.key, where, home, lines.append)
        [output] = record.outputs
        digests.append(output.sha256)
    assert digests[0] == digests[1], "the same image and packages gave other bytes"
    assert says_hello(made, store, home, engine, output, lines) == "Hello, world!\n"


def says_hello(
    root: Step, store: LocalStore, home: Home, engine: str, output: Output, lines: list[str]
) -> str:
    step = Step(
        name="hello",
        component="hello",
        action=RunAction(
            commands=(f"{PACKAGE} > $OUT/said",), outputs=(OutputSpec(name="out", pattern="said"),)
        ),
        inputs=(Input(name="root", key=root.key, output="root"),),
    )
    store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
    [said] = execute(step.key, store, home, lines.append, options=StepOptions(engine=engine)).outputs
    return verified(store, said.sha256).read_text()


# the way out


RECIPE = {
    "alpha": {
        "kind": "archive",
        "run": ["hello > said", "cat file said > $OUT/alpha-1.0.tar.gz"],
        "output": [{"name": "archive", "pattern": "alpha-*.tar.gz"}],
        "edit": [{"file": "file", "regex": r"\Athe", "with": "The", "why": "a sentence begins so"}],
    }
}


def of_an_image(folder: Path) -> Project:
    """A project of one small component on a base of that image, with a catalog of its own."""
    write_catalog(folder, RECIPE)
    write_tree(
        folder,
        {
            "system.toml": '"shell" = { apt = ["hello"] }\n',
            "sources/alpha/file": "the source of alpha\n",
            "bases/imaged.toml": 'name = "imaged"\nmanager = "apt"\nmade = "image"\nsummary = "x"\n'
            'architecture = { x86_64 = "amd64", aarch64 = "arm64" }\nsource = "x"\n'
            f'[[release]]\nname = "trixie"\nimage = "{NAME}:debian"\nsource = "x"\n',
            "stacks/tiny.toml": 'name = "tiny"\nsummary = "x"\ncomponents = ["alpha"]\n'
            'bases = ["imaged:trixie"]\nsource = "x"\n',
        },
    )
    return Project(
        request=Request(stack="tiny", gpu=("gfx1151",), base="imaged:trixie"),
        lock_path=folder / "rocwright.lock",
        output=folder / "out",
        catalog=load_catalog(folder),
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="the storage of podman in a folder of the test needs root")
def test_an_exported_containerfile_of_an_image_base_gives_the_same_artifact_by_podman_and_buildah(
    debian: str, registry: Registry, home: Home, engine: str, tmp_path: Path
) -> None:
    project = replace(of_an_image(tmp_path / "catalog"), home=home)
    locked = flow.lock(project, print)
    assert locked.pending == ()
    with PlainProgress() as progress:
        built = flow.build(project, locked, BuildOptions(jobs=1, engine=engine), progress)
    assert not built.failures
    [artifact] = built.artifacts
    context = tmp_path / "context"
    sources = carried_sources(locked, project.catalog)
    assert sources
    for name, file in export(locked, project.catalog, "containerfile").items():
        write_atomic(context / name, file.data)
        (context / name).chmod(0o755 if file.executable else 0o644)
    text = (context / "Containerfile").read_text()
    assert f"{NAME}@{debian}" in text
    subprocess.run(["./prepare.sh"], cwd=context, check=True)
    here = f"127.0.0.1:{registry.port}/team/debian@{debian}"
    for builder in ("podman", "buildah"):
        out = tmp_path / f"out-{builder}"
        # the image is had from the registry of this machine, and its packages by its own settings
        given = ["--build-arg", f"IMAGE_BUILD={here}", "--tls-verify=false", "--network", "host"]
        command = [*builders(builder, tmp_path), *given, "--output", f"type=local,dest={out}", "."]
        done = subprocess.run(command, cwd=context, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        assert sha256_file(out / artifact.output.filename) == artifact.output.sha256, builder


def builders(name: str, folder: Path) -> list[str]:
    """How an engine builds here: with storage of its own, and no more than this machine lets it have."""
    # podman takes no folder of a long name for what it keeps while it runs
    (folder / f"run-{name}").symlink_to(tempfile.mkdtemp(prefix="rocwright-"))
    running = (folder / f"run-{name}").resolve()
    storage = ["--root", str(folder / f"storage-{name}"), "--runroot", str(running)]
    # crun refuses machines with cgroups of both versions
    runtime = ["--runtime", "runc"] if not cgroup.unified() and shutil.which("runc") else []
    limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"]
    if name == "podman":
        return ["podman", *storage, *runtime, "--cgroup-manager", "cgroupfs", "build", *limits]
    return ["buildah", *storage, "build", "--isolation", "oci", *runtime, *limits]


@pytest.fixture(autouse=True)
def storage(tmp_path: Path) -> Iterator[None]:
    """What engines stored in the folder of a test may hold mounts, and is large."""
    yield
    for found in tmp_path.glob("storage-*"):
        name = found.name.removeprefix("storage-")
        running = (tmp_path / f"run-{name}").resolve()
        own = ["buildah", "--root", str(found), "--runroot", str(running)]
        for words in (["rm", "--all"], ["rmi", "--all", "--force"]):
            subprocess.run([*own, *words], capture_output=True, check=False)
        remove_tree(found)
        remove_tree(running)
