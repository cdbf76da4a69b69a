"""Trust domains' folders: lent, measured, and removed when all take too much."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from rocwright.config import CACHE_BYTES, config_file
from rocwright.execution import compiler_cache
from rocwright.execution.compiler_cache import add_others, domains, drop, last_used, lend, others
from rocwright.home import Home

A, B, C = ("a" * 64, "b" * 64, "c" * 64)


def use(home: Home, domain: str, size: int = 10) -> None:
    """Lend a domain to a step that leaves a file of so many bytes, sparse."""
    with lend(home, domain) as cache:
        assert cache.folder is not None
        (cache.folder / "0").mkdir(exist_ok=True)
        with (cache.folder / "0/result").open("wb") as file:
            file.truncate(size)


def names(home: Home) -> list[str]:
    return [folder.name for folder in domains(home)]


def test_a_domain_is_empty_first_and_filled_from_then_on(home: Home) -> None:
    states = []
    for domain in (A, A, B):
        with lend(home, domain) as cache:
            states.append((cache.use.state, cache.use.domain))
        use(home, domain)
    assert states == [("empty", A), ("filled", A), ("empty", B)]


def test_the_domains_used_longest_ago_go_when_all_take_too_much(home: Home) -> None:
    most = CACHE_BYTES
    use(home, B, most // 2)
    use(home, A, most // 4)
    use(home, B, most // 2)
    assert names(home) == [A, B]
    use(home, C, most // 2)
    assert names(home) == [B, C]


def test_what_all_may_take_is_a_setting(home: Home) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text('compiler_cache_size = "100 MiB"\n')
    use(home, B, 60 * 1024**2)
    use(home, A, 60 * 1024**2)
    assert names(home) == [A]
    config_file().write_text('compiler_cache_size = "200 MiB"\n')
    use(home, B, 60 * 1024**2)
    assert names(home) == [A, B]


def test_a_domain_that_alone_takes_too_much_goes_and_the_others_stay(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(home, B)
    use(home, A, CACHE_BYTES + 1)
    assert names(home) == [B]
    monkeypatch.setattr(compiler_cache, "MOST_FILES", 3)
    with lend(home, C) as cache:
        assert cache.folder is not None
        for number in range(4):
            (cache.folder / f"{number}").touch()
    assert names(home) == [B]
    drop(home, home.compiler_cache(B))
    assert [one.name for one in home.compiler_caches.iterdir()] == [".lock"]


def test_a_domain_that_a_step_uses_stays_however_much_it_takes(home: Home) -> None:
    use(home, A)
    with lend(home, A) as one, lend(home, A) as two:
        assert one.folder == two.folder
        use(home, B, CACHE_BYTES + 1)
        assert names(home) == [A]
        assert not drop(home, home.compiler_cache(A))
    assert drop(home, home.compiler_cache(A))
    assert names(home) == []


def test_a_domain_that_a_step_has_shut_goes(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with lend(home, A) as cache:
        assert cache.folder is not None
        cache.folder.chmod(0)
        if os.geteuid() == 0:
            monkeypatch.setattr(compiler_cache, "Untrusted", _shut)
    assert names(home) == []


def _shut(folder: Path, by: str) -> None:
    """What opening it says to anybody but root."""
    raise PermissionError(13, "Permission denied", str(folder))


def test_a_step_cannot_say_when_its_domain_was_used(home: Home) -> None:
    with lend(home, A) as cache:
        assert cache.folder is not None
        os.utime(cache.folder, (2**31, 2**31))
    assert abs(last_used(home.compiler_cache(A)) - time.time()) < 3600


def test_what_a_kill_left_of_a_removal_goes_with_the_next(home: Home) -> None:
    use(home, A)
    home.compiler_cache(A).rename(home.compiler_caches / f"{A}.1.gone")
    use(home, B)
    assert names(home) == [B]
    drop(home, home.compiler_cache(B))
    assert not list(home.compiler_caches.glob("*.gone"))


@pytest.mark.parametrize("link", ["link to a folder", "link to nothing"])
def test_a_link_that_a_step_left_is_removed_and_not_followed(home: Home, tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    if link == "link to a folder":
        outside.mkdir()
        (outside / "file").write_text("x")
    with lend(home, A) as cache:
        assert cache.folder is not None
        (cache.folder / "0").symlink_to(outside)
    assert drop(home, home.compiler_cache(A))
    assert names(home) == []
    assert not outside.exists() or (outside / "file").exists()


def test_whose_objects_are_in_a_domain_is_known_until_it_goes(home: Home) -> None:
    folder = home.compiler_cache(A)
    with lend(home, A) as cache:
        assert cache.folder == folder
        add_others(home, folder, {"one"})
        add_others(home, folder, {"two", "one"})
    assert others(folder) == {"one", "two"}
    assert others(home.compiler_cache(B)) == frozenset()
    use(home, B)
    assert names(home) == [A, B]
    drop(home, folder)
    assert others(folder) == frozenset()


def test_a_domain_begins_anew_where_a_key_that_is_not_trusted_signed_some_of_it(home: Home) -> None:
    said: list[str] = []
    with lend(home, A) as cache:
        assert cache.folder is not None
        (cache.folder / "0").mkdir()
        add_others(home, cache.folder, {"one"})
    with lend(home, A, {"one", "two"}, said.append) as cache:
        assert (cache.use.state, said) == ("filled", [])
        # a step that runs keeps it
        with lend(home, A, {"two"}, said.append) as second:
            assert (second.use.state, said) == ("filled", [])
    with lend(home, A, {"two"}, said.append) as cache:
        assert cache.use.state == "empty"
        assert cache.folder is not None
        assert others(cache.folder) == frozenset()
    assert "not trusted any more" in said[0]
