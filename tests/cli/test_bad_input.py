"""Every bad input has its class, exit code and one clear message with the next step, and harms nothing."""

from __future__ import annotations

import io
import os
import platform
import re
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pytest
from click.testing import CliRunner
from tests.conftest import Command
from tests.execution.conftest import Workshop, workshop  # noqa: F401 - a fixture
from tests.making import builtin, lock_of, record_of

from rocbase import errors
from rocbase.processes.run import not_installed
from rocwright.cli import cli
from rocwright.home import Home
from rocwright.model.steps import FetchAction, Input, Step, TreeAction
from rocwright.plan.resolve.files import read_lock, write_lock, write_request
from rocwright.plan.resolve.model import Lock, Request
from rocwright.store.local import LocalStore
from rocwright.store.model import Output

EXIT = {
    "input": 2,
    "conflict": 3,
    "fetch": 4,
    "patch": 5,
    "out of disk": 8,
    "network": 10,
    "sandbox": 11,
    "disk": 14,
    "internal": 70,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The project's folder, where the command runs."""
    return tmp_path / "project"


class Refused(Protocol):
    def __call__(
        self,
        words: Sequence[str],
        kind: str,
        *told: str,
        env: dict[str, str] | None = None,
        before: Sequence[str] = (),
    ) -> None: ...


@pytest.fixture
def refused(rocwright: Command, home: Home) -> Refused:
    """Run a command that cannot do what is asked, and see that it says so and leaves the store as it was."""

    def run(
        words: Sequence[str],
        kind: str,
        *told: str,
        env: dict[str, str] | None = None,
        before: Sequence[str] = (),
    ) -> None:
        held = contents(home)
        done = rocwright(*words, env=env, before=before)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == EXIT[kind], done.stderr
        lines = done.stderr.splitlines()
        errors = [line for line in lines if line.startswith("error[")]
        assert len(errors) == 1, done.stderr
        assert errors[0].startswith(f"error[{kind}] ")
        said = lines[lines.index(errors[0]) :]
        assert len([line for line in said if re.match(r"  next   \S", line)]) == 1, done.stderr
        for word in told:
            assert word in "\n".join(said), done.stderr
        assert contents(home) == held

    return run


def contents(home: Home) -> list[str]:
    """What a store holds."""
    folders = (home.store / name for name in ("blobs", "records", "steps", "tmp", "damaged"))
    return sorted(str(path) for folder in folders for path in folder.rglob("*") if path.is_file())


def write_project(folder: Path, lock: Lock, request: Request | None = None) -> None:
    write_request(folder / "rocwright.toml", request or lock.request)
    write_lock(folder / "rocwright.lock", lock)


# names


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--stack", "gfx-smoke", "--gpu", "gfx1150x"), ("unknown GPU target 'gfx1150x'", "gfx1150")),
        (("--stack", "lama-vulkan"), ("unknown stack 'lama-vulkan'", "llama-vulkan")),
        (("--stack", "gfx-smoke", "--base", "debian:sidd"), ("unknown base 'debian:sidd'", "debian:sid")),
        (("--stack", "gfx-smoke", "--base", "debiian:sid"), ("unknown base 'debiian'", "debian")),
        (("--stack", "gfx-smoke", "--base", "debian:trixie"), ("no recipe on debian:trixie", "debian:sid")),
    ],
    ids=["gpu", "stack", "release", "base", "stack on a base"],
)
def test_an_unknown_name_is_refused_with_the_nearest(
    refused: Refused, folder: Path, words: tuple[str, ...], told: tuple[str, ...]
) -> None:
    refused(("init", *words), "input", *told)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("build", "gfx-smok"), "gfx-smoke"),
        (("plan", "gfx-smoke", "--gpu", "gfx9999"), "unknown GPU target"),
        (("lock", "gfx-smoke", "--base", "arch"), "unknown base"),
        (("build", "--gpu", "gfx1151"), "no stack named"),
        (("targets", "RX 99999"), "unknown GPU target"),
        (("logs", "torch"), "there is no log of torch"),
        (("exec-step", "0" * 64, "--store", "s3://x"), "s3://"),
        (("exec-step", "0" * 64, "--store", "{home}/store"), "has no step"),
    ],
    ids=lambda one: " ".join(one[:2]) if isinstance(one, tuple) else "",
)
def test_every_verb_refuses_what_it_does_not_know(
    refused: Refused, home: Home, words: tuple[str, ...], told: str
) -> None:
    refused([word.replace("{home}", str(home.path)) for word in words], "input", told)


def test_an_unknown_version_is_refused_with_the_nearest(refused: Refused, folder: Path) -> None:
    request = Request(stack="gfx-smoke", gpu=("gfx1151",), base="debian:sid", versions={"gfx-smoke": "9.9"})
    write_request(folder / "rocwright.toml", request)
    refused(["lock"], "input", "gfx-smoke 9.9 is not known", "use 0.1.0")


@pytest.mark.real
def test_a_pin_that_breaks_a_constraint_is_refused_with_the_chain_of_reasons(
    refused: Refused, folder: Path
) -> None:
    request = Request(
        stack="torch-extensions", gpu=("gfx1151",), base="debian:trixie", versions={"torchvision": "0.20.1"}
    )
    write_request(folder / "rocwright.toml", request)
    refused(
        ["lock"],
        "conflict",
        "torchvision 0.20.1 needs pytorch ==2.5.*",
        "package python3-torch) provides pytorch 2.6.0",
        "torchvision = '0.20.1'",
    )
    assert not (folder / "rocwright.lock").exists()


# the project file and the lock


@pytest.mark.parametrize("verb", ["lock", "plan", "build", "verify"])
def test_a_folder_without_a_project_file_is_told_how_to_get_one(refused: Refused, verb: str) -> None:
    refused(
        [verb], "input", "there is no rocwright.toml", "rocwright init", f"rocwright {verb} STACK --gpu GPU"
    )


@pytest.mark.parametrize("words", [("why",), ("farm", "explain")])
def test_a_step_without_a_project_file_is_told_where_the_stack_goes(
    refused: Refused, words: tuple[str, ...]
) -> None:
    command = f"rocwright {' '.join(words)} llama.cpp STACK --gpu GPU"
    refused([*words, "llama.cpp"], "input", "there is no rocwright.toml", command)


@pytest.mark.parametrize("words", [("verify",), ("bench",), ("install", "--into", "environment")])
def test_what_has_no_lock_is_not_built_and_none_is_made(
    refused: Refused, folder: Path, words: tuple[str, ...]
) -> None:
    write_request(folder / "rocwright.toml", lock_of("gfx-smoke").request)
    refused(words, "input", "gfx-smoke is not built here", "next   rocwright build")
    assert not (folder / "rocwright.lock").exists()


def test_a_lock_that_was_edited_is_refused_until_the_edit_is_accepted(
    refused: Refused, rocwright: Command, folder: Path
) -> None:
    lock = lock_of("gfx-smoke")
    write_request(folder / "rocwright.toml", lock.request)
    path = folder / "rocwright.lock"
    write_lock(path, lock)
    path.write_text(path.read_text().replace(lock.created, "2024-02-03T04:05:06Z"))
    refused(["plan"], "input", "was changed after it was written", "rocwright lock --accept")
    done = rocwright("lock", "--accept")
    assert done.returncode == 0, done.stderr
    assert read_lock(path) == lock.model_copy(update={"created": "2024-02-03T04:05:06Z"})


def test_a_project_file_is_not_written_over(refused: Refused, folder: Path) -> None:
    (folder / "rocwright.toml").write_text("# mine\n")
    refused(["init", "--stack", "gfx-smoke"], "input", "already exists", "--force")
    assert (folder / "rocwright.toml").read_text() == "# mine\n"


@pytest.mark.parametrize(
    "data",
    [b"stack = \xff", b"a = " + b"[" * 30_000, b"{", b"a = " + b"1" * 5000, b'stack = 3\ngpu = "x"\n', b"\0"],
    ids=["not utf-8", "deep", "not toml", "huge number", "wrong types", "null"],
)
def test_a_hostile_project_file_is_refused(refused: Refused, folder: Path, data: bytes) -> None:
    (folder / "rocwright.toml").write_bytes(data)
    refused(["plan"], "input", "rocwright.toml")


def test_a_hostile_lock_is_refused(refused: Refused, folder: Path) -> None:
    write_project(folder, lock_of("gfx-smoke"))
    path = folder / "rocwright.lock"
    path.write_text(path.read_text().replace('"libc6_1.0-1_amd64.deb"', '"../../../etc/passwd"'))
    refused(["plan"], "input", "rocwright.lock", "roots.0.packages.0.filename")


def test_a_lock_that_does_not_fit_the_project_file_is_refused(refused: Refused, folder: Path) -> None:
    lock = lock_of("gfx-smoke")
    write_project(folder, lock, lock.request.model_copy(update={"gpu": ("gfx803",)}))
    refused(["build"], "input", "does not match rocwright.toml", "gfx1151", "gfx803", "rocwright lock")


def test_a_lock_of_a_newer_schema_is_refused(refused: Refused, folder: Path) -> None:
    write_project(folder, lock_of("gfx-smoke"))
    path = folder / "rocwright.lock"
    path.write_text(re.sub(r"(?m)^schema = \d+", "schema = 99", path.read_text()))
    refused(["build"], "input", "schema 99", "rocwright lock")


def test_a_lock_made_with_other_recipes_is_refused(refused: Refused, folder: Path) -> None:
    lock = lock_of("gfx-smoke")
    older = lock.components[0].model_copy(update={"version": "0.0.1"})
    write_project(folder, lock.model_copy(update={"components": (older,)}))
    refused(["plan"], "input", "gfx-smoke", "rocwright lock")


def test_a_store_of_a_newer_rocwright_is_refused(refused: Refused, folder: Path, store: LocalStore) -> None:
    write_project(folder, lock_of("gfx-smoke"))
    (store.path / "format.json").write_text('{"schema": 99}')
    refused(["plan"], "input", "schema 99", "mv ")


@pytest.mark.parametrize("words", [("why", "gfx-smok"), ("shell", "gfx-smok")])
def test_an_unknown_step_is_refused_with_the_nearest(
    refused: Refused, folder: Path, words: tuple[str, ...]
) -> None:
    write_project(folder, lock_of("gfx-smoke"))
    refused([*words], "input", "unknown step 'gfx-smok'", "gfx-smoke")


def test_a_shell_in_a_step_that_has_no_sandbox_is_refused(refused: Refused, folder: Path) -> None:
    write_project(folder, lock_of("gfx-smoke"))
    refused(["shell", "tree/gfx-smoke"], "input", "rocwright shell gfx-smoke")


# sources


def put_step(store: LocalStore, step: Step) -> Step:
    store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
    return step


def test_a_hash_that_does_not_match_is_refused(refused: Refused, store: LocalStore) -> None:
    pin = builtin("gfx-smoke")
    step = put_step(store, Step(name="source/x", component="x", action=FetchAction(files=(pin,))))
    words = ["exec-step", step.key, "--store", store.url]
    refused(words, "fetch", "the source of gfx-smoke does not match the lock", "rocwright lock")


@pytest.mark.parametrize(
    ("name", "link"), [("../evil", ""), ("/evil", ""), ("x/l", "../../evil")], ids=["..", "absolute", "link"]
)
def test_an_archive_that_leads_out_is_refused(
    refused: Refused, store: LocalStore, tmp_path: Path, name: str, link: str
) -> None:
    path = tmp_path / "evil.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        file.addfile(tarfile.TarInfo("x/file"))
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.size = (tarfile.SYMTYPE, link, 0) if link else (tarfile.REGTYPE, "", 1)
        file.addfile(info, io.BytesIO(b"x"))
    sha256, size = store.put_file(path)
    pin = builtin("x", sha256, size).model_copy(update={"filename": "evil.tar.gz"})
    source = put_step(store, Step(name="source/x", component="x", action=FetchAction(files=(pin,))))
    store.put_record(record_of(source, Output(name=sha256, filename="evil.tar.gz", sha256=sha256, size=size)))
    inputs = (Input(name="source", key=source.key, output="*"),)
    step = put_step(store, Step(name="tree/x", component="x", action=TreeAction(), inputs=inputs))
    words = ["exec-step", step.key, "--store", store.url]
    refused(words, "fetch", "evil.tar.gz is refused", "not safe to unpack")
    assert not list(tmp_path.rglob("evil"))


def diff_edit(name: str) -> dict[str, str]:
    text = f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-hello\n+bye\n"
    return {"diff": "patches/x.patch", "patch": text, "why": "x"}


LITERAL = {"file": "README", "literal": "hello", "with": "bye", "why": "upstream #1"}


@pytest.mark.parametrize(
    ("data", "edit", "told"),
    [
        pytest.param("hello é\n".encode() + b"na\xefve\n", LITERAL, "not UTF-8 text", id="two-encodings"),
        pytest.param(b"hello\r\n", LITERAL, "line ends of README", id="crlf"),
        pytest.param(b"hello\r\nyou\n", LITERAL, "line ends of README", id="mixed-line-ends"),
        pytest.param(b"good day\n", LITERAL, "matches 0 times", id="drifted"),
        pytest.param(b"bye\n", LITERAL, "the tree already contains the change", id="there-already"),
        pytest.param(
            b"hello\n", LITERAL | {"file": "GONE"}, "names a file that does not exist", id="file-gone"
        ),
        pytest.param(b"hello\n", diff_edit("../evil"), "is refused", id="diff-above"),
        pytest.param(b"hello\n", diff_edit("/evil"), "is refused", id="diff-absolute"),
        pytest.param(b"hello\n", diff_edit(".git/config"), "is refused", id="diff-of-git"),
        pytest.param(b"hello\n", LITERAL | {"file": "a/.git/config"}, "no git folder", id="edit-of-git"),
    ],
)
def test_an_edit_that_cannot_be_made_ends_its_step_and_writes_nothing(
    refused: Refused, store: LocalStore, tmp_path: Path, data: bytes, edit: dict[str, str], told: str
) -> None:
    archive = tmp_path / "x.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        info = tarfile.TarInfo("x-1/README")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    sha256, size = store.put_file(archive)
    pin = builtin("x", sha256, size)
    source = put_step(store, Step(name="source/x", component="x", action=FetchAction(files=(pin,))))
    store.put_record(record_of(source, Output(name=sha256, filename="x.tar.gz", sha256=sha256, size=size)))
    action = TreeAction.model_validate({"edits": [edit], "version": "1.0"})
    inputs = (Input(name="source", key=source.key, output="*"),)
    step = put_step(store, Step(name="tree/x", component="x", action=action, inputs=inputs))
    refused(["exec-step", step.key, "--store", store.url], "patch", told)
    assert not list(tmp_path.rglob("evil"))


# the machine


def test_no_room_on_the_disk_is_told_before_anything_starts(
    refused: Refused, folder: Path, home: Home
) -> None:
    write_project(folder, lock_of("gfx-smoke", size=10**14))
    refused(["build"], "out of disk", "this build needs about", "are free", "ROCWRIGHT_HOME")
    assert not home.runs.exists()
    assert not home.work.exists()


def test_a_machine_on_which_no_sandbox_works_is_told_why_not_of_each(
    refused: Refused, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    told = ("no sandbox works on this machine", "bubblewrap: ", "podman: ", "install")
    refused(["sandbox"], "sandbox", *told, env={"PATH": str(tmp_path / "bin")})


def test_a_step_on_a_machine_without_sandbox_is_refused(
    refused: Refused,
    workshop: Workshop,  # noqa: F811
    tmp_path: Path,
) -> None:
    step = workshop.step("touch $OUT/result")
    workshop.home.probes.unlink()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tar").symlink_to("/bin/tar")
    words = ["exec-step", step.key, "--store", workshop.store.url]
    refused(words, "sandbox", "no sandbox", env={"PATH": str(tmp_path / "bin")})


def test_an_unknown_sandbox_is_refused_with_the_nearest(
    refused: Refused,
    workshop: Workshop,  # noqa: F811
) -> None:
    step = workshop.step("touch $OUT/result")
    words = ["exec-step", step.key, "--store", workshop.store.url, "--engine", "bublewrap"]
    refused(words, "input", "there is no sandbox 'bublewrap'", "bubblewrap")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may leave the network")
def test_a_machine_without_network_is_told_so(refused: Refused, folder: Path) -> None:
    write_request(
        folder / "rocwright.toml", Request(stack="torch-extensions", gpu=("gfx1151",), base="debian:trixie")
    )
    refused(["lock"], "network", "check the network", before=("unshare", "--net"))
    assert not (folder / "rocwright.lock").exists()


READ_ONLY = ("unshare", "--mount", "sh", "-c", 'p=$0; mount -t tmpfs -o ro none "$p"; cd "$PWD"; exec "$@"')


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_read_only_folder_is_told_with_the_file_that_was_to_be_written(
    refused: Refused, folder: Path
) -> None:
    told = (f"{folder}/rocwright.toml cannot be read or written", "run it in a folder that you can write to")
    refused(["init", "--stack", "gfx-smoke"], "disk", *told, before=(*READ_ONLY, str(folder)))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_doctor_reports_a_home_that_cannot_be_written(rocwright: Command, tmp_path: Path) -> None:
    home = tmp_path / "read only"
    home.mkdir()
    env = {"ROCWRIGHT_HOME": str(home)}
    done = rocwright("doctor", env=env, before=(*READ_ONLY, str(home)))
    assert done.returncode == 12, done.stderr
    assert f"{home}/store cannot be read or written" in done.stdout


def test_a_home_that_is_a_file_is_told(refused: Refused, folder: Path, tmp_path: Path) -> None:
    write_project(folder, lock_of("gfx-smoke"))
    (tmp_path / "file").write_text("x")
    refused(["plan"], "input", str(tmp_path / "file"), env={"ROCWRIGHT_HOME": str(tmp_path / "file")})


def test_a_missing_program_is_told_with_the_installer_of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "how_to_install", lambda program: f"the distribution has {program}")
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "nobara", "ID_LIKE": "fedora"})
    assert "distribution" in not_installed("skopeo").next_step
    CliRunner().invoke(cli, ["stacks"])
    assert not_installed("skopeo").next_step == "sudo dnf install skopeo; then try again"
