"""What every engine promises alike."""

import os
import secrets
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rocbase.errors import InputError, SandboxError
from rocwright.sandbox import Ended, Engine, Mount, make_writable, run
from tests.sandbox.sandbox_jobs import Run, job, shell

USR = Mount(source=Path("/usr"), target="/usr")


def test_only_named_inputs_are_seen(ran: Run, tiny_root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "file").write_text("named\n")
    mounts = (USR, Mount(source=tmp_path / "input", target="/place/input"))
    script = f"cat /place/input/file /etc/marker; test ! -e {tmp_path} && ls /place /tmp /home 2>&1"
    _, lines = ran(shell(script, root=tiny_root, mounts=mounts))
    assert lines[:2] == ["named", "the root's own"]
    assert [line for line in lines[2:] if "/home" not in line] == ["/place:", "input", "", "/tmp:"]


def test_a_secret_of_the_environment_is_nowhere(ran: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "hunter2hunter2")
    _, lines = ran(shell("env; for each in /proc/[0-9]*/environ; do tr '\\0' '\\n' < $each; done 2>&1"))
    assert "hunter2hunter2" not in "\n".join(lines)


def test_the_environment_is_exactly_what_is_given(ran: Run) -> None:
    given = {"PATH": "/usr/bin", "PLAIN": "x", "SPACED": "a  b ", "QUOTED": "\"'$HOME`\\", "EMPTY": ""}
    _, lines = ran(job("env", env=given))
    assert dict(line.split("=", 1) for line in lines) == given


def test_the_root_cannot_be_written(ran: Run, tiny_root: Path) -> None:
    script = (
        "for each in / /etc /usr /opt /opt/kept; do touch $each/x 2> /tmp/said && echo $each; done; exit 0"
    )
    outcome, lines = ran(shell(script, root=tiny_root, mounts=(USR,)))
    assert outcome.ok and lines == []
    assert sorted(path.name for path in tiny_root.rglob("*")) == sorted(
        ["bin", "etc", "file", "kept", "lib", "lib64", "marker", "opt", "passwd", "sbin", "usr"]
    )


def test_scratch_folders_are_fresh_and_writable(ran: Run) -> None:
    script = "cd /tmp && ls -A && echo a > /tmp/a && echo b > /run/b && cp /bin/true t && ./t && cat a /run/b"
    outcome, lines = ran(shell(script))
    assert outcome.ok and lines == ["a", "b"]


def test_a_writable_mount_is_written_through(ran: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "old").mkdir(parents=True)
    make_writable(out)
    mounts = (Mount(source=out, target="/place/out", writable=True),)
    outcome, lines = ran(shell("echo new > old/file; ls -dn . old", mounts=mounts, workdir="/place/out"))
    assert outcome.ok and [line.split()[2] for line in lines] == ["1000", "1000"]
    assert (out / "old" / "file").read_text() == "new\n"
    assert (out / "old" / "file").stat().st_mode & 0o777 == 0o644


def test_a_mount_that_is_not_writable_is_not(ran: Run, tmp_path: Path) -> None:
    make_writable(tmp_path)
    outcome, _ = ran(shell("touch /data/x", mounts=(Mount(source=tmp_path, target="/data"),)))
    assert not outcome.ok and list(tmp_path.iterdir()) == []


def test_a_mount_point_may_be_missing_inside_the_root(ran: Run, tiny_root: Path, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("one\n")
    mounts = (
        USR,
        Mount(source=tmp_path / "one", target="/opt/new/one"),
        Mount(source=tmp_path / "one", target="/tmp/deep/one"),
    )
    outcome, lines = ran(
        shell("cat /opt/new/one /opt/kept/file /tmp/deep/one", root=tiny_root, mounts=mounts)
    )
    assert outcome.ok and lines == ["one", "kept", "one"]
    assert not (tiny_root / "opt" / "new").exists()


def test_user_host_and_processes_are_fixed(ran: Run, tiny_root: Path) -> None:
    script = "id -u; id -un; id -g; hostname; umask; pwd; date +%z; test $$ -lt 20 && echo own"
    _, lines = ran(shell(script, root=tiny_root, mounts=(USR,), workdir="/opt"))
    assert lines == ["1000", "builder", "1000", "rocwright", "0022", "/opt", "+0530", "own"]


def test_there_are_no_capabilities(ran: Run) -> None:
    _, lines = ran(shell("grep -E '^(Cap|NoNewPrivs)' /proc/self/status"))
    assert lines.pop() == "NoNewPrivs:\t1"
    assert {line.split(":")[0]: int(line.split()[1], 16) for line in lines} == {
        f"Cap{each}": 0
        for each in ("Inh", "Prm", "Eff", "Bnd", "Amb")  # codespell:ignore inh
    }


def test_in_a_root_without_setpriv_no_capability_can_be_had_either(ran: Run, tmp_path: Path) -> None:
    (tmp_path / "absent").touch()
    mounts = (Mount(source=tmp_path / "absent", target="/usr/bin/setpriv"),)
    status = "id -u; grep -E '^(CapPrm|CapEff|CapAmb|NoNewPrivs)' /proc/self/status"
    _, lines = ran(shell(status, mounts=mounts))
    assert [line.split()[-1].lstrip("0") for line in lines] == ["1000", "", "", "", "1"]


def test_there_is_no_input(ran: Run) -> None:
    outcome, lines = ran(job("cat"))
    assert outcome.ok and lines == []


@pytest.mark.parametrize("devices", [(), ("/dev/null",)])
def test_processes_and_interfaces_name_nothing_of_the_host(
    ran: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, devices: tuple[str, ...]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    names = {name for _, name in socket.if_nameindex()} - {"lo"}
    assert names
    script = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ | tr '\\0' ' '; find /sys -path '*/net/*'"
    mounts = (Mount(source=tmp_path, target="/data"),)
    _, lines = ran(shell(f"({script}) 2>/dev/null; exit 0", mounts=mounts, devices=devices))
    assert str(tmp_path) not in "\n".join(lines)
    assert not [line for line in lines if Path(line).name in names]


@pytest.fixture
def listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


@pytest.mark.parametrize("network", [False, True])
def test_the_network_is_there_only_when_asked_for(ran: Run, listener: socket.socket, network: bool) -> None:
    script = f"(exec 3<>/dev/tcp/127.0.0.1/{listener.getsockname()[1]}) 2>/dev/null && echo reached; exit 0"
    with listener:
        _, lines = ran(job("bash", "-c", script, network=network))
    assert lines == (["reached"] if network else [])


def test_without_network_there_is_only_loopback(ran: Run) -> None:
    _, lines = ran(shell("tail -n +3 /proc/net/dev"))
    assert [line.split(":")[0].strip() for line in lines] == ["lo"]


@pytest.mark.parametrize("code", [3, 125])
def test_exit_codes_come_through(engine: Engine, ran: Run, code: int) -> None:
    outcome, _ = ran(shell(f"exit {code}"))
    assert (outcome.ended, outcome.code, outcome.ok) == (Ended.EXITED, code, code == 0)


@pytest.mark.parametrize(("word", "number"), [("SEGV", 11), ("KILL", 9)])
def test_signals_come_through(ran: Run, word: str, number: int) -> None:
    outcome, _ = ran(shell(f"kill -{word} $$; sleep 5"))
    assert (outcome.ended, outcome.code) == (Ended.SIGNALLED, number)


def test_a_command_that_is_not_there_exits_with_127(ran: Run) -> None:
    outcome, lines = ran(job("no-such-command"))
    assert (outcome.ended, outcome.code) == (Ended.EXITED, 127)
    assert "no-such-command" in lines[0]


def test_output_is_streamed_in_order(engine: Engine) -> None:
    came: list[tuple[str, float]] = []
    script = "for each in 1 2 3; do echo out $each; echo err $each >&2; sleep 0.3; done; printf end"
    run(engine, shell(script), lambda line: came.append((line, time.monotonic())))
    expected = [f"{where} {each}" for each in (1, 2, 3) for where in ("out", "err")]
    assert [line for line, _ in came] == [*expected, "end"]
    assert came[-1][1] - came[0][1] > 0.4
    assert came[2][1] - came[1][1] > 0.15


def test_much_output_comes_whole(ran: Run) -> None:
    outcome, lines = ran(shell("seq 200000"))
    assert outcome.ok and lines == [str(each) for each in range(1, 200001)]


def test_a_job_that_takes_too_long_is_ended(ran: Run) -> None:
    # a number of its own: other engines are tried at the same time
    number = str(90_000 + secrets.randbelow(900_000))
    begun = time.monotonic()
    outcome, lines = ran(shell(f"echo begun; sleep {number} & sleep {number}", seconds=5))
    assert outcome.ended is Ended.TIMED_OUT and lines == ["begun"]
    assert time.monotonic() - begun < 60
    assert not _runs(number)


def test_a_job_that_wants_too_much_memory_is_told_so(ran: Run) -> None:
    outcome, _ = ran(shell("head -c 300M /dev/zero | tail -n 1 > /dev/null", memory=100 * 2**20))
    assert outcome.ended is Ended.OUT_OF_MEMORY
    assert outcome.peak_memory is not None and outcome.peak_memory > 60 * 2**20


def test_a_kill_for_memory_that_make_swallows_is_told_as_one(ran: Run) -> None:
    rule = "all:\\n\\thead -c 300M /dev/zero | tail -n 1\\n"
    outcome, _ = ran(shell(f"printf '{rule}' | make -sf - >/dev/null || exit 2", memory=100 * 2**20))
    assert (outcome.ended, outcome.code) == (Ended.OUT_OF_MEMORY, 2)


def test_a_job_below_its_memory_limit_is_left_alone_and_measured(ran: Run) -> None:
    outcome, _ = ran(shell("head -c 60M /dev/zero | tail -n 1 > /dev/null", memory=400 * 2**20))
    assert outcome.ok
    assert outcome.peak_memory is not None and 55 * 2**20 < outcome.peak_memory < 250 * 2**20


BOMB = "bomb() { bomb | bomb & }; bomb; sleep 60"


def test_a_job_that_starts_processes_without_end_is_ended_and_told_so(ran: Run) -> None:
    outcome, _ = ran(shell(BOMB, processes=200, seconds=60))
    assert outcome.ended is Ended.TOO_MANY_PROCESSES


def test_a_job_below_its_limit_of_processes_is_left_alone(ran: Run) -> None:
    sleepers = "for each in 1 2 3 4 5 6 7 8 9; do sleep 0.3 & done; wait"
    outcome, lines = ran(shell(sleepers, processes=200))
    assert outcome.ok, lines


def test_devices_are_passed_when_named(ran: Run) -> None:
    node = next((each for each in ("/dev/kmsg", "/dev/fuse") if Path(each).is_char_device()), None)
    if node is None:
        pytest.skip("no device node to pass")
    _, without = ran(shell(f"test -c {node} && echo there; exit 0"))
    _, given = ran(shell(f"test -c {node} && echo there; exit 0", devices=(node,)))
    assert (without, given) == ([], ["there"])


def test_two_run_at_the_same_time(engine: Engine) -> None:
    def one(word: str) -> list[str]:
        lines: list[str] = []
        run(engine, shell(f"echo {word} > /tmp/x; sleep 0.5; cat /tmp/x"), lines.append)
        return lines

    begun = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(one, ("a", "b"))) == [["a"], ["b"]]
    assert time.monotonic() - begun < 60


def test_a_directory_that_is_not_there_is_named(ran: Run) -> None:
    with pytest.raises(InputError, match="/no/such/folder"):
        ran(job("true", workdir="/no/such/folder"))


def test_a_root_without_a_shell_is_told_as_the_engines_trouble(ran: Run, tmp_path: Path) -> None:
    (tmp_path / "root" / "etc").mkdir(parents=True)
    with pytest.raises(SandboxError) as caught:
        ran(job("true", root=tmp_path / "root"))
    assert caught.value.cause and caught.value.next_step


def test_what_is_not_there_cannot_be_mounted(ran: Run, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be mounted"):
        ran(job("true", mounts=(Mount(source=tmp_path / "none", target="/x"),)))


def test_an_exception_while_output_comes_ends_the_job(engine: Engine) -> None:
    def refuse(line: str) -> None:
        raise KeyboardInterrupt(line)

    number = str(90_000 + secrets.randbelow(900_000))
    with pytest.raises(KeyboardInterrupt):
        run(engine, shell(f"echo begun; sleep {number}"), refuse)
    assert not _runs(number)


def _runs(word: str) -> bool:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = Path(entry.path, "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if word.encode() in words:
                return True
    return False
