"""The jobs of an exported step: the snippet is run by sh, with figures of memory of our own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rocbase.files.atomic import write_atomic
from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog
from rocwright.export.steps import LIMITS, MEMINFO, fewer, jobs_lines
from rocwright.export.write import export
from rocwright.plan.resolve.shipped import request_of, rows, shipped_lock

GIB = 1024**3
CATALOG = builtin_catalog()


def jobs(
    tmp_path: Path, available: str, limits: tuple[str, ...] = (), memory: int = GIB, given: str = ""
) -> int:
    """What the snippet says on a machine of eight processors, with `set -eu` as in a script."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(available)
    found = []
    for number, text in enumerate(limits):
        (tmp_path / f"limit{number}").write_text(text)
        found.append(str(tmp_path / f"limit{number}"))
    nproc = tmp_path / "nproc"
    nproc.write_text("#!/bin/sh\necho 8\n")
    nproc.chmod(0o755)
    lines = jobs_lines(memory, str(meminfo), (*found, str(tmp_path / "absent")))
    script = "\n".join(["set -eu", *lines, 'echo "$JOBS"'])
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "JOBS": given}
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=env, capture_output=True, text=True, check=True, timeout=60
    )
    return int(done.stdout)


def available(gib: float) -> str:
    return (
        f"MemTotal:       67108864 kB\nMemAvailable:   {round(gib * 1024**2)} kB\nHugePages_Total:       0\n"
    )


@pytest.mark.parametrize(
    ("gib", "limits", "memory", "wanted"),
    [
        (64, (), GIB, 8),  # as many as there are processors
        (5.5, (), GIB, 5),  # as memory suffices for
        (64, (), 12 * GIB, 5),
        (0.2, (), GIB, 1),  # one at least
        (64, ("max\n",), GIB, 8),  # a cgroup without a limit, of version 2
        (64, (f"{3 * GIB}\n",), GIB, 3),
        (64, ("max\n", "9223372036854771712\n"), GIB, 8),  # one without, of version 1
        (2, (f"{3 * GIB}\n",), GIB, 2),  # the tightest counts
        (5.5, (), 0, 5),  # where a recipe says nothing
        (64, ("",), GIB, 8),
    ],
)
def test_jobs_are_as_many_as_processors_and_memory_suffice_for(
    tmp_path: Path, gib: float, limits: tuple[str, ...], memory: int, wanted: int
) -> None:
    assert jobs(tmp_path, available(gib), limits, memory) == wanted


def test_jobs_that_are_given_stay(tmp_path: Path) -> None:
    assert jobs(tmp_path, available(1), given="7") == 7


def test_where_the_kernel_tells_nothing_of_memory_there_are_as_many_as_processors(tmp_path: Path) -> None:
    assert jobs(tmp_path, "MemTotal:       67108864 kB\n") == 8


@each(("count", "links"), [(1, 1), (2, 1), (8, 4), (16, 8)])
def test_links_that_take_more_than_a_job_are_fewer(count: int, links: int) -> None:
    text = fewer(8 * GIB, 4 * GIB)
    done = subprocess.run(
        ["/bin/sh", "-c", f'JOBS={count}; echo "${text}"'],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert int(done.stdout) == links
    assert fewer(4 * GIB, 8 * GIB) == "JOBS"


@each("kind", ["containerfile", "pipeline", "nspawn"])
def test_every_exported_step_has_the_rule_with_the_memory_of_its_recipe(kind: str) -> None:
    for stack, row in rows(CATALOG):
        if stack.name not in ("pytorch", "llama-vulkan"):
            continue
        lock = shipped_lock(CATALOG, request_of(stack, row))
        assert lock is not None
        scripts = {
            name: one.text for name, one in export(lock, CATALOG, kind).items() if name.startswith("steps/")
        }
        assert scripts
        for name, text in scripts.items():
            assert text.count("nproc") == 1, name
            assert MEMINFO in text and all(one in text for one in LIMITS), name
        for one in lock.components:
            if f"steps/{one.name}.sh" in scripts:
                each = CATALOG.component(one.name).resources.memory_per_job
                assert f"# {-(-each // 1024**2)} MiB for each job" in scripts[f"steps/{one.name}.sh"]


def pipeline_said(folder: Path, jobs: str) -> tuple[int, str, list[str]]:
    """What build_pipeline.sh does with JOBS: status, what it says, and its words to the engine."""
    stack = builtin_catalog().stack("llama-hip")
    lock = shipped_lock(builtin_catalog(), request_of(stack, stack.row[0]))
    assert lock is not None
    for name, file in export(lock, builtin_catalog(), "pipeline").items():
        write_atomic(folder / name, file.data)
    engine = folder / "engine"
    for path, text in ((folder / "prepare.sh", ":"), (engine, f"printf '%s\\n' \"$@\" > {folder}/words")):
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    env = {"PATH": "/usr/bin:/bin", "ENGINE": str(engine), "JOBS": jobs}
    done = subprocess.run(
        ["/bin/sh", folder / "build_pipeline.sh"], env=env, capture_output=True, text=True, timeout=60
    )
    words = folder / "words"
    return done.returncode, done.stderr, words.read_text().splitlines() if words.exists() else []


def test_jobs_given_to_the_pipeline_reach_the_build(tmp_path: Path) -> None:
    status, told, words = pipeline_said(tmp_path / "given", "3")
    assert (status, told) == (0, "")
    assert words[words.index("JOBS=3") - 1] == "--build-arg"
    status, told, words = pipeline_said(tmp_path / "open", "")
    assert (status, told) == (0, "")
    assert not [one for one in words if one.startswith("JOBS")]


@pytest.mark.parametrize("jobs", ["0", "many", "2; touch owned", "-1"])
def test_jobs_that_are_no_number_are_refused_before_anything_is_built(tmp_path: Path, jobs: str) -> None:
    status, told, words = pipeline_said(tmp_path, jobs)
    assert (status, words) == (2, [])
    assert "give a number, such as JOBS=4" in told
    assert not (tmp_path / "owned").exists()
