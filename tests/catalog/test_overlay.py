"""A folder of the user's own over the carried catalog; a new GPU and a new distribution by data alone."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.conftest import Command
from tests.making import lock_of

from rocbase.errors import InputError
from rocbase.toml.read import holder
from rocwheel.wheels.devicecode.gpu import machines
from rocwheel_samples.trees import write_tree
from rocwright.catalog.folders import DATA, catalog_folders
from rocwright.catalog.load import builtin_catalog, load_catalog
from rocwright.catalog_lint.recipes import check_catalog
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.validate import check_request

NEW_GPU = """
[[target]]
name        = "gfx1170"
kfd_version = 110700
generation  = "RDNA 4m APU"
products    = ["Radeon 990M"]
codenames   = ["Medusa Point"]
pci_ids     = ["1002:fff0"]
wave        = 32
source      = ["a datasheet"]

[target.override]
identity = "11.7.0"
spoof    = ["gfx1100"]
warning  = "it hangs"

[[target.quirk]]
variable   = "HSA_ENABLE_SDMA"
value      = "0"
scope      = "run"
reason     = "it hangs"
source     = "a report"
"""

NEW_BASE = """
name         = "mint"
summary      = "Linux Mint"
manager      = "apt"
made         = "packages"
architecture = { x86_64 = "amd64" }
source       = "a test"

[[release]]
name   = "22"
source = "a test"

[packages]
hip-runtime = ["libamdhip64-7"]
"""


@pytest.fixture
def overlay(tmp_path: Path) -> Path:
    """A user's own catalog: a GPU, a distribution, a stack on it, and a provider that serves them."""
    stack = (DATA / "stacks" / "gfx-smoke.toml").read_text().replace('"debian:sid"', '"mint:22"')
    write_tree(
        tmp_path / "mine",
        {
            "targets.toml": NEW_GPU,
            "bases/mint.toml": NEW_BASE,
            "stacks/mint-smoke.toml": stack.replace('name       = "gfx-smoke"', 'name = "mint-smoke"'),
            "providers/mine.toml": 'name = "mine"\nsummary = "s"\nkind = "packages"\nsource = "s"\n'
            '[[serves]]\ntargets = ["gfx1170"]\nbases = ["mint"]\nsource = "a test"\nconfidence = "low"\n',
        },
    )
    return tmp_path / "mine"


def test_a_new_gpu_and_a_new_distribution_are_data_alone(overlay: Path) -> None:
    assert check_catalog((overlay, DATA)) == []
    catalog = load_catalog(overlay, DATA)
    assert set(catalog.targets) == {*builtin_catalog().targets, "gfx1170"}
    assert set(catalog.bases) == {*builtin_catalog().bases, "mint"}
    assert [one.name for one in catalog.providers_for("gfx1170", "7.0", "mint:22")] == ["mine"]
    assert catalog.system_packages(catalog.bases["mint"], ["c++", "hip-runtime"]) == ("g++", "libamdhip64-7")


def test_a_new_gpu_goes_as_far_as_a_plan_on_a_new_distribution(overlay: Path) -> None:
    catalog = load_catalog(overlay, DATA)
    lock = lock_of("mint-smoke", "gfx1170", catalog=catalog)
    base, release = check_request(lock.request, catalog)
    assert (base.name, release.name) == ("mint", "22")
    plan = make_plan(lock, catalog)
    step = next(one for one in plan.steps if one.name == "gfx-smoke")
    assert step.action.material()["env"]["GFX_TARGETS"] == "gfx1170"


def test_the_commands_know_a_new_gpu(rocwright: Command, overlay: Path) -> None:
    env = {"ROCWRIGHT_CATALOG": str(overlay)}
    for name in ("gfx1170", "990M", "Medusa Point", "1002:fff0"):
        told = json.loads(rocwright("targets", name, "--json", env=env).stdout)
        assert [one["name"] for one in told["targets"]] == ["gfx1170"]
    script = rocwright("env", "--gpu", "990M", "--for", "build", env=env).stdout
    done = subprocess.run(["bash", "-c", f"{script}\nenv"], capture_output=True, text=True, check=True)
    assert "PYTORCH_ROCM_ARCH=gfx1170\n" in done.stdout
    assert "export HSA_ENABLE_SDMA='0'" in rocwright("env", "--gpu", "gfx1170", env=env).stdout
    assert "no fault" in rocwright("catalog", "check", env=env).stdout
    page = rocwright("targets", "gfx1170", "-v", env=env).stdout
    assert "mine any version on mint" in page


def test_without_the_folder_the_new_gpu_is_unknown(rocwright: Command) -> None:
    assert rocwright("env", "--gpu", "gfx1170").returncode == 2


def test_what_the_folder_says_of_a_name_stands_whole_over_the_carried(tmp_path: Path) -> None:
    before = builtin_catalog().target("gfx1151")
    write_tree(
        tmp_path,
        {
            "targets.toml": '[[target]]\nname = "gfx1151"\nkfd_version = 110501\ngeneration = "mine"\n'
            'products = ["x"]\nsource = ["s"]\n',
            "system.toml": '"make" = { apt = ["bmake"] }\n',
        },
    )
    catalog = load_catalog(tmp_path, DATA)
    assert before.quirk
    assert not catalog.target("gfx1151").quirk
    assert catalog.system_packages(catalog.bases["debian"], ["make", "c++"]) == ("bmake", "g++")
    assert catalog.stacks == builtin_catalog().stacks
    assert catalog.run_only == builtin_catalog().run_only


def test_files_that_recipes_refer_to_are_looked_for_in_the_folder_first(tmp_path: Path) -> None:
    write_tree(tmp_path, {"checks/llama_cpp/check.py": "mine", "sources/mine/a": "b"})
    catalog = load_catalog(tmp_path, DATA)
    assert catalog.file("checks/llama_cpp/check.py") == tmp_path / "checks/llama_cpp/check.py"
    assert catalog.holder("guards/single_package.py") == DATA
    assert catalog.source("mine") == tmp_path / "sources/mine"
    assert catalog.source("gfx-smoke") == DATA / "sources/gfx-smoke"
    assert holder("guards/nonesuch.py", catalog.folders) is None
    with pytest.raises(InputError, match=r"has no file checks/none\.py"):
        catalog.file("checks/none.py")


def test_the_folder_is_the_one_that_the_variable_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROCWRIGHT_CATALOG", raising=False)
    assert catalog_folders() == (DATA,)
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(tmp_path))
    assert catalog_folders() == (tmp_path, DATA)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "near").mkdir()
    monkeypatch.setenv("ROCWRIGHT_CATALOG", "near")
    assert catalog_folders() == (tmp_path / "near", DATA)


@pytest.mark.parametrize(
    "verb", [("targets",), ("env", "--gpu", "gfx803"), ("catalog", "check"), ("plan", "gfx-smoke")]
)
def test_a_folder_that_is_none_is_refused(rocwright: Command, tmp_path: Path, verb: tuple[str, ...]) -> None:
    done = rocwright(*verb, env={"ROCWRIGHT_CATALOG": str(tmp_path / "none")})
    assert done.returncode == 2
    assert "error[input] ROCWRIGHT_CATALOG names" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "[[target]",
        "target = 1\n",
        "\x00",
        "a" * 100,
        "x = " + "[" * 3000,
        "[[target]]\nname = 3\n",
        "[[every]]\n",
    ],
)
def test_a_hostile_folder_is_refused_by_every_verb_in_words(
    rocwright: Command, tmp_path: Path, text: str
) -> None:
    write_tree(tmp_path / "mine", {"targets.toml": text})
    env = {"ROCWRIGHT_CATALOG": str(tmp_path / "mine")}
    for verb in (("targets",), ("catalog", "check")):
        done = rocwright(*verb, env=env)
        assert done.returncode == 2, done.stdout
        assert done.stderr.startswith("error[input]")
        assert "targets.toml" in done.stderr
        assert "Traceback" not in done.stderr


def test_the_number_of_a_new_gpu_in_code_objects_is_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(tmp_path, {"elf_machines.toml": 'source = ["a test"]\n[machines]\ngfx9999 = 0x7f\n'})
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(tmp_path))
    known = machines.__wrapped__()
    assert (known[0x7F], known[0x4A]) == ("gfx9999", "gfx1151")


def test_files_that_are_no_catalog_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "notes.toml")
    found = check_catalog((tmp_path, DATA))
    assert [one.what.partition(";")[0] for one in found] == ["nothing reads this file"]


OVER = """
name = "pytorch"
over = true

[resources]
memory_per_job = "3 GiB"

[[release]]
version = "2.6.0"
needs   = { numpy = ">=2" }

[[release]]
version = "2.6.9"
source  = "a mail"

[[edit]]
file    = "setup.py"
literal = "a"
with    = "b"
for     = "==2.6.9"
why     = "a reason"
"""


def test_a_file_of_ones_own_may_change_one_field_of_a_recipe(tmp_path: Path) -> None:
    write_tree(tmp_path, {"components/pytorch.toml": OVER})
    before, after = (load_catalog(*folders).component("pytorch") for folders in ((DATA,), (tmp_path, DATA)))
    assert after.resources.memory_per_job == 3 * 1024**3 != before.resources.memory_per_job
    assert after.resources.disk == before.resources.disk
    assert after.released("2.6.0").needs == before.released("2.6.0").needs | {"numpy": ">=2"}
    assert after.release[0].version == "2.6.9"
    assert after.release[1:] == tuple(
        one if one.version != "2.6.0" else after.released("2.6.0") for one in before.release
    )
    assert [edit.file for edit in after.edit if edit not in before.edit] == ["setup.py"]
    assert all(edit in after.edit for edit in before.edit)
    assert (after.run, after.check, after.download) == (before.run, before.check, before.download)


def test_a_file_that_changes_no_recipe_below_is_at_fault(tmp_path: Path) -> None:
    write_tree(tmp_path, {"components/pytorhc.toml": OVER.replace("pytorch", "pytorhc")})
    with pytest.raises(InputError) as caught:
        load_catalog(tmp_path, DATA)
    assert "no recipe of that name in a folder below" in caught.value.cause
