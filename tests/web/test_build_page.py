"""`rocwright history RUN --markdown`: what a build took, and what came of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from rocbase.files.atomic import sha256_bytes
from rocwheel_samples.fatbin import write_wheel
from rocwheel_samples.gpu_assembly import assemble, kernel_source
from rocwright.cli.history import command
from rocwright.home import Home
from rocwright.plan.resolve.model import Request
from rocwright.records.model import Artifact, Finding
from rocwright.records.read import Records
from rocwright.store.local import LocalStore
from rocwright.web.build_page import build_page
from tests.making import lock_of
from tests.web.serving import a_run, a_step

KEY = "abcdef" * 10


@pytest.fixture
def wheel(home: Home, tmp_path: Path) -> Artifact:
    """A wheel with one kernel, in the store."""
    source = kernel_source(
        "scale", descriptor={"next_free_vgpr": 99}, metadata={"max_flat_workgroup_size": 64}
    )
    code = assemble(tmp_path, source, "gfx803").read_bytes()
    path = write_wheel(tmp_path / "tiny-1-py3-none-any.whl", {"tiny/scale.hsaco": code})
    sha256, length = LocalStore(home.store).put_file(path)
    return Artifact(component="alpha", step="alpha", filename=path.name, sha256=sha256, size=length)


def fill(records: Records, wheel: Artifact) -> None:
    """Two attempts that were stopped, and the build that went on; a check of what came of it, later."""
    for number, seconds in ((1, 600), (2, 30), (3, 0)):
        step = a_step(key=KEY, outcome="stopped", seconds=seconds)
        records.put(a_run(f"run-{number}", outcome="stopped", steps=(step,)))
    done = a_step(key=KEY, seconds=90, peak_memory=2**30, resumed=2, compiler_cache={"hit": 3, "miss": 4})
    records.put(a_run("run-4", steps=(done,), versions={"alpha": "1.0"}), artifacts=[wheel])
    bad = Finding(component="alpha", check="x", name="x|y", ok=False, detail="<b>", sha256=wheel.sha256)
    records.put(a_run("run-5", command="verify", outcome="failed", steps=()), findings=[bad])


def test_the_page_has_what_it_took_what_came_of_it_and_what_was_checked(
    home: Home, records: Records, wheel: Artifact
) -> None:
    fill(records, wheel)
    run = records.run("run-4")
    assert run is not None
    lines = build_page(records, LocalStore(home.store), run).splitlines()
    assert lines[0] == "# tiny for gfx1151 on debian:sid"
    assert "| repeat | `rocwright build tiny --base debian:sid --gpu gfx1151` |" in lines
    # two attempts of 630 s in all, and one that took no time
    row = next(line for line in lines if line.startswith("| alpha |") and "built" in line)
    assert [cell.strip() for cell in row.split("|")[3:9]] == [
        "built, resumed",
        "1 min 30 s",
        "2 earlier, 10 min 30 s",
        "",
        "1.00 GiB",
        "3 of 7",
    ]
    assert f"| `{wheel.filename}` | {wheel.size:,} | `{wheel.sha256}` |" in lines
    assert next(line for line in lines if "scale.hsaco" in line).split("|")[2:4] == [" gfx803 ", " 1 "]
    assert "### Taken by its 1 kernel for gfx803" in lines
    assert "| vector registers, a work-item | 99 | 99 | 256 |" in lines
    # the findings of another run on the same bytes, and nobody's text ends a cell
    assert "1 finding: 0 ok, 0 absent, 1 failed." in lines
    assert "| alpha | x\\|y | FAILED | - | &lt;b> |" in lines


def test_what_was_verified_again_counts_once_as_it_went_the_last_time(
    home: Home, records: Records, wheel: Artifact
) -> None:
    fill(records, wheel)
    good = Finding(component="alpha", check="x", name="x|y", ok=True, detail="mended", sha256=wheel.sha256)
    records.put(a_run("run-6", command="verify", outcome="verified", steps=()), findings=[good])
    run = records.run("run-4")
    assert run is not None
    text = build_page(records, LocalStore(home.store), run)
    assert "1 finding: 1 ok, 0 absent, 0 failed." in text
    assert "&lt;b>" not in text


def test_what_a_check_could_not_even_begin_is_gone_when_it_runs(
    home: Home, records: Records, wheel: Artifact
) -> None:
    """A suite that fails to import what it tries tells of it under a name that it never uses again."""
    fill(records, wheel)
    said = {"component": "alpha", "check": "x", "sha256": wheel.sha256, "ok": True}
    on_card = Finding(name="add", device="RX 580", **said)
    for number, found in enumerate((on_card, Finding(name="add", device="cpu", **said)), start=6):
        records.put(a_run(f"run-{number}", command="verify", steps=()), findings=[found])
    run = records.run("run-4")
    assert run is not None
    page = build_page(records, LocalStore(home.store), run)
    assert "2 findings: 2 ok, 0 absent, 0 failed." in page
    assert "| RX 580 |" in page


def test_a_build_that_goes_on_is_told_with_all_that_was_asked_for(home: Home, records: Records) -> None:
    request = Request(stack="tiny", gpu=("gfx803",), base="debian:sid", versions={"alpha": "1.0"})
    locked = lock_of("gfx-smoke").model_copy(update={"request": request})
    text = locked.model_dump_json(by_alias=True)
    about = {
        "state": "running",
        "outcome": "",
        "lock": sha256_bytes(text.encode()),
        "variant": request.variant,
    }
    records.put(a_run("run-1", **about), lock=text)
    run = records.run("run-1")
    assert run is not None
    lines = build_page(records, LocalStore(home.store), run).splitlines()
    assert lines[0] == "# tiny for gfx1151 on debian:sid alpha=1.0"
    assert "| repeat | `rocwright build tiny --base debian:sid --gpu gfx803 --set alpha=1.0` |" in lines
    assert "| outcome | running |" in lines


def test_machine_code_that_is_no_longer_in_the_store_is_told_so(
    home: Home, records: Records, wheel: Artifact
) -> None:
    gone = wheel.model_copy(update={"sha256": "0" * 64})
    fill(records, gone)
    run = records.run("run-4")
    assert run is not None
    page = build_page(records, LocalStore(home.store), run)
    assert f"`{wheel.filename}` is no longer in the store: its machine code was not read." in page


def test_the_command_prints_it(
    home: Home, records: Records, wheel: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(home.path))
    fill(records, wheel)
    done = CliRunner().invoke(command, ["run-4", "--markdown"])
    assert done.output.startswith("# tiny for gfx1151 on debian:sid\n")
    refused = CliRunner().invoke(command, ["--markdown"])
    assert (refused.exit_code, "wants a RUN" in refused.output) == (2, True)
