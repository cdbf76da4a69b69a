"""A fifo of the host in every engine: the job, another user, takes tokens and gives them back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rocwright.execution.jobs.forms import FIFO
from rocwright.execution.jobs.tokens import Tokens
from rocwright.sandbox import ENGINES, Mount
from rocwright.sandbox.engine import Scene
from tests.sandbox.sandbox_jobs import Run, shell


@pytest.fixture
def tokens(tmp_path: Path) -> Iterator[Tokens]:
    folder = tmp_path / "server"
    folder.mkdir(mode=0o700)
    made = Tokens.create(folder)
    yield made
    made.close()


def test_a_job_takes_tokens_and_gives_them_back(ran: Run, tokens: Tokens) -> None:
    tokens.put(5)
    fifo = Mount(source=tokens.path, target=FIFO, writable=True)
    script = f"id -u; exec 8<>{FIFO} 9<>{FIFO}; head -c 3 <&8; printf ++ >&9; ls /run/rocwright"
    outcome, lines = ran(shell(script, mounts=(fifo,)))
    assert outcome.ok, lines
    assert lines[:2] == ["1000", "+++tokens"]
    assert tokens.held() == 4


def test_docker_is_given_the_fifo_as_a_file(tmp_path: Path, tokens: Tokens) -> None:
    """By its command line: its daemon does not run everywhere."""
    scene = Scene(
        name="rocwright-1-2-3",
        folder=tmp_path,
        skeleton=tmp_path,
        mounts=(Mount(source=tokens.path, target=FIFO, writable=True),),
        command=("true",),
    )
    argv = ENGINES["docker"].launch(scene).argv
    assert argv[argv.index("--volume") + 1] == f"{tokens.path}:{FIFO}:rw"
    assert argv[argv.index("--network") + 1] == "none"
