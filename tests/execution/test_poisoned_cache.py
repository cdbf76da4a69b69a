"""What a step leaves in the compiler cache, with a real ccache and a real compiler: who finds it, who not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.execution.conftest import DOMAIN, Workshop, put_root
from tests.making import digest, make_tiny_root

from rocwright.home import Home
from rocwright.model.steps import Step
from rocwright.plan.domain import domain_of
from rocwright.store.local import LocalStore
from rocwright.store.model import CacheUse, Record, verified

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(shutil.which("ccache") is None, reason="ccache is not installed"),
]

SOURCE = 'const char *f(void) { return "honest"; }\n'
POISON = 'const char *f(void) { return "poison"; }\n'

PREFIX = (
    "printf '#!/bin/sh\\nsed -i s/honest/poison/ *.c\\nexec \"$@\"\\n' > /ccache/prefix",
    "chmod 755 /ccache/prefix",
    "printf 'prefix_command = /ccache/prefix\\nprefix_command_cpp = /ccache/prefix\\n' > /ccache/ccache.conf",
)
"""Has every compilation that reads ccache's configuration in this folder run a command first."""

FORGED = (
    "ccache gcc -I. -c hello.c -o honest.o",
    "honest=$(find /ccache -name '*R')",
    "ccache gcc -I. -c poison.c -o poison.o",
    'for one in $(find /ccache -name "*R"); do test "$one" = "$honest" || poison=$one; done',
    'cat "$poison" > "$honest"',
)
"""Puts the object of other code where ccache looks for that of hello.c."""


@pytest.fixture(scope="module")
def compiler_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiler-root")
    asked = ["/usr/bin/gcc", "-print-prog-name=cc1"]
    cc1 = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    programs = ("/usr/bin/gcc", "/usr/bin/as", "/usr/bin/ccache", cc1, "find", "chmod")
    make_tiny_root(folder / "root.tar.zst", folder, more=programs)
    return folder / "root.tar.zst"


@pytest.fixture
def shop(home: Home, engine: str, compiler_root: Path, tmp_path: Path) -> Workshop:
    return Workshop(
        home, LocalStore(home.store), engine, tmp_path, put_root(LocalStore(home.store), compiler_root)
    )


def compiles(shop: Workshop, component: str, *before: str, targets: str = "gfx803", domain: str = "") -> Step:
    """A step that compiles hello.c, after others; its domain is its recipe's, if none is named."""
    commands = (*before, "ccache gcc -I. -c hello.c -o $OUT/result")
    files = {"hello.c": SOURCE, "poison.c": POISON}
    return shop.step(
        *commands,
        name=component,
        tree=shop.tree("tree", **files),
        env={"TARGETS": targets},
        domain=domain
        or domain_of(
            component,
            root=shop.root.key,
            sources=[digest("tree")],
            commands=commands,
            env={"TARGETS": "{targets}"},
        ),
    )


def built(shop: Workshop, record: Record) -> str:
    """Which of the two codes an object holds."""
    [output] = record.outputs
    data = verified(shop.store, output.sha256).read_bytes()
    return " ".join(word for word in ("honest", "poison") if word.encode() in data)


@pytest.mark.parametrize("poison", [PREFIX, FORGED], ids=["configuration", "forged entry"])
def test_what_one_component_left_in_the_compiler_cache_reaches_no_other(
    shop: Workshop, poison: tuple[str, ...]
) -> None:
    shop.run(compiles(shop, "hostile", *poison))
    record = shop.run(compiles(shop, "honest"))
    assert built(shop, record) == "honest"
    assert record.compiler_cache == {"miss": 1}


def test_a_forged_entry_cannot_be_told_from_another_so_only_the_domain_keeps_it_out(shop: Workshop) -> None:
    """That it works where both share a domain shows that the test before it tries something."""
    shop.run(compiles(shop, "hostile", *FORGED, domain=DOMAIN))
    assert built(shop, shop.run(compiles(shop, "honest", domain=DOMAIN))) == "poison"


def test_a_configuration_in_the_folder_has_no_effect_within_its_own_domain(shop: Workshop) -> None:
    shop.run(compiles(shop, "hostile", *PREFIX, domain=DOMAIN))
    assert built(shop, shop.run(compiles(shop, "honest", domain=DOMAIN))) == "honest"


def test_a_build_for_a_second_gpu_finds_what_the_first_has_compiled(shop: Workshop) -> None:
    first = shop.run(compiles(shop, "torch", targets="gfx803"))
    second = shop.run(compiles(shop, "torch", targets="gfx1103"))
    assert (first.compiler_cache, second.compiler_cache) == ({"miss": 1}, {"hit": 1})
    assert (first.cache and first.cache.state, second.cache and second.cache.state) == ("empty", "filled")


def test_another_recipe_of_the_same_name_finds_nothing(shop: Workshop) -> None:
    shop.run(compiles(shop, "torch"))
    other = shop.run(compiles(shop, "torch", "true"))
    assert other.compiler_cache == {"miss": 1}
    assert other.cache is not None
    assert other.cache.state == "empty"


def test_without_a_compiler_cache_everything_is_compiled_and_the_record_says_so(shop: Workshop) -> None:
    shop.run(compiles(shop, "torch", targets="gfx803"))
    record = shop.run(compiles(shop, "torch", targets="gfx1103"), compiler_cache=False)
    assert built(shop, record) == "honest"
    assert record.cache == CacheUse(state="none")
    assert "hit" not in record.compiler_cache
