"""What fuzzing found, and the sound files that it began with: read by every run of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocwheel.wheels import source
from rocwheel_samples.tables import each
from tests.fuzz.targets import TARGETS, call, seeds

CORPUS = Path(__file__).parent / "corpus"


@pytest.fixture(autouse=True)
def little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "ALLOWANCE", 16 * 1024 * 1024)


@each("target", TARGETS)
def test_sound_files_are_read_by_each_target_without_an_error(target: str) -> None:
    for content in seeds()[target].values():
        TARGETS[target](content)


def test_what_fuzzing_found_gives_an_answer() -> None:
    files = sorted(CORPUS.glob("*/*"))
    assert files
    for file in files:
        call(file.parent.name, file.read_bytes())


@each("target", TARGETS)
def test_no_file_is_taken_for_another_without_an_answer(target: str) -> None:
    for named in seeds().values():
        for content in named.values():
            call(target, content)
            call(target, content[: len(content) // 2])
