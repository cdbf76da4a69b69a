"""`rocwright promote`: what stands is shown, a row is promoted by hand, and a refusal says what it lacks."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from tests.conftest import Command
from tests.making import lock_of
from tests.web.serving import a_run

from rocbase.errors import InputError
from rocbase.files.atomic import sha256_bytes
from rocwright.cli import cli
from rocwright.follow.cycle.by_hand import promote
from rocwright.follow.cycle.channels import channels_in
from rocwright.follow.cycle.stands import places
from rocwright.home import Home
from rocwright.plan.resolve.files import read_lock, write_request
from rocwright.plan.resolve.model import Lock
from rocwright.records.model import Finding
from rocwright.records.opening import open_records

ROW = "gfx-smoke_gfx1151_debian-sid"
PINNED = f"{ROW}_gfx-smoke=0.1.0"
MATRIX = """
[[matrix]]
stack = "gfx-smoke"
gpu = "gfx1151"
base = "debian:sid"

[[matrix]]
stack = "gfx-smoke"
gpu = "gfx1151"
base = "debian:sid"
versions = { gfx-smoke = "0.1.0" }

[[channel]]
name = "lab"
said = "ran in software"
device = "gfx1151"
"""


@pytest.fixture
def folder(tmp_path: Path, rocwright: Command) -> Path:
    """A project with two rows that differ only in their pins."""
    folder = tmp_path / "project"
    path = folder / "rocwright.toml"
    write_request(path, lock_of("gfx-smoke", "gfx1151", base="debian:sid").request)
    path.write_text(path.read_text() + MATRIX)
    return folder


def put(home: Home, lock: Lock, ident: str, **more: object) -> str:
    """A run of this lock on record, with a check that was right; gives the lock's sha256."""
    text, request = lock.model_dump_json(by_alias=True), lock.request
    about = {"stack": request.stack, "gpu": request.gpu, "base": request.base, "variant": request.variant}
    right = Finding(component="x", check="imports", name="imports", ok=True, device="llvmpipe")
    with open_records(home) as records:
        found = [right] if "command" in more else []
        more |= {"device": "llvmpipe"} if found else {}
        digest = sha256_bytes(text.encode())
        records.put(a_run(ident, lock=digest, **about, **more), findings=found, lock=text)
    return digest


def test_a_row_is_promoted_by_hand_and_never_without_evidence(
    rocwright: Command, home: Home, folder: Path
) -> None:
    def refused(row: str, channel: str = "") -> tuple[str, str]:
        with open_records(home) as records, pytest.raises(InputError) as caught:
            promote(records, folder, home, places(records, folder)[row], channel, channels_in(folder), "me")
        return caught.value.cause, caught.value.next_step

    plain = lock_of("gfx-smoke", "gfx1151", base="debian:sid")
    asked = plain.request.model_copy(update={"versions": {"gfx-smoke": "0.1.0"}})
    pinned = plain.model_copy(update={"request": asked})
    build = "rocwright build gfx-smoke --base debian:sid --gpu gfx1151 --set gfx-smoke=0.1.0 --verify"
    assert refused(PINNED) == ("no lock with evidence is on record", build)

    digest = put(home, pinned, "run-1", said="built")
    error = json.loads(rocwright("promote", PINNED, "--to", "candidate", "--json").stdout)["error"]
    assert error["message"] == f"{PINNED} is not promoted to candidate"
    assert "the channel needs 'checked without a GPU'" in error["cause"]
    assert error["next"] == build
    assert "no lock with evidence" in refused(ROW)[0], "the other row has none"
    made = json.loads(rocwright("promote", PINNED, "--json").stdout)
    assert (made["channel"], made["variant"], made["lock"]) == ("nightly", "gfx-smoke=0.1.0", digest)
    assert read_lock(folder / "locks" / PINNED / "nightly.lock").request == asked

    put(home, pinned, "run-2", command="verify", outcome="verified", said="ran in software")
    assert refused(PINNED, "nightly")[0] == "the channel has this lock already"
    missed = refused(PINNED, "known-good")
    assert missed == (
        "it is not in the channel before this one",
        f"rocwright promote {PINNED} --to candidate",
    )
    with open_records(home) as records:
        for name in ("candidate", "known-good"):  # the day that it should stand is left to the person
            place = places(records, folder)[PINNED]
            assert promote(records, folder, home, place, "", channels_in(folder), "me").channel == name
    why, next_step = refused(PINNED)
    assert why == "ran on llvmpipe; the channel needs gfx1151"
    assert next_step.startswith("on a machine with such a device")

    told = json.loads(rocwright("promote", "--json").stdout)
    assert [one["row"] for one in told] == [ROW, PINNED]
    assert [one["holds"] for one in told[1]["channels"]] == [digest, digest, digest, ""]
    table = rocwright("promote").stdout
    assert digest[:12] in table and "no lock with evidence is on record" in table


def test_a_user_without_a_line_in_passwd_promotes_by_number(
    rocwright: Command, home: Home, folder: Path
) -> None:
    nobody = ["unshare", "--user", "--map-user=4242", "env", "-u", "LOGNAME", "-u", "USER"]
    if subprocess.run([*nobody, "true"], capture_output=True).returncode:
        pytest.skip("no user namespaces here")
    put(home, lock_of("gfx-smoke", "gfx1151", base="debian:sid"), "run-1", said="built")
    promoted = rocwright("promote", ROW, "--json", before=nobody)
    assert promoted.returncode == 0, promoted.stderr
    assert json.loads(promoted.stdout)["channel"] == "nightly"


def test_a_lock_for_two_gpus_is_promoted_for_both(home: Home, tmp_path: Path) -> None:
    put(home, lock_of("gfx-smoke", "gfx803", "gfx1151", base="debian:sid"), "run-1", said="built")
    with open_records(home) as records:
        known = places(records, tmp_path)
        assert [*known] == [ROW, "gfx-smoke_gfx803_debian-sid"], "without a project: what is on record"
        promote(records, tmp_path, home, known[ROW], "", channels_in(tmp_path), "me")
        assert {one.gpu for one in records.promotions(channel="nightly")} == {"gfx803", "gfx1151"}
    assert (tmp_path / "locks/gfx-smoke_gfx803_gfx1151_debian-sid/nightly.lock").exists()


def test_a_row_or_a_channel_that_is_not_there_is_told_with_those_that_are(
    rocwright: Command, folder: Path
) -> None:
    error = json.loads(rocwright("promote", "gfx-smoke_gfx1151", "--json").stdout)["error"]
    assert ROW in error["cause"]
    error = json.loads(rocwright("promote", ROW, "--to", "good", "--json").stdout)["error"]
    assert "nightly, candidate, known-good, lab" in error["cause"]


def test_rows_and_channels_are_completed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    shell = ShellComplete(cli, {}, "rocwright", "_ROCWRIGHT_COMPLETE")
    assert [one.value for one in shell.get_completions(["promote"], "gfx")] == [ROW, PINNED]
    assert [one.value for one in shell.get_completions(["promote", ROW, "--to"], "l")] == ["lab"]
