"""gfx-smoke, built for real in every engine and by an export; and a wheel that another build needs."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.engines import must_work
from tests.execution.test_kill import processes_of
from tests.farm.cluster import cluster
from tests.provenance.official import faults
from tests.real.followed import GPUS, SMOKE, TALLY, Matrix, Upstream, states, until
from tests.real.healing import CATALOG, Case
from tests.real.stacks import build_and_verify, rocwright
from tests.store.servers import static_host

from rocbase.files.atomic import sha256_file
from rocwheel.wheels.emulators import emulators
from rocwright import sandbox
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import builtin_catalog
from rocwright.follow.cycle.run import last_cycle
from rocwright.home import Home
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import read_lock
from rocwright.records.opening import open_records
from rocwright.sandbox import ENGINES, cgroup
from rocwright.sandbox.model import Mount, SandboxJob
from rocwright.sources.bases.roots import remove_tree, unpacked_root
from rocwright.sources.bases.tools import Tools
from rocwright.store.local import LocalStore
from rocwright.store.model import verified

pytestmark = pytest.mark.real

PROGRAMS = DATA / "checks/emulator/programs"


@pytest.fixture(scope="module")
def smoke(home: Home, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The project, and what building and verifying it told."""
    folder = tmp_path_factory.mktemp("project") / "gfx-smoke"
    return folder, build_and_verify(home, folder, "gfx-smoke", "gfx803,gfx1103,gfx1151")


def test_gfx_smoke_is_built_for_three_gpus(smoke: tuple[Path, dict[str, Any]]) -> None:
    _, built = smoke
    finding, *runs = [one for one in built["findings"] if one["check"] == "machine-code"]
    assert finding["ok"], finding
    assert "gfx803, gfx1103, gfx1151" in finding["detail"]
    (form,) = [one for one in built["findings"] if one["name"] == "canonical form"]
    assert re.fullmatch("sha256 [0-9a-f]{64}", form["detail"])
    assert [one["name"] for one in runs] == [f"runs on {gpu}" for gpu in ("gfx803", "gfx1103", "gfx1151")]
    assert all(one["ok"] for one in runs), runs


OTHER_ENGINES = ("podman", "buildah", "nspawn", "docker")


@pytest.mark.parametrize(
    "engine", ["bubblewrap", *(pytest.param(name, marks=pytest.mark.nightly) for name in OTHER_ENGINES)]
)
def test_each_engine_gives_the_same_bytes(
    home: Home, smoke: tuple[Path, dict[str, Any]], engine: str
) -> None:
    """In another folder, with another number of jobs and an empty compiler cache."""
    folder, built = smoke
    must_work(sandbox.probe(ENGINES[engine]))
    (artifact,) = built["artifacts"]
    (first,) = [step["engine"] for step in built["run"]["steps"] if step["name"] == "gfx-smoke"]
    report = json.loads(rocwright(home, folder, "reproduce", "--engine", engine, "--json"))
    (wheel,) = [output for output in report["outputs"] if output["step"] == "gfx-smoke"]
    assert report["same"]
    assert wheel["before"] == wheel["after"] == artifact["sha256"]
    assert report["engines"] == [first, engine]
    assert report["jobs"][0] != report["jobs"][1]
    assert report["folders"][0] != report["folders"][1]


def test_its_wheel_is_installed_with_its_sbom_and_its_statement_is_right_until_a_byte_is_changed(
    home: Home, smoke: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, built = smoke
    (artifact,) = built["artifacts"]
    wheel = Path(artifact["path"])
    assert artifact["signed_by"] == ""
    assert artifact["laid_out"]["sha256"] == sha256_file(wheel) != artifact["sha256"]

    environment = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = (environment / "bin/python", "-m", "pip", "--disable-pip-version-check")
    subprocess.run([*pip, "install", "--no-index", "--no-deps", "--quiet", wheel], check=True)
    subprocess.run([*pip, "check"], check=True)
    (inside,) = environment.glob("lib/*/site-packages/gfx_smoke-*.dist-info/sboms/*")
    beside = wheel.with_name(f"{wheel.name}.cdx.json")
    assert inside.read_bytes() == beside.read_bytes()
    data = json.loads(beside.read_bytes())
    assert faults(data) == []
    purls = [one["purl"] for one in data["components"] if one.get("purl", "").startswith("pkg:deb/")]
    assert len(purls) > 100
    assert all(one.startswith("pkg:deb/debian/") and "distro=debian-sid" in one for one in purls)
    roles = {row["value"] for one in data["components"] for row in one["properties"]}
    assert {"source", "toolchain", "packages to build", "bundled"} <= roles
    assert "gfx803, gfx1103, gfx1151" in roles

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    key = json.loads(rocwright(home, folder, "attest", "key", "--json"))
    signed = json.loads(rocwright(home, folder, "attest", str(wheel), "--json"))
    assert signed["signed_by"] == key["keyid"]
    # elsewhere: the file, its statement and the public key, nothing else
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody"))
    copy = tmp_path / wheel.name
    shutil.copy(wheel, copy)
    shutil.copy(signed["statement"], tmp_path)
    words = ("attest", "verify", str(copy), "--key", key["public"], "--json")
    right = json.loads(rocwright(home, folder, *words))
    assert right["keyid"] == key["keyid"]
    assert right["says"]["request"]["stack"] == "gfx-smoke"
    logs = {one["name"] for one in right["says"]["byproducts"]}
    assert "gfx-smoke.log" in logs
    raw = bytearray(copy.read_bytes())
    raw[len(raw) // 2] ^= 1
    copy.write_bytes(raw)
    wrong = json.loads(rocwright(home, folder, *words, check=False))
    assert wrong["error"]["class"] == "check"
    assert "is not the file that was signed" in wrong["error"]["message"]


def test_an_empty_home_gets_it_from_a_trusted_store_without_a_compiler(
    home: Home, smoke: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, built = smoke
    (artifact,) = built["artifacts"]
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "lab"))
    key = json.loads(rocwright(home, folder, "attest", "key", str(tmp_path / "lab.key"), "--json"))
    monkeypatch.setenv("ROCWRIGHT_ATTEST_KEY", key["private"])
    shared = tmp_path / "shared"
    pushed = json.loads(rocwright(home, folder, "store", "push", "--to", shared.as_uri(), "--json"))
    # the wheel, and the tools root for a machine that cannot make one
    assert (pushed["records"], pushed["locks"]) == (2, 1)
    assert pushed["size"] == artifact["size"] + Tools(home).record.output("root").size

    empty, here = Home(tmp_path / "empty"), tmp_path / "here"
    here.mkdir()
    with static_host(shared) as url:
        rocwright(empty, here, "trust", "add", url, "--yes")
        gpus = [word for gpu in ("gfx803", "gfx1103", "gfx1151") for word in ("--gpu", gpu)]
        words = ("gfx-smoke", *gpus, "--base", "debian:sid", "--json")
        told = json.loads(rocwright(empty, here, "build", *words))
    assert [one["sha256"] for one in told["artifacts"]] == [artifact["sha256"]]
    assert told["run"]["steps"] == []
    assert Path(told["artifacts"][0]["path"]).exists()
    # neither packages nor a root came with it
    files = sum(path.stat().st_size for path in empty.store.glob("blobs/??/*"))
    assert files <= 1.1 * artifact["size"]
    assert not empty.roots.exists() or not [*empty.roots.iterdir()]


@pytest.mark.parametrize("executor", ["dask", "slurm"])
def test_other_machines_give_the_same_bytes(
    executor: str,
    home: Home,
    smoke: tuple[Path, dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, built = smoke
    (artifact,) = built["artifacts"]
    store = LocalStore(home.store)
    plan = make_plan(read_lock(folder / "rocwright.lock"), builtin_catalog())
    (step,) = [one for one in plan.steps if one.name in plan.artifacts]
    record = store.record(step.key)
    assert record is not None
    for key in (record.key, record.content_key):
        store.local.remove("record", key)
    with ExitStack() as stack:
        if executor == "slurm":
            cluster_of = stack.enter_context(cluster(tmp_path / "cluster"))
            monkeypatch.setenv("SLURM_CONF", str(cluster_of.settings))
        told = json.loads(rocwright(home, folder, "build", "--executor", executor, "--json"))
    assert [one["sha256"] for one in told["artifacts"]] == [artifact["sha256"]]
    assert [one["outcome"] for one in told["run"]["steps"]] == ["built"]


def in_root(home: Home, smoke: Path, work: Path, command: str) -> None:
    """Run a shell command in the root that builds gfx-smoke, in `work`, with the self-test's programs."""
    plan = make_plan(read_lock(smoke / "rocwright.lock"), builtin_catalog())
    (key,) = [one.key for one in plan.steps if one.name == "root/build"]
    store = LocalStore(home.store)
    record = store.record(key)
    assert record is not None
    sandbox.make_writable(work)
    lines: list[str] = []
    job = SandboxJob(
        root=unpacked_root(store, record.output("root").sha256, home.roots, print),
        argv=("/bin/sh", "-eu", "-c", command),
        env={"PATH": "/usr/bin:/bin", "HOME": "/work"},
        workdir="/work",
        mounts=(
            Mount(source=PROGRAMS, target="/programs"),
            Mount(source=work, target="/work", writable=True),
        ),
    )
    ended = sandbox.run(sandbox.pick(None, home.probes), job, lines.append)
    assert ended.ok, "\n".join(lines)


@pytest.mark.nightly
def test_the_emulators_self_test_compiles_for_each_gpu_that_is_emulated(
    home: Home, smoke: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    names = sorted(path.stem for path in PROGRAMS.glob("*.hip"))
    assert len(names) == 6
    targets = " ".join(f"--offload-arch={one}" for emulator in emulators() for one in emulator.configurations)
    compile_ = f"hipcc {targets} -O2 -Wall -Wextra -Werror /programs/$name.hip -o $name"
    (tmp_path / "work").mkdir()
    in_root(home, smoke[0], tmp_path / "work", f"for name in {' '.join(names)}; do {compile_}; done")
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == names


@pytest.mark.nightly
def test_gfx_smoke_refuses_a_scale_that_is_no_part(
    home: Home, smoke: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    (artifact,) = smoke[1]["artifacts"]
    work = tmp_path / "work"
    shutil.unpack_archive(artifact["path"], work, "zip")
    program = "gfx_smoke/bin/gfx-smoke"
    (work / program).chmod(0o755)
    tries = " ".join(f"'{one}'" for one in ("0", "-1", "1.5", "nan", "", "1x"))
    refused = f'for part in {tries}; do s=0; ./{program} --scale "$part" || s=$?; [ $s = 64 ]; done'
    in_root(home, smoke[0], work, f"{refused}; s=0; ./{program} --scale 0.5 || s=$?; [ $s = 2 ]")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder for all of it; buildah's storage in it may hold mounts, and is large."""
    yield tmp_path
    storage = storage_of(tmp_path)
    for words in (["rm", "--all"], ["rmi", "--all", "--force"]):
        subprocess.run(["buildah", *storage, *words], capture_output=True, check=False)
    remove_tree(tmp_path)


def storage_of(place: Path) -> list[str]:
    return ["--root", str(place / "storage"), "--runroot", str(place / "runroot")]


def isolation() -> list[str]:
    """crun refuses machines with cgroups of both versions."""
    runc = not cgroup.unified() and shutil.which("runc")
    return ["--isolation", "oci", *(["--runtime", "runc"] if runc else [])]


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("buildah") is None, reason="buildah is not installed")
@pytest.mark.skipif(os.geteuid() != 0, reason="buildah's storage in a folder of the test needs root")
def test_an_exported_containerfile_gives_the_same_artifact(
    home: Home, smoke: tuple[Path, dict[str, Any]], place: Path
) -> None:
    (project, built), context = smoke, place / "context"
    (artifact,) = built["artifacts"]
    rocwright(home, project, "export", "containerfile", "--out", str(context))
    lock = read_lock(project / "rocwright.lock")
    store = LocalStore(home.store)
    for root in lock.roots:
        packages = context / "base/packages" / root.role
        packages.mkdir(parents=True)
        # what the script would download, from the copies that are here already
        for pin in root.packages:
            shutil.copyfile(verified(store, pin.sha256), packages / pin.filename)
    subprocess.run(["./prepare.sh"], cwd=context, check=True)
    root_files = subprocess.run(
        ["tar", "-tf", "base/build.tar"], cwd=context, capture_output=True, text=True, check=True
    )
    assert "./usr/bin/python3" in root_files.stdout
    out = place / "out"
    build = ["build", *isolation(), "--network", "none", "--output", f"type=local,dest={out}", "."]
    subprocess.run(["buildah", *storage_of(place), *build], cwd=context, check=True)
    assert sha256_file(out / artifact["filename"]) == artifact["sha256"]


FIRST = """\
name = "first"
summary = "a wheel that another build needs"
license = "MIT"
kind = "wheel"
run = ["python3 -m build --wheel --no-isolation --outdir $OUT"]
output = [{ name = "wheel", pattern = "first-*.whl" }]
system = { build = BUILD, run = ["python"] }
release = [{ version = "1.0", places = [{ builtin = "first" }], source = "this test" }]
"""
SECOND = """\
name = "second"
summary = "needs the first wheel, and packages from the index, to be built"
license = "MIT"
kind = "wheel"
python = ["humanize>=4"]
guard = ["first"]
run = [
  "python3 -c 'import first, humanize; print(first.SAID, humanize.naturalsize(1024))'",
  "python3 -m build --wheel --no-isolation --outdir $OUT",
]
output = [{ name = "wheel", pattern = "second-*.whl" }]
system = { build = BUILD, run = ["python"] }
[[release]]
version = "2.0"
places = [{ builtin = "second" }]
needs = { first = "==1.0", python = ">=3" }
source = "this test"
"""
STACK = """\
name = "pair"
summary = "two wheels, one of which needs the other"
components = ["second"]
bases = ["debian:sid"]
source = "this test"
"""
SETUP = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "NAME"
version = "VERSION"
"""


def test_a_wheel_is_installed_for_what_needs_it_with_packages_from_the_index(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = tmp_path / "catalog"
    # the packages of gfx-smoke, so that its root file system serves
    packages = json.dumps(list(builtin_catalog().component("gfx-smoke").system.build))
    files = {
        "components/first.toml": FIRST.replace("BUILD", packages),
        "components/second.toml": SECOND.replace("BUILD", packages),
        "stacks/pair.toml": STACK,
    }
    for name, version in (("first", "1.0"), ("second", "2.0")):
        said = SETUP.replace("NAME", name).replace("VERSION", version)
        files |= {f"sources/{name}/pyproject.toml": said, f"sources/{name}/{name}.py": 'SAID = "here"\n'}
    for file, text in files.items():
        (catalog / file).parent.mkdir(parents=True, exist_ok=True)
        (catalog / file).write_text(text)
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(catalog))
    folder = tmp_path / "pair"
    folder.mkdir()
    words = ("pair", "--gpu", "gfx1151", "--base", "debian:sid")
    built = json.loads(rocwright(home, folder, "build", *words, "--json"))
    assert {one["filename"].split("-")[0] for one in built["artifacts"]} == {"first", "second"}
    log = rocwright(home, folder, "logs", "second")
    assert "here 1.0 kB" in log
    assert "guard: one first, and it imports" in log

    environment = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    rocwright(home, folder, "install", *words, "--into", str(environment))
    done = subprocess.run(
        [environment / "bin/python", "-c", "import first, second; print(first.SAID)"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "here\n", done.stderr


STRIX_HALO = "cpu_cores_count 0\nsimd_count 80\ngfx_target_version 110501\nvendor_id 4098\ndevice_id 5510\n"
"""What the kernel tells of a card, in /sys/class/kfd/kfd/topology/nodes/1/properties."""


def a_leak(home: Home, folder: Path, override: str, monkeypatch: pytest.MonkeyPatch) -> Case:
    """A tree whose env.sh exports an override, on a machine whose kernel shows a card."""
    catalog = folder / "catalog"
    shutil.copytree(CATALOG, catalog)
    shutil.copytree(DATA / "sources/gfx-smoke/hip", catalog / "sources/leak/hip")
    script = catalog / "sources/leak/env.sh"
    script.write_text(script.read_text().replace("=11.0\n", f"={override}\n"))
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(catalog))
    node = folder / "class/kfd/kfd/topology/nodes/1"
    node.mkdir(parents=True)
    (node / "properties").write_text(STRIX_HALO)
    # what rocm_agent_enumerator reads, which hipcc asks where no GPU is named
    shown = f'mount --bind {folder}/class /sys/class && exec "$@"'
    case = Case(
        home=home,
        folder=folder / "leak",
        stack="leak",
        around=("unshare", "--mount", "sh", "-c", shown, "sh"),
        options=("--engine", "bubblewrap"),
    )
    case.begin()
    return case


def test_a_build_sees_neither_the_card_of_its_machine_nor_an_override_of_it(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # hipcc compiles for gfx906 where no GPU is named and rocm_agent_enumerator shows none
    (finding, *_) = a_leak(home, tmp_path, "11.0.0", monkeypatch).fails_checks()
    assert finding["name"] == "machine-code"
    assert "gfx906" in finding["detail"]
    assert "gfx1100" not in finding["detail"]


# followed upstream


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Upstream:
    made = Upstream(tmp_path / "upstream")
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(made.catalog))
    return made


@pytest.mark.nightly
def test_four_rows_move_break_and_heal(home: Home, upstream: Upstream, tmp_path: Path) -> None:
    matrix = Matrix(home, tmp_path / "matrix", upstream, (SMOKE, TALLY))
    first = matrix.turn()
    assert states(first) == {SMOKE: {"promoted"}, TALLY: {"promoted"}}, first
    for row in first[SMOKE]:
        assert row["promoted"] == ["nightly", "candidate", "known-good"], row
    for row in first[TALLY]:
        assert row["promoted"] == ["nightly", "candidate"], row
        assert (
            row["waits"]["known-good"]
            == "the evidence says 'built'; the channel needs 'checked without a GPU'"
        )
    assert matrix.version(SMOKE, "known-good") == {"0.1.0"}

    upstream.smoke("0.1.1")
    moved = matrix.turn()
    assert states(moved) == {SMOKE: {"promoted"}, TALLY: {"unchanged"}}
    for row in moved[SMOKE]:
        assert any("gfx-smoke 0.1.0 -> 0.1.1" in line for line in row["changes"]), row
    assert matrix.version(SMOKE, "known-good") == {"0.1.1"}

    bad = {SMOKE: upstream.smoke("0.1.2", "int broken = nothing_of_this_name;\n")}
    bad[TALLY] = upstream.tally("1.0.1", "nothing", "nothing + 1")
    failed = matrix.turn("--bisect")
    assert states(failed) == {SMOKE: {"failed"}, TALLY: {"failed"}}
    for name, rows in failed.items():
        for row in rows:
            said = "\n".join(row["culprit"]["says"])
            assert f"{name}: the first bad commit\n    {bad[name][:12]}" in said, said
            assert bad[name][:12] in Path(row["culprit"]["report"]).read_text()
    assert matrix.version(SMOKE, "nightly") == {"0.1.1"}
    assert matrix.version(TALLY, "nightly") == {"1.0.0"}
    assert any(run.outcome == "failed" and run.origin.startswith("cycle ") for run in matrix.runs(TALLY))
    before = len(matrix.runs(TALLY))
    assert {row["why"] for row in matrix.turn()[TALLY]} == {"the same candidate failed before"}
    assert len(matrix.runs(TALLY)) == before

    upstream.smoke("0.1.3")
    upstream.tally("1.0.2", '"healed"')
    with matrix.serving("--cycle", "1") as server:
        until(lambda: "Running" in server.page("/cycle"))
        server.process.terminate()
        assert server.process.wait(60) == 0
    until(lambda: not processes_of(home))
    assert (matrix.folder / f"locks/{SMOKE}-followed_gfx1151_debian-sid/trying.lock").exists()
    earlier = last_cycle(matrix.folder, home)
    with matrix.serving("--cycle", "1") as server:
        until(lambda: last_cycle(matrix.folder, home) != earlier)
        told = last_cycle(matrix.folder, home)
        assert told is not None
        assert {row.state for row in told.rows} == {"promoted"}, told
        page = server.page("/cycle")
        assert "gfx-smoke 0.1.1 -> 0.1.3" in page and "tally 1.0.0 -> 1.0.2" in page
        assert page.count('<span class="channel nightly">') == 4
        until(lambda: "The next one at" in server.page("/queue"))
        assert 'class="channel known-good"' in server.page(f"/?stack={SMOKE}-followed")
        into = tmp_path / "installed"
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps")
        index = ("--index-url", f"{server.address}/gfx1151/simple/", "--target", str(into))
        subprocess.run([*pip, *index, SMOKE], check=True)
    assert (into / "gfx_smoke-0.1.3.dist-info").is_dir()
    assert matrix.version(SMOKE, "known-good") == {"0.1.3"}
    assert matrix.version(TALLY, "candidate") == {"1.0.2"}
    with open_records(home) as records:
        held = records.promotions(stack=f"{SMOKE}-followed", channel="known-good")
        newest, older = (records.lock(one.lock) for one in held[:2])
        assert newest is not None
        assert older is not None
        assert ("0.1.3" in newest, "0.1.1" in older) == (True, True)
        assert {one.by.split()[0] for one in held} == {"cycle"}

    # what failed was never laid out
    laid = {path.name.split("-")[1] for path in matrix.folder.glob("rocwright-out/*/*/*.whl")}
    assert laid == {"0.1.0", "0.1.1", "0.1.3"}


@pytest.mark.nightly
def test_kills_moved_tags_and_upstreams_that_are_down(home: Home, upstream: Upstream, tmp_path: Path) -> None:
    matrix = Matrix(home, tmp_path / "matrix", upstream, (TALLY,))
    with matrix.running() as process:
        assert process.stderr is not None
        process.stderr.readline()
        os.killpg(process.pid, signal.SIGSTOP)
        refused = json.loads(rocwright(home, matrix.folder, "cycle", "--json", check=False))
        assert "running already" in refused["error"]["message"]
    # killed when it has said so many lines: chosen once and for all, over what a cycle of three rows says
    for lines in random.Random(20).sample(range(2, 14), 3):
        with matrix.running() as process:
            assert process.stderr is not None
            for _ in range(lines):
                process.stderr.readline()
    whole = matrix.turn()[TALLY]
    assert all(row["state"] in ("promoted", "unchanged") for row in whole), whole
    assert matrix.version(TALLY, "nightly") == matrix.version(TALLY, "candidate") == {"1.0.0"}
    assert not list(matrix.folder.glob("locks/*/trying.lock"))
    with open_records(home) as records:
        for gpu in GPUS[TALLY]:
            (held,) = records.promotions(stack=f"{TALLY}-followed", gpu=gpu, channel="nightly")[:1]
            kept = records.lock(held.lock)
            assert kept is not None
            assert '"1.0.0"' in kept

    before = len(matrix.runs(TALLY))
    repository = upstream.repositories[TALLY]
    away = repository.path.rename(tmp_path / "away")
    for row in matrix.turn()[TALLY]:
        assert row["state"] == "not tried", row
        assert "tally.git" in "".join(row["silent"])
    away.rename(repository.path)

    was = repository.git("rev-parse", "v1.0.0")
    upstream.tally("1.0.0", '"another under the same name"')
    for row in matrix.turn()[TALLY]:
        assert row["state"] == "not tried", row
        assert "no candidate lock was written" in row["why"]
        assert was[:12] in row["why"]
    repository.git("tag", "--force", "v1.0.0", was)

    upstream.tally("1.0.1", '"the next"')
    told = json.loads(rocwright(home, matrix.folder, "cycle", "--dry-run", "--json"))
    assert {row["state"] for row in told["rows"]} == {"to try"}
    assert "tally 1.0.0 -> 1.0.1 (patch)" in told["rows"][0]["changes"]
    assert matrix.version(TALLY, "nightly") == {"1.0.0"}
    assert len(matrix.runs(TALLY)) == before
    assert states(matrix.turn()) == {TALLY: {"promoted"}}
    assert matrix.version(TALLY, "candidate") == {"1.0.1"}
