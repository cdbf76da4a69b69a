"""What a hostile step leaves ends it with one clear message; nothing hangs, and the store is as before."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from tests.execution.conftest import Workshop

from rocbase.errors import CheckError, ExplainedError, InputError, SandboxError
from rocwheel_samples.hostile_files import (
    make_fifo,
    make_huge,
    make_link_to_zero,
    make_setuid,
    make_socket,
    make_zero,
    soon,
)
from rocwright.execution.collect import cache_statistics, collect
from rocwright.model.steps import OutputSpec
from rocwright.sandbox.untrusted import MOST_TEXT, Untrusted
from rocwright.store.model import verified

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
ODD = [
    make_fifo,
    make_socket,
    make_link_to_zero,
    make_setuid,
    make_huge,
    pytest.param(make_zero, marks=root_only),
]


def make_long(path: Path) -> None:
    """A byte more than a log may have."""
    path.touch()
    os.truncate(path, MOST_TEXT + 1)


@pytest.fixture(autouse=True)
def nothing_hangs() -> Iterator[None]:
    with soon(120):
        yield


@pytest.fixture
def left(tmp_path: Path) -> Untrusted:
    (tmp_path / "left").mkdir()
    return Untrusted(tmp_path / "left", "torch")


def blobs(workshop: Workshop) -> list[tuple[str, int]]:
    return [file[:2] for file in workshop.store.local.files()]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("mkfifo /build/ccache.log", "hello left a FIFO as ccache.log"),
        ("ln -s /dev/zero /build/ccache.log", "hello left a symbolic link as ccache.log"),
        ("mkdir /build/ccache.log", "hello left a folder as ccache.log"),
        ("truncate -s 4T /build/ccache.log", "hello left a file as ccache.log"),
        ("touch /build/ccache.log; chmod 4755 /build/ccache.log", "hello left a file as ccache.log"),
        ("rm $OUT/result; mkfifo $OUT/result", "hello left a FIFO as its output result"),
        ("ln -sf /etc/passwd $OUT/result", "hello left a symbolic link as its output result"),
        ("rm $OUT/result; mkdir $OUT/result", "hello left a folder as its output result"),
        ("chmod 4755 $OUT/result", "hello left a file as result"),
        ("truncate -s 4T $OUT/result", "hello left a file as result"),
    ],
)
def test_a_step_that_leaves_what_is_no_plain_file_fails_by_name(
    workshop: Workshop, command: str, told: str
) -> None:
    step = workshop.step("touch $OUT/result", command)
    before = blobs(workshop)
    with pytest.raises(SandboxError) as failed:
        workshop.run(step)
    assert failed.value.message.startswith(told)
    assert failed.value.failure.value == "sandbox"
    assert failed.value.next_step
    assert blobs(workshop) == before
    assert workshop.store.record(step.key) is None


def test_a_link_in_the_store_of_a_step_does_not_take_in_what_it_names(
    workshop: Workshop, tmp_path: Path
) -> None:
    """The middle of an output's path is a link to a folder of the host."""
    (tmp_path / "secret").write_text("mine")
    step = workshop.step(f"ln -s {tmp_path} $OUT/dist", output="dist/secret")
    with pytest.raises(CheckError, match="made 0 files"):
        workshop.run(step)
    assert (tmp_path / "secret").read_text() == "mine"


def test_an_output_with_an_odd_name_is_told_in_plain_letters(workshop: Workshop) -> None:
    step = workshop.step("touch \"$OUT/$(printf 'a\\033[2J\\nb')\"", output="a*")
    with pytest.raises(SandboxError) as failed:
        workshop.run(step)
    assert failed.value.message.isprintable()
    assert "\\x1b[2J\\nb" in failed.value.message


def test_an_output_of_two_names_cannot_be_changed_by_the_other(workshop: Workshop) -> None:
    step = workshop.step("echo good > $OUT/result", "ln $OUT/result /out/other")
    record = workshop.run(step)
    [blob] = [verified(workshop.store, one.sha256) for one in record.outputs]
    assert blob.read_text() == "good\n"
    assert blob.stat().st_nlink == 1


def test_what_is_kept_of_a_step_belongs_to_the_caller(workshop: Workshop) -> None:
    record = workshop.run(workshop.step("echo good > $OUT/result; chmod 666 $OUT/result"))
    found = verified(workshop.store, record.outputs[0].sha256).stat()
    assert (found.st_uid, found.st_mode & 0o777) == (os.geteuid(), 0o444)


def test_the_counts_of_ccache_are_told(workshop: Workshop) -> None:
    said = "# file.c\\ndirect_cache_hit\\n# file.c\\ncache_miss\\nother\\ndirect_cache_hit\\n"
    record = workshop.run(workshop.step("touch $OUT/result", f"printf '{said}' > /build/ccache.log"))
    assert record.compiler_cache == {"hit": 2, "miss": 1}


@pytest.mark.parametrize("make", [*ODD, make_long])
def test_a_log_of_ccache_that_is_no_plain_file_is_refused(
    left: Untrusted, make: Callable[[Path], None]
) -> None:
    make(left.folder / "ccache.log")
    with pytest.raises(SandboxError, match=r"torch left .* as ccache\.log"):
        cache_statistics(left)


def test_a_log_of_ccache_without_lines_takes_little_memory(left: Untrusted) -> None:
    with (left.folder / "ccache.log").open("wb") as log:
        log.truncate(64 * 1024**2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert cache_statistics(left) == {}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024


@pytest.mark.parametrize("make", ODD)
def test_an_output_that_is_no_plain_file_is_refused(
    left: Untrusted, make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(left.folder / "a.whl")
    with pytest.raises(SandboxError, match=r"torch left .*a\.whl"):
        collect(left, [OutputSpec(name="wheel", pattern="*.whl")], tmp_path / "taken", limit=2**40)


def test_a_link_beside_the_one_output_is_left_alone(left: Untrusted, tmp_path: Path) -> None:
    (left.folder / "torch-1.whl").write_text("wheel")
    (left.folder / "torch-latest.whl").symlink_to("torch-1.whl")
    found = collect(left, [OutputSpec(name="wheel", pattern="torch-*.whl")], tmp_path / "taken")
    assert found["wheel"].name == "torch-1.whl"
    assert found["wheel"].read_text() == "wheel"


def test_an_output_may_be_as_large_as_is_said_and_no_larger(left: Untrusted, tmp_path: Path) -> None:
    (left.folder / "a").write_text("four")
    for most, taken in ((3, pytest.raises(SandboxError)), (4, nullcontext())):
        with taken:
            collect(left, [OutputSpec(name="a", pattern="a")], tmp_path / f"taken{most}", most)


def test_outputs_of_one_name_in_two_folders_are_both_taken(left: Untrusted, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (left.folder / folder).mkdir()
        (left.folder / folder / "lib").write_text(folder)
    specs = [OutputSpec(name=one, pattern=f"{one}/lib") for one in ("a", "b")]
    found = collect(left, specs, tmp_path / "taken")
    assert {name: path.read_text() for name, path in found.items()} == {"a": "a", "b": "b"}


def test_a_file_that_two_outputs_match_is_told(left: Untrusted, tmp_path: Path) -> None:
    (left.folder / "a.whl").touch()
    specs = [OutputSpec(name=one, pattern="*.whl") for one in ("a", "b")]
    with pytest.raises(CheckError, match="made 0 files"):
        collect(left, specs, tmp_path / "taken")


def test_a_pattern_that_leads_out_is_the_recipes_fault(left: Untrusted, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a valid pattern"):
        collect(left, [OutputSpec(name="a", pattern="../*")], tmp_path / "taken")


def test_ten_thousand_outputs_are_told_in_a_short_message(left: Untrusted, tmp_path: Path) -> None:
    for number in range(10_001):
        (left.folder / f"{number}.whl").touch()
    with pytest.raises(ExplainedError) as failed:
        collect(left, [OutputSpec(name="a", pattern="*.whl")], tmp_path / "taken")
    assert len(f"{failed.value.message}{failed.value.cause}{failed.value.detail}") < 1000


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], "nothing"),
        (["b", "a"], "a, b"),
        (range(10, 30), "10, .*, 29"),
        (range(10, 33), "10, .*, 29 and 3 more"),
    ],
)
def test_what_lies_there_instead_is_named(
    left: Untrusted, tmp_path: Path, names: Iterable[object], said: str
) -> None:
    for name in names:
        (left.folder / str(name)).touch()
    with pytest.raises(CheckError) as failed:
        collect(left, [OutputSpec(name="a", pattern="*.whl")], tmp_path / "taken")
    assert re.fullmatch(f"in the output folder: {said}", failed.value.cause)
