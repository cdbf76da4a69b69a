"""`catalog check` finds what is wrong, all of it, and says where."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.conftest import Command

from rocbase.toml.read import TableFault
from rocwheel.tables import DATA as WHEEL_DATA
from rocwheel_samples.tables import each
from rocwheel_samples.trees import write_tree
from rocwright.catalog.folders import DATA
from rocwright.catalog_lint import tables
from rocwright.catalog_lint.recipes import TABLES
from rocwright.catalog_lint.tables import FILES, schema
from rocwright.cli.catalog import KINDS

TARGET = 'name = "gfx1104"\nkfd_version = 110004\ngeneration = "x"\nproducts = ["x"]\n'
STACK = 'summary = "s"\ncomponents = ["gfx-smoke"]\nbases = ["debian:sid"]\nsource = "s"\n'
ROW = '[[row]]\nwish = "w"\nholds = "h"\n'
BASE = (
    'summary = "s"\nmanager = "apt"\nmade = "packages"\narchitecture = { x86_64 = "amd64" }\nsource = "s"\n'
)
PROVIDER = 'name = "mine"\nsummary = "s"\nkind = "source"\nsource = "s"\n'
LEAK = 'variable = "X"\nwhy = "w"\nsource = "s"\n'
LOOSE = 'name = "n"\nwhat = "w"\nneeded = true\nmissing = "m"\nsource = [" "]\n'
SEEN = (
    'stack = "nonesuch"\nwhen = "w"\nbases = { b = ["gfx9"] }\nshows.built = { detail = "d", source = "s" }\n'
)
RECIPE = (
    'name = "mine"\nsummary = "s"\nlicense = "MIT"\nkind = "wheel"\nrun = ["true"]\n'
    'output = [{ name = "wheel", pattern = "*.whl" }]\n'
)


def faults(folder: Path, files: dict[str, str], under: Path) -> list[TableFault]:
    write_tree(folder, files)
    return tables.check((folder, under))


def test_no_fault_is_found_in_the_carried_catalog() -> None:
    assert tables.check((DATA,)) == []


def test_no_fault_is_found_in_the_recipes_that_are_healed_for_real() -> None:
    assert tables.check((Path(__file__).parents[1] / "real" / "heal_catalog", DATA)) == []


FAULTY = [
    ("targets.toml", f"[[target]]\n{TARGET}", "target.0.source", "it is missing"),
    (
        "targets.toml",
        f'[[target]]\n{TARGET}source = [" "]\n',
        "target.0 (gfx1104).source",
        "needs its source",
    ),
    (
        "targets.toml",
        f'[[target]]\n{TARGET}source = ["s"]\npci_ids = ["1002:67df"]\n',
        "pci_ids",
        "also belongs to gfx803",
    ),
    (
        "targets.toml",
        f'[[target]]\n{TARGET}source = ["s"]\n[target.override]\nidentity = "1"\nspoof = ["gfx1"]\n',
        "override.spoof",
        "gfx1 is not known",
    ),
    (
        "targets.toml",
        f'[[target]]\n{TARGET}source = ["s"]\n[target.host]\nkernel_ok = [">>6"]\n',
        "host.kernel_ok",
        "is not a range",
    ),
    (
        "targets.toml",
        f'[[target]]\n{TARGET}source = ["s"]\n[[target.quirk]]\nvariable = "HSA_OVERRIDE_GFX_VERSION"\n'
        'value = "1"\nscope = "build"\nreason = "r"\nsource = "s"\n',
        "target.0",
        "HSA_OVERRIDE_GFX_VERSION in the environment of a build",
    ),
    (
        "targets.toml",
        f'[[target]]\n{TARGET}source = ["s"]\n[[target.quirk]]\nvariable = "A"\n'
        'value = "1"\nscope = "build"\nreason = "r"\nsource = "s"\n',
        "quirk.0.recipes",
        "A reaches no build",
    ),
    (
        "targets.toml",
        f'[[target]]\n{TARGET}source = ["s"]\n[[target.quirk]]\nvariable = "USE_CUDA"\n'
        'value = "1"\nscope = "build"\nrecipes = ["pytorch"]\nreason = "r"\nsource = "s"\n',
        "quirk.0.recipes",
        "pytorch sets USE_CUDA=0 itself, and this says 1",
    ),
    (
        "targets.toml",
        f'[[target]]\n{TARGET}source = ["s"]\n[[target.quirk]]\nvariable = "A"\n'
        'value = "1"\nscope = "run"\nrecipes = ["pytorch"]\nreason = "r"\nsource = "s"\n',
        "quirk.0.recipes",
        "this is for what runs",
    ),
    (
        "for_people.toml",
        '[[mark]]\nfiles = "targets.toml"\nfacts = ["target.feature"]\nshown = "x"\n',
        "mark.0.facts",
        "no file of targets.toml says target.feature",
    ),
    (
        "targets.toml",
        f'[[target]]\n{TARGET}source = ["s"]\n[[target]]\n{TARGET}source = ["s"]\n',
        "target.1",
        "the name gfx1104 is taken already",
    ),
    ("targets.toml", "target = 3\n", "target", "is not a list of tables"),
    ("targets.toml", "[[target]\n", "", "is not valid TOML"),
    ("targets.toml", f"{'a.' * 5000}b = 1\n", "", "too many parts"),
    ("system.toml", '"new" = { zypper = ["new"] }\n', "", "no package manager zypper"),
    ("system.toml", '"new" = { apt = 3 }\n', "packages.new.apt", "a list, in [brackets]"),
    (
        "launchers.toml",
        "[[launcher]]\npackage = 'new'\nsetup = []\nsource = 's'\n",
        "",
        "no system package new",
    ),
    ("stacks/mine.toml", f'name = "other"\n{STACK}', "name", "the file must be other.toml"),
    ("stacks/mine.toml", f'name = "mine"\n{STACK.replace("sid", "potato")}', "bases", "debian:potato"),
    (
        "stacks/mine.toml",
        f'name = "mine"\n{STACK.replace("smoke", "smoked")}',
        "components",
        "gfx-smoked",
    ),
    ("stacks/mine.toml", f'name = "mine"\n{STACK}targets = ["gfx1"]\n', "targets", "gfx1 is not known"),
    (
        "stacks/mine.toml",
        f'name = "mine"\n{STACK}next = ["{{oat}}"]\n',
        "next",
        "is not a known placeholder",
    ),
    ("stacks/mine.toml", f'name = "mine"\n{STACK}prefer = "x"\n', "prefer", "x is not known"),
    ("stacks/mine.toml", f'name = "mine"\n{STACK}origins = {{ a = ["x"] }}\n', "origins", "x is not known"),
    (
        "stacks/mine.toml",
        f'name = "mine"\n{STACK}{ROW}gpu = "gfx803"\nbase = "debian:sid"\nprovider = "therock-source"\n'
        'versions = { rocm = "7.14.0" }\n',
        "row.0.provider",
        "therock-source does not serve gfx803 with ROCm 7.14.0 on debian:sid; known: none",
    ),
    (
        "stacks/mine.toml",
        f'name = "mine"\n{STACK}{ROW}gpu = "gfx803"\nbase = "debian:sid"\nextra = ["rocr"]\n',
        "row.0.extra",
        "rocr is not known",
    ),
    (
        "stacks/mine.toml",
        f'name = "mine"\n{STACK}{ROW}gpu = "gfx1"\nbase = "x"\nprovider = "y"\n',
        "row.0.provider",
        "y is not known",
    ),
    ("bases/mine.toml", f'name = "mine"\nrelease = []\n{BASE}', "release", "needs one release"),
    (
        "bases/mine.toml",
        f'name = "mine"\nrelease = []\n{BASE.replace("apt", "urpmi")}',
        "manager",
        "urpmi",
    ),
    (
        "bases/mine.toml",
        f'name = "mine"\n{BASE}[[release]]\nname = "1"\nsource = "s"\n[packages]\nnew = ["new"]\n',
        "packages",
        "new is not known",
    ),
    (
        "bases/mine.toml",
        f'name = "mine"\n{BASE}[[release]]\nname = "1"\nsource = ""\n',
        "source",
        "needs its",
    ),
    ("providers/mine.toml", f'{PROVIDER}versions = ["new"]\n', "versions", "'new' is not a version"),
    (
        "providers/mine.toml",
        f'{PROVIDER}[[serves]]\nversions = "6.x"\ntargets = ["gfx1"]\nsource = "s"\n',
        "serves.0.versions",
        "'6.x' is not a range",
    ),
    ("components/mine.toml", f'{RECIPE}release = []\nopens = ["gfx1"]\n', "opens", "gfx1 is not known"),
    (
        "components/mine.toml",
        f'{RECIPE}release = []\n[system]\nbuild = ["nonesuch"]\n',
        "system.build",
        "nonesuch",
    ),
    (
        "components/mine.toml",
        f'{RECIPE}release = []\n[env]\nA = "{{verison}}"\n',  # codespell:ignore verison
        "env.A",
        "{verison} in '{verison}' is not a known placeholder",  # codespell:ignore verison
    ),
    (
        "components/mine.toml",
        f'{RECIPE}[[release]]\nversion = "1"\nneeds = {{ tortch = "~1" }}\nsource = "s"\n',
        "release 1.needs",
        "tortch is not known",
    ),
    (
        "components/mine.toml",
        f'{RECIPE}[[release]]\nversion = "1"\nplaces = [{{ builtin = "x" }}]\nsource = ""\n',
        "release 1.places",
        "no folder sources/x",
    ),
    (
        "components/mine.toml",
        f'{RECIPE}[[release]]\nversion = "1"\nplaces = [{{ wheels = ["a==1", "b==1"] }}]\nsource = "s"\n',
        "release 1.places",
        "takes a single one",
    ),
    (
        "components/mine.toml",
        f'{RECIPE}release = []\n[[check]]\nname = "c"\nkind = "script"\nscript = "checks/x.py"\n',
        "check c.script",
        "there is no file checks/x.py",
    ),
    (
        "components/mine.toml",
        f'{RECIPE}release = []\n[server]\ncommand = ["{{artifact}}/x", "{{page}}"]\nport = 1\n'
        'health = "/"\npage = "pages/x"\n',
        "server.page",
        "there is no folder pages/x",
    ),
    (
        "components/mine.toml",
        f'{RECIPE}release = []\n[[edit]]\nfile = "a"\nregex = "("\nwith = ""\nwhy = "w"\n',
        "edit.0",
        "is not a regular expression",
    ),
    (
        "edits/torchvision.toml",
        '[[edit]]\ndiff = "patches/none.patch"\nwhy = "w"\n',
        "edit.0.diff",
        "patches/none.patch, which cannot be read",
    ),
    ("component/mine.toml", RECIPE, "", "nothing reads this file"),
    ("host.toml", '[[leak]]\nvariable = "X"\nwhy = "w"\n', "leak.0.source", "it is missing"),
    (
        "host.toml",
        f"[[leak]]\n{LEAK}remedy = 'unset {{name}}'\n",
        "leak.0.remedy",
        "{name} is not a known placeholder",
    ),
    (
        "host.toml",
        f"[[leak]]\n{LEAK}stacks = ['*', '!x']\n",
        "leak.0.stacks",
        "!x does not match any stack",
    ),
    (
        "host.toml",
        '[[firmware]]\ntargets = ["gfx1"]\nblocks = ["mes"]\nbad = [1]\nwhy = "w"\nsource = "s"\n',
        "firmware.0.targets",
        "gfx1 is not known",
    ),
    (
        "loose_kernels.toml",
        f"[[kind]]\n{LOOSE}path = '({{target}}'\n",
        "kind.0.path",
        "not a regular expr",
    ),
    (
        "loose_kernels.toml",
        f"[[kind]]\n{LOOSE}path = '{{target}}'\n",
        "kind.0.source",
        "needs its source",
    ),
    (
        "leftovers.toml",
        '[[leftover]]\nname = "n"\ngrade = "trace"\nbegins = ["a"]\npattern = "ab"\nwhy = "w"\n'
        'next = "n"\nexamples = ["ac"]\nsource = ["s"]\n',
        "leftover.0",
        "does not match 'ac'",
    ),
    ("libraries.toml", '[[never]]\nwhy = "w"\nsource = ["s"]\n', "never.0.libraries", "it is missing"),
    ("generic_targets.toml", 'source = ["s"]\ncovers = { a = 3 }\n', "covers.a", "a list, in [brackets]"),
    ("elf_machines.toml", 'source = ["s"]\nmachines = { a = 300 }\n', "machines.a", "less than 256"),
    ("machine_code.toml", 'source = ["s"]\n', "llvm", "it is missing"),
    (
        "gpu_names.toml",
        '[fallback]\ntarget = "gfx1"\nsource = ["s"]\n',
        "fallback.target",
        "gfx1 is not known",
    ),
    ("isas.toml", "isa = []\n", "source", "it is missing"),
    ("evidence.toml", f"[[evidence]]\n{SEEN}", "evidence.0.stack", "nonesuch is not known"),
    ("evidence.toml", f"[[evidence]]\n{SEEN}", "evidence.0.bases", "gfx9 is not known"),
    ("clean.toml", '[[kind]]\nname = "x"\n', "kind.0.holds", "it is missing"),
    (
        "package_names.toml",
        '[[manager]]\nname = "apt"\ntype = "deb"\nasked = "(?P<name>x)"\nexample = "x"\nsource = "s"\n',
        "manager.0",
        "does not give the name and version of 'x'",
    ),
    ("target.toml", f"[[target]]\n{TARGET}", "", "nothing reads this file"),
]
"""A file, its text, the place of the fault, and what is said of it."""


def test_each_fault_is_found_and_placed(tmp_path: Path, few_issues: Path) -> None:
    missed = []
    rounds = Counter({"system.toml": 1})  # where it is at fault, launchers are not looked at
    folders: dict[int, list[tuple[str, ...]]] = {}
    # a catalog has one file of a name: what is wrong in other files is looked for at once
    for case in FAULTY:
        folders.setdefault(rounds[case[0]], []).append(case)
        rounds[case[0]] += 1
    for number, cases in folders.items():
        folder = tmp_path / str(number)
        found = faults(folder, {file: text for file, text, *_ in cases}, few_issues)
        for file, _, place, what in cases:
            mine = [one for one in found if place in one.place and what in one.what]
            missed += [] if folder / file in {one.file for one in mine} else [(file, place, what, mine)]
    assert missed == []


def test_all_faults_are_found_at_once(tmp_path: Path, few_issues: Path) -> None:
    found = faults(
        tmp_path,
        {
            "targets.toml": f"[[target]]\n{TARGET}",
            "stacks/one.toml": f'name = "one"\n{STACK.replace("smoke", "smoked")}targets = ["gfx1"]\n',
            "stacks/two.toml": "not TOML",
            "bases/three.toml": f'name = "three"\nrelease = []\n{BASE.replace("apt", "urpmi")}',
        },
        few_issues,
    )
    assert {one.file.name for one in found} == {"targets.toml", "one.toml", "two.toml", "three.toml"}
    assert len([one for one in found if one.file.name == "one.toml"]) == 2


# the command


def test_the_check_of_a_folder_tells_faults_by_file_and_place(rocwright: Command, tmp_path: Path) -> None:
    write_tree(tmp_path / "mine", {"stacks/one.toml": f'name = "one"\n{STACK}targets = ["gfx1"]\n'})
    done = rocwright("catalog", "check", str(tmp_path / "mine"))
    assert done.returncode == 2
    assert "error[input] the catalog has 1 fault" in done.stderr
    assert f"{tmp_path}/mine/stacks/one.toml:6: targets: gfx1 is not known" in done.stderr
    assert "Traceback" not in done.stderr


def test_faults_as_json_are_one_document_and_the_exit_code_stays(rocwright: Command, tmp_path: Path) -> None:
    write_tree(tmp_path / "mine", {"stacks/one.toml": f'name = "one"\n{STACK}targets = ["gfx1"]\n'})
    done = rocwright("catalog", "check", str(tmp_path / "mine"), "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["faults"] == [
        {
            "file": f"{tmp_path}/mine/stacks/one.toml",
            "line": 6,
            "place": "targets",
            "what": "gfx1 is not known",
        }
    ]


def test_a_catalog_without_fault_is_told_so(rocwright: Command) -> None:
    assert rocwright("catalog", "check").stdout.startswith("no fault found")
    assert json.loads(rocwright("catalog", "check", "--json").stdout)["faults"] == []


@pytest.mark.parametrize("words", [("check", "/nonexistent"), ("schema", "gpu")])
def test_what_is_not_there_cannot_be_checked_or_described(rocwright: Command, words: tuple[str, ...]) -> None:
    assert rocwright("catalog", *words).returncode == 2


# the schema


def test_the_schema_knows_the_fields_and_refuses_others(rocwright: Command) -> None:
    told = json.loads(rocwright("catalog", "schema", "stack").stdout)
    assert told["additionalProperties"] is False
    assert {"name", "components", "bases", "source"} <= set(told["properties"])
    assert "source" in told["required"]
    assert "Serves" in json.loads(rocwright("catalog", "schema", "provider").stdout)["$defs"]


def test_an_editor_misses_nothing_that_a_file_says_once_for_its_rows() -> None:
    described = schema("issue")
    by_name = described["properties"]["issue"]["anyOf"][1]["additionalProperties"]["$ref"]
    assert "default" in described["properties"]
    assert "required" not in described["$defs"][by_name.removeprefix("#/$defs/")]
    # a file without a default has each row whole
    assert {"required": ["default"]} in described["if"]["anyOf"]
    row = described["else"]["properties"]["issue"]["items"]["$ref"]
    assert "means" in described["$defs"][row.removeprefix("#/$defs/")]["required"]


def test_all_schemas_come_with_the_files_that_they_are_for(rocwright: Command) -> None:
    told = json.loads(rocwright("catalog", "schema").stdout)
    assert told["component"]["files"] == "components/*.toml"
    for kind, one in told.items():
        assert [*DATA.glob(one["files"]), *WHEEL_DATA.glob(one["files"])], kind


def test_an_editor_takes_sizes_as_they_are_written() -> None:
    memory = schema("component")["$defs"]["Resources"]["properties"]["memory_per_job"]
    written = next(one["pattern"] for one in memory["anyOf"] if one["type"] == "string")
    assert re.fullmatch(written, "1.5 GiB")
    assert not re.fullmatch(written, "1.5 GB")


def test_the_command_knows_every_kind_of_file() -> None:
    assert set(KINDS) == set(FILES)


def test_every_table_of_the_catalog_is_read_by_the_check() -> None:
    described = {files for files, _ in FILES.values()}
    # names of packages are words of the file's own
    assert set(TABLES) - described == {"system.toml"}
    assert {path.name for data in (DATA, WHEEL_DATA) for path in data.glob("*.toml")} <= set(TABLES)


@each("kind", FILES)
def test_an_editors_words_for_fields_are_those_of_the_files(kind: str) -> None:
    told = json.dumps(schema(kind))
    assert '"replacement"' not in told
    assert '"description"' in told
