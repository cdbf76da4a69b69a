"""The base where none is named: of those that lock takes, the one that most was seen of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rocbase.errors import InputError
from rocwright.api import project, request
from rocwright.catalog.load import Catalog, builtin_catalog
from rocwright.plan.resolve.elsewhere import resolves
from rocwright.plan.resolve.folder import PROJECT
from rocwright.plan.resolve.model import Request
from rocwright.plan.resolve.shipped import requests
from rocwright.verify.proven import proven_base

CATALOG = builtin_catalog()


def seen(folder: Path, *said: tuple[str, str]) -> Catalog:
    """The catalog with nothing seen of PyTorch but this, on these bases."""
    texts = [
        f'[[evidence]]\nstack = "pytorch"\nwhen = "2026-11-21"\nbases = {{ "{base}" = ["gfx803"] }}\n'
        f'shows = {{ "{word}" = {{ detail = "x", source = "x" }} }}\n'
        for base, word in said
    ]
    (folder / "evidence.toml").write_text("\n".join(texts))
    return replace(CATALOG, folders=(folder,))


def asked(stack: str, gpu: str, **more: object) -> Request:
    base = CATALOG.stack(stack).bases[0]
    return Request.model_validate({"stack": stack, "gpu": (gpu,), "base": base} | more)


@pytest.mark.parametrize("stack", CATALOG.stacks)
@pytest.mark.parametrize("gpu", ["gfx803", "gfx1103", "gfx1151"])
def test_it_is_never_one_that_lock_refuses_where_there_is_another(stack: str, gpu: str) -> None:
    request = asked(stack, gpu)
    able = [
        one
        for one in CATALOG.stack(stack).bases
        if resolves(request.model_copy(update={"base": one}), CATALOG)
    ]
    assert not able or proven_base(request, CATALOG) in able


def test_more_evidence_goes_first_and_then_the_first_row(tmp_path: Path) -> None:
    request = asked("pytorch", "gfx803")
    assert proven_base(request, seen(tmp_path)) == "rocm-ubuntu-24.04:6.4"
    one = ("arch:2025-10-15", "checked against source")
    assert proven_base(request, seen(tmp_path, one)) == "arch:2025-10-15"
    assert proven_base(request, seen(tmp_path, one, ("debian:sid", "built"))) == "debian:sid"


def test_a_base_without_a_row_for_the_card_comes_after_those_with_one(tmp_path: Path) -> None:
    catalog = seen(tmp_path, ("rocm-ubuntu-24.04:6.4.1", "ran on a GPU"))
    assert proven_base(asked("pytorch", "gfx803"), catalog) == "rocm-ubuntu-24.04:6.4"


def test_a_row_that_goes_without_a_library_is_for_who_accepts_that() -> None:
    assert proven_base(asked("llama-hip", "gfx1151"), CATALOG) == "debian:experimental"
    accepted = asked("llama-hip", "gfx1151", accept_missing=("rocblas",))
    assert proven_base(accepted, CATALOG) == "debian:sid"


@pytest.mark.parametrize(
    ("name", "options", "stack", "base"),
    [
        ("vllm", {"gpu": "gfx1151"}, "vllm-wheels", "ubuntu:24.04"),
        ("vllm", {"gpu": "gfx1103"}, "vllm", "fedora:43"),
        ("vllm", {"gpu": "gfx1151", "base": "fedora:43"}, "vllm", "fedora:43"),
        ("vllm", {"gpu": "gfx1151", "base": "debian:experimental"}, "vllm-debian", "debian:experimental"),
        ("vllm", {"gpu": "gfx1151", "versions": {"vllm": "0.10.2"}}, "vllm", "fedora:43"),
        ("vllm", {"gpu": "gfx1151", "provider": "amd"}, "vllm", "rocm-ubuntu-24.04:6.4.1"),
        ("vllm", {"gpu": "gfx1151", "extra": ["flash-attention"]}, "vllm", "fedora:43"),
        ("vllm:built", {"gpu": "gfx1151"}, "vllm", "fedora:43"),
        ("vllm:image", {"gpu": "gfx1151"}, "vllm-prebuilt", "debian:trixie"),
        ("vllm-prebuilt", {"gpu": "gfx1151"}, "vllm-prebuilt", "debian:trixie"),
        ("ollama", {"gpu": "gfx1151"}, "ollama", "debian:trixie"),
    ],
)
def test_a_name_stands_for_the_first_origin_that_serves(
    name: str, options: dict[str, Any], stack: str, base: str
) -> None:
    chosen = request(name, **options)
    assert (chosen.stack, chosen.base) == (stack, base)


def test_every_row_is_reached_by_its_own_words() -> None:
    for row in requests(CATALOG):
        told = request(row.stack, row.gpu, row.base, provider=row.provider, extra=row.extra)
        assert told.stack == row.stack


@pytest.mark.parametrize(
    ("name", "gpu", "message"),
    [
        ("vllm:nonesuch", "gfx1151", "vllm does not come from 'nonesuch'"),
        ("ollama:built", "gfx1151", "ollama does not come from 'built'"),
    ],
)
def test_an_unknown_origin_is_refused(name: str, gpu: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        request(name, gpu)


def test_where_no_origin_serves_the_stack_itself_says_why() -> None:
    assert request("vllm", "gfx803").stack == "vllm"
    assert request("vllm:published", "gfx803").stack == "vllm-wheels"


def test_a_project_file_of_one_of_the_origins_stands(tmp_path: Path) -> None:
    (tmp_path / PROJECT).write_text(
        'stack = "vllm-debian"\ngpu = ["gfx1151"]\nbase = "debian:experimental"\n'
    )
    assert project("vllm", folder=tmp_path, home=tmp_path / "home").request.stack == "vllm-debian"
