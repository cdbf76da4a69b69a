"""What a hostile step can do to the compiler cache that machines share."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.execution.conftest import DOMAIN, Workshop

from rocwright.config import config_file
from rocwright.execution.compiler_cache import SIGNER

WRITES = "if echo evil > /shared-ccache/evil; then echo wrote; else echo refused; fi > $OUT/result"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    (folder / DOMAIN).mkdir(parents=True)
    (folder / DOMAIN).chmod(0o777)  # only the mount is in the way
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text(f'[farm]\ncompiler_cache = "{folder}"\n')
    return folder


def test_a_step_of_a_machine_that_reads_cannot_write(workshop: Workshop, folder: Path) -> None:
    record = workshop.run(workshop.step(WRITES))
    assert workshop.text(record) == "refused\n"
    assert list((folder / DOMAIN).iterdir()) == []
    assert record.cache_signers == (SIGNER,)


def test_a_step_of_a_trusted_machine_writes_into_the_folder_of_its_domain(
    workshop: Workshop, folder: Path
) -> None:
    (folder / DOMAIN).rmdir()
    with config_file().open("a") as file:
        file.write("compiler_cache_writes = true\n")
    record = workshop.run(workshop.step(WRITES))
    assert workshop.text(record) == "wrote\n"
    assert [path.relative_to(folder) for path in folder.rglob("evil")] == [Path(DOMAIN, "evil")]
    assert record.compiled_by_others() == (SIGNER,)


@pytest.mark.parametrize("writes", ["true", "false"])
@pytest.mark.parametrize("replace", ["link", "nothing", "file"])
def test_a_step_sees_no_other_folder_of_the_machine(
    workshop: Workshop, folder: Path, tmp_path: Path, replace: str, writes: str
) -> None:
    (folder / DOMAIN).rename(tmp_path / "elsewhere")
    with config_file().open("a") as file:
        file.write(f"compiler_cache_writes = {writes}\n")
    if replace == "link":
        (folder / DOMAIN).symlink_to(tmp_path / "elsewhere")
    if replace == "file":
        (folder / DOMAIN).write_text("")
    record = workshop.run(workshop.step(WRITES))
    made = (replace, writes) == ("nothing", "true")
    assert workshop.text(record) == ("wrote\n" if made else "refused\n")
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert bool(record.cache_signers) is made
