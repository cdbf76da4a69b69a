"""Which provider serves which target, in which version, on which base."""

from __future__ import annotations

import pytest

from rocbase.errors import ConflictError, InputError
from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog

CATALOG = builtin_catalog()


@each(
    ("target", "version", "base", "expected"),
    [
        ("gfx1103", "7.14.0", "debian:sid", {"therock-source", "therock-wheels", "therock-tarball"}),
        ("gfx1103", "7.9.0", "arch:2025-10-28", {"therock-source"}),
        ("gfx803", "6.4", "rocm-ubuntu-24.04:6.4", {"amd"}),
        ("gfx803", "6.4.4", "debian:sid", {"distribution"}),
        ("gfx803", "7.14.0", "debian:sid", set()),
        ("gfx1250", "7.13.0", "debian:sid", set()),
        ("gfx1250", "7.14.0", "debian:sid", {"therock-source"}),
        ("gfx90c", "5.7.1", "debian:trixie", {"distribution"}),
    ],
)
def test_the_providers_of_a_target_are_known(
    target: str, version: str, base: str, expected: set[str]
) -> None:
    assert {one.name for one in CATALOG.providers_for(target, version, base)} == expected


def test_a_provider_that_serves_is_given() -> None:
    assert CATALOG.served("amd", "gfx803", "6.4", "rocm-ubuntu-24.04:6.4").name == "amd"


def test_a_provider_that_does_not_serve_is_a_conflict_that_names_those_that_do() -> None:
    with pytest.raises(ConflictError, match="amd does not serve gfx1103") as caught:
        CATALOG.served("amd", "gfx1103", "7.14.0", "ubuntu:24.04")
    assert "therock-wheels (ROCm/TheRock RELEASES.md" in caught.value.cause
    assert "therock-source (ROCm/TheRock cmake/" in caught.value.cause


def test_where_none_serves_it_is_said() -> None:
    with pytest.raises(ConflictError) as caught:
        CATALOG.served("therock-source", "gfx803", "7.14.0", "debian:sid")
    assert "no provider in the catalog serves it" in caught.value.cause


def test_an_unknown_provider_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown provider of ROCm 'therock-wheel'") as caught:
        CATALOG.served("therock-wheel", "gfx1103", "7.14.0", "debian:sid")
    assert "therock-wheels" in caught.value.cause


@each("name", CATALOG.providers)
def test_a_provider_names_targets_and_bases_that_are_there(name: str) -> None:
    provider = CATALOG.providers[name]
    named = {release for base in CATALOG.bases.values() for release in base.names} | set(CATALOG.bases)
    assert provider.versions
    assert provider.serves
    for one in provider.serves:
        assert set(one.targets) <= set(CATALOG.targets)
        assert set(one.bases) <= named
        assert one.source
        assert one.confidence


@each("target", CATALOG.targets)
def test_every_target_is_served_by_some_provider(target: str) -> None:
    assert any(target in one.targets for provider in CATALOG.providers.values() for one in provider.serves)
