"""The parts that need no engine: layout, command lines, reading, cgroups, choice."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from rocbase.errors import InputError, SandboxError
from rocwheel_samples.hostile_files import make_deep
from rocwheel_samples.tables import each
from rocwright.sandbox import (
    ENGINES,
    Ended,
    Mount,
    Probe,
    Scene,
    choose,
    make_writable,
    probe_all,
    run,
    state,
)
from rocwright.sandbox import cgroup as cgroups
from rocwright.sandbox.docker import Docker, image_name
from rocwright.sandbox.engine import USER
from rocwright.sandbox.host import HostEngine
from rocwright.sandbox.inside import Reader
from rocwright.sandbox.layout import make_layout
from rocwright.sandbox.memory import total
from rocwright.sandbox.runner import _contained, _program, foreground
from tests.sandbox.sandbox_jobs import job


def test_a_skeleton_holds_links_and_empty_points(tiny_root: Path, tmp_path: Path) -> None:
    (tmp_path / "box").mkdir()
    mount = Mount(source=tmp_path, target="/place/in")
    layout = make_layout(job("true", root=tiny_root, mounts=(mount,)), tmp_path / "box")
    assert (layout.skeleton / "bin").readlink() == Path("usr/bin")
    assert (layout.skeleton / "place" / "in").is_dir()
    assert (layout.skeleton / "tmp").stat().st_mode & 0o7777 == 0o1777
    assert all(
        path.is_symlink() or path.is_dir() or path.stat().st_size == 0 for path in layout.skeleton.rglob("*")
    )
    targets = [each.target for each in layout.mounts]
    assert targets.index("/usr") < targets.index("/place/in") and "/etc/marker" in targets


def test_a_mount_replaces_what_the_root_has_there(tiny_root: Path, tmp_path: Path) -> None:
    (tmp_path / "box").mkdir()
    mounts = (Mount(source=Path("/usr"), target="/usr"), Mount(source=tmp_path, target="/bin/x"))
    layout = make_layout(job("true", root=tiny_root, mounts=mounts), tmp_path / "box")
    assert [each.source for each in layout.mounts if each.target == "/usr"] == [Path("/usr")]
    assert [each.target for each in layout.mounts if each.source == tmp_path] == ["/usr/bin/x"]


@pytest.mark.parametrize("target", ["/", "relative", "/proc/x", "/dev/x", "/a/../../b"])
def test_some_places_take_no_mount(target: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing can be mounted"):
        make_layout(job("true", mounts=(Mount(source=tmp_path, target=target),)), tmp_path)


@pytest.mark.parametrize("linked", [False, True])
def test_the_hosts_data_is_no_part_of_its_root(tmp_path: Path, linked: bool) -> None:
    (tmp_path / "link").symlink_to("/")
    layout = make_layout(job("true", root=tmp_path / "link" if linked else Path("/")), tmp_path)
    tops = {each.target.split("/")[1] for each in layout.mounts}
    assert {"usr", "etc"} <= tops and not tops & {"home", "root", "var", "srv", "mnt", "place"}


@pytest.mark.parametrize("linked", ["etc", "etc/passwd"])
def test_a_link_in_a_root_shows_the_job_no_accounts_of_the_host(tmp_path: Path, linked: str) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "passwd").write_text("secret:x:7:7::/:\n")
    root, box = tmp_path / "root", tmp_path / "box"
    box.mkdir()
    (root / linked).parent.mkdir(parents=True)
    (root / linked).symlink_to(tmp_path / linked.replace("etc", "host"))
    make_layout(job("true", root=root), box)
    assert (box / "passwd").read_text() == "builder:x:1000:1000:builder:/tmp:/bin/sh\n"


@pytest.mark.parametrize("number", ["²", "9" * 5000, ""])
def test_an_account_with_an_odd_number_is_another_one(tmp_path: Path, number: str) -> None:
    (tmp_path / "root" / "etc").mkdir(parents=True)
    (tmp_path / "root" / "etc" / "passwd").write_text(f"odd:x:{number}:0::/:\n")
    (tmp_path / "box").mkdir()
    make_layout(job("true", root=tmp_path / "root"), tmp_path / "box")
    assert (tmp_path / "box" / "passwd").read_text().endswith("builder:x:1000:1000:builder:/tmp:/bin/sh\n")


def test_docker_gets_one_command_line(tmp_path: Path) -> None:
    skeleton = tmp_path / "root"
    (skeleton / "usr").mkdir(parents=True)
    scene = Scene(
        name="rocwright-1-2-3",
        folder=tmp_path,
        skeleton=skeleton,
        mounts=(
            Mount(source=Path("/base/usr"), target="/usr"),
            Mount(source=Path("/o u t"), target="/out", writable=True),
        ),
        command=("/bin/sh", "-c", "true; $HOME"),
    )
    launch = Docker().launch(scene)
    words = " ".join(launch.argv)
    assert launch.argv[:2] == ("docker", "run") and launch.argv[-3:] == scene.command
    assert launch.argv[-4] == image_name(skeleton)
    assert "--volume /base/usr:/usr:ro --volume /o u t:/out:rw" in words
    for flag in ("--read-only", "--network none", "--cap-drop all", "--user 1000:1000", "--rm"):
        assert flag in words
    assert launch.undo == (("docker", "rm", "--force", "rocwright-1-2-3"),)
    assert launch.prepare[0][3:] == ("sh", image_name(skeleton), str(skeleton))


def test_a_skeletons_image_is_named_by_what_is_in_it(tmp_path: Path) -> None:
    names = []
    for word in ("one", "two", "three"):
        (tmp_path / word / "usr").mkdir(parents=True)
        (tmp_path / word / "bin").symlink_to("usr/bin" if word != "three" else "usr/sbin")
        names.append(image_name(tmp_path / word))
    assert names[0] == names[1] != names[2]


def test_a_reader_keeps_the_engines_words_apart() -> None:
    lines: list[str] = []
    reader = Reader(token="T", on_line=lines.append)
    for line in ("engine warns", "T begin", "a", "", "no new line"):
        reader.line(line)
    reader.error("engine mourns")
    assert lines == ["a", "", "no new line"]
    assert ([*reader.noise], reader.begun) == (["engine warns", "engine mourns"], True)


@each("line", ["T end 0", "T end banana", "T end", "T begin", "T nowhere", "x T end 7 y"])
def test_once_the_job_runs_every_line_is_output(line: str) -> None:
    lines: list[str] = []
    reader = Reader(token="T", on_line=lines.append)
    reader.line("T begin")
    reader.line(line)
    assert lines == [line]
    assert not reader.nowhere


def test_of_what_an_engine_says_only_the_last_is_kept() -> None:
    reader = Reader(token="T", on_line=print)
    for number in range(1000):
        reader.error(str(number))
    assert len(reader.noise) < 500 and reader.noise[-1] == "999"


def test_a_cgroup_of_version_2_is_read(tmp_path: Path) -> None:
    (tmp_path / "memory.stat").write_text("anon 700\nfile 500\nshmem 100\n")
    (tmp_path / "memory.peak").write_text("2000\n")
    (tmp_path / "memory.events").write_text("low 0\noom 2\noom_kill 1\n")
    group = cgroups.Cgroup(folder=tmp_path, path="/x", version=2)
    group.limit(4096)
    assert (group.used(), group.most(), group.oom_kills(), group.watch()) == (800, 1600, 1, None)
    assert (tmp_path / "memory.max").read_text() == "4096"
    assert (tmp_path / "memory.swap.max").read_text() == "0"


def test_memory_is_added_up_without_a_cgroup() -> None:
    assert total([os.getpid()], None) > 5 * 2**20
    assert total([os.getpid()], 1) > 2**20


def test_without_a_cgroup_the_memory_limit_still_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "places", lambda name: [])
    hungry = job("sh", "-c", "head -c 400M /dev/zero | tail -n 1 | sleep 20", memory=100 * 2**20)
    outcome = run(HostEngine(), hungry, lambda line: None)
    assert outcome.ended is Ended.OUT_OF_MEMORY and outcome.seconds < 15


def _probes(**reasons: str) -> list[Probe]:
    return [
        Probe(engine=name, ok=not reason, version="1", reason=reason, seconds=0.1)
        for name, reason in reasons.items()
    ]


def test_the_first_that_works_is_chosen() -> None:
    probes = _probes(podman="broken", docker="no daemon", buildah="", bubblewrap="", host="")
    assert choose(None, probes).name == "buildah"
    assert choose("bubblewrap", probes).name == "bubblewrap"


def test_the_host_is_used_only_when_asked_for() -> None:
    probes = _probes(podman="broken", bubblewrap="no user namespaces", host="")
    with pytest.raises(SandboxError) as caught:
        choose(None, probes)
    assert "podman: broken" in caught.value.cause and "no user namespaces" in caught.value.cause
    assert choose("host", probes).name == "host"


def test_one_that_does_not_work_is_refused_with_its_reason() -> None:
    with pytest.raises(SandboxError) as caught:
        choose("docker", _probes(docker="no daemon", bubblewrap=""))
    assert caught.value.cause == "no daemon" and "bubblewrap" in caught.value.next_step


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        choose("podmann", [])
    assert "podman" in caught.value.cause and "nspawn" in caught.value.next_step


def test_a_probe_is_kept_until_something_changes(tmp_path: Path) -> None:
    cache = tmp_path / "probes.json"
    probe_all(cache, [ENGINES["host"]])
    kept = json.loads(cache.read_text())
    kept["host"]["probe"]["seconds"] = 42.0
    cache.write_text(json.dumps(kept))
    assert probe_all(cache, [ENGINES["host"]])[0].seconds == 42.0
    kept["host"]["machine"] = "another kernel"
    cache.write_text(json.dumps(kept))
    assert probe_all(cache, [ENGINES["host"]])[0].seconds != 42.0


def test_the_host_runs_with_the_given_environment_and_limits() -> None:
    lines: list[str] = []
    outcome = run(HostEngine(), job("env", env={"ONLY": "this"}), lines.append)
    assert outcome.ok and lines == ["ONLY=this"]
    outcome = run(HostEngine(), job("sleep", "50", seconds=0.3), lines.append)
    assert outcome.ended is Ended.TIMED_OUT


def test_a_shell_that_was_killed_is_told_by_its_signal() -> None:
    """What it was killed by is its caller's to see, as a negative status."""
    outcome = run(HostEngine(), job("sh", "-c", "kill -USR1 $PPID; sleep 5"), lambda _: None)
    assert (outcome.ended, outcome.code) == (Ended.SIGNALLED, signal.SIGUSR1)


def test_a_program_in_front_is_ended_by_what_the_terminal_sends() -> None:
    """The processes around it ignore that."""
    assert foreground(HostEngine(), job("sh", "-c", "kill -INT $$; exit 1")) == 128 + signal.SIGINT


def test_the_program_within_an_engines_processes_is_known(tmp_path: Path) -> None:
    pidfile, script = tmp_path / "pid", "sh -c 'sleep 60 & echo $PPID $$ $!; wait'; exit 0"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE) as launcher:
        assert launcher.stdout is not None
        numbers = [int(word) for word in launcher.stdout.readline().split()]
        try:
            found = [_program(number) for number in numbers]
            for text in ("", *map(str, numbers[1:])):
                found.append(_contained(pidfile, 0))
                pidfile.write_text(text)
            found.append(_contained(pidfile, 0))
        finally:
            os.kill(numbers[-1], signal.SIGKILL)
    assert found == [numbers[-1], None, None, None, None, numbers[-1], None]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_of_a_link_in_a_writable_mount_only_the_link_is_given_away(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "secret").touch()
    (tmp_path / "out/link").symlink_to(tmp_path / "secret")
    make_writable(tmp_path / "out")
    assert [(tmp_path / one).lstat().st_uid for one in ("secret", "out/link")] == [0, USER]


def our_folders() -> set[Path]:
    """Those of sandboxes of this process: others' come and go meanwhile."""
    return {one for one in state.home().iterdir() if state.owner_of(one.name) == state.this_process()}


def test_without_a_cgroup_a_job_runs_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "create", lambda name: None)
    before = our_folders()
    assert run(HostEngine(), job("true"), lambda _: None).ok
    assert our_folders() <= before


def test_a_sandbox_in_which_folders_were_nested_deep_is_forgotten(tmp_path: Path) -> None:
    folder = tmp_path / "rocwright-1-2-3"
    (folder / "root" / "tmp").mkdir(parents=True)
    make_deep(folder / "root" / "tmp", 1500)
    state.forget(folder, None)
    assert not folder.exists()


@pytest.mark.parametrize("engine", ["podman", "docker", "buildah"])
def test_a_container_reads_folders_of_the_host_under_selinux(engine: str, tmp_path: Path) -> None:
    scene = Scene(name="rocwright-1", folder=tmp_path, skeleton=tmp_path, mounts=(), command=("true",))
    launch = ENGINES[engine].launch(scene)
    made = next(argv for argv in (*launch.prepare, launch.argv) if {"from", "run"} & {*argv})
    assert "label=disable" in made
