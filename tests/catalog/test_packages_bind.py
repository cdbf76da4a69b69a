"""What is known of Python packages binds: each fact, taken out, changes what a check of a list says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from packaging.requirements import Requirement
from tests.catalog.walks import walks

from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog
from rocwright.doctor.requirements.facts import Build, PackageFact, PythonPackagesFile, package_facts
from rocwright.doctor.requirements.judge import Judge, ListFinding
from rocwright.doctor.requirements.lists import Entry
from rocwright.doctor.requirements.look_up import PackageContents
from rocwright.doctor.requirements.substitutes import Substitutes
from rocwright.sources.python_resolver import Interpreter

FACTS, CATALOG = package_facts(), builtin_catalog()
GPUS = ("gfx803", "gfx1151")
BUILDS: dict[str, Build] = {build.name: build for build in FACTS.build}


def entry(text: str, **more: Any) -> Entry:
    return Entry(place="1", text=text, requirement=Requirement(text), **more)


def told(facts: PythonPackagesFile, *entries: Entry, **files: PackageContents) -> list[list[ListFinding]]:
    """What a check says of entries, for a card without published wheels and for one with them."""
    contents = {item: files.get(item.name.replace("-", "_"), PackageContents()) for item in entries}
    python = Interpreter("3.12", "x86_64")
    ways = [Substitutes(catalog=CATALOG, gpu=gpu) for gpu in GPUS]
    judges = [
        Judge(entries=entries, contents=contents, python=python, facts=facts, substitutes=substitute)
        for substitute in ways
    ]
    return [[*judge.findings().values()] for judge in judges]


def example(glob: str) -> str:
    return glob.replace("[0-9]", "2").replace("*", "x")


def asked(row: PackageFact) -> list[Entry]:
    """An entry for each name of a row."""
    extras = f"[{example(row.extras[0])}]" if row.extras else ""
    return [entry(f"{example(name).removeprefix('-')}{extras}") for name in row.names]


def without(number: int, **changes: object) -> PythonPackagesFile:
    rows = [*FACTS.package]
    rows[number : number + 1] = [rows[number].model_copy(update=changes)] if changes else []
    return FACTS.model_copy(update={"package": tuple(rows)})


@walks("python_packages.toml", *(f"package.{key}" for key in ("names", "brings", "extras")))
@each("number", range(len(FACTS.package)))
def test_each_name_of_a_row_is_judged_by_it(number: int) -> None:
    row = FACTS.package[number]
    files = PackageContents(version="1", members=("x/libcudart.so",))
    for item in asked(row):
        name = item.name.replace("-", "_")
        contents = {} if row.brings or not row.component else {name: files}
        names = tuple(glob for glob in row.names if example(glob).removeprefix("-") != item.name)
        assert told(FACTS, item, **contents) != told(without(number, names=names), item, **contents)
    if row.extras:
        plain = entry(asked(row)[0].name)
        assert told(FACTS, plain) != told(without(number, extras=()), plain)


CHANGES = [
    (number, field)
    for number, row in enumerate(FACTS.package)
    for field in ("grade", "component", "stack", "write", "advice", "part")
    if getattr(row, field) and (field != "grade" or row.grade == "warning")
]


@walks(
    "python_packages.toml",
    *(f"package.{key}" for key in ("grade", "component", "stack", "write", "advice", "part")),
)
@each(("number", "field"), CHANGES)
def test_what_a_row_says_to_do_is_said(number: int, field: str) -> None:
    item, outcome = asked(FACTS.package[number])[0], {"grade": "error", "part": False}.get(field, "")
    files = {item.name.replace("-", "_"): PackageContents(version="1", members=("x/libcudart.so",))}
    changed, entries = without(number, **{field: outcome}), [item]
    if field == "part":
        files = {"sampler": PackageContents(version="1", requires=(Requirement(item.name),))}
        entries = [entry("sampler")]
    files = files if field == "part" or not FACTS.package[number].brings else {}
    assert told(FACTS, *entries, **files) != told(changed, *entries, **files)


def changed_build(name: str, **changes: object) -> PythonPackagesFile:
    builds = BUILDS | {name: BUILDS[name].model_copy(update=changes)}
    return FACTS.model_copy(update={"build": tuple(builds.values())})


SHOWN = [
    (name, field, glob)
    for name, build in BUILDS.items()
    for field in ("tags", "addresses", "files", "runtime", "versions")
    for glob in getattr(build, field)
]


@walks(
    "python_packages.toml",
    *(f"build.{key}" for key in ("name", "tags", "addresses", "files", "runtime", "versions")),
)
@each(("name", "field", "glob"), SHOWN)
def test_each_glob_of_a_build_shows_it(name: str, field: str, glob: str) -> None:
    text, globs = example(glob), tuple(one for one in getattr(BUILDS[name], field) if one != glob)
    files: dict[str, PackageContents] = {}
    other = entry("other==1+rocm1.1")
    cuda = PackageContents(version="1", members=("x/libcudart.so",))
    match field:
        case "tags":
            entries = [entry(f"thing==1+{text}")]
        case "addresses":
            entries = [entry("torch==1" if name == "ROCm" else "thing==1", url=text)]
        case "files" if name == "CUDA":
            entries, files = [entry("thing")], {"thing": PackageContents(version="1", members=(text,))}
        case "files":
            entries = [entry("thing")]
            files = {"thing": replace(cuda, members=(*cuda.members, text))}
        case "runtime":
            one = PackageContents(version="1", members=(text,))
            entries, files = [entry("thing"), entry("second")], {"thing": one, "second": one}
        case _:
            entries = [other, entry(f"{text}==7.2.0")]
    assert told(FACTS, *entries, **files) != told(changed_build(name, **{field: globs}), *entries, **files)


@walks("python_packages.toml", "conda")
@each("name", FACTS.conda)
def test_each_name_of_conda_is_that_of_its_package(name: str) -> None:
    rest = {other: own for other, own in FACTS.conda.items() if other != name}
    item = entry(name, conda=True)
    assert told(FACTS, item) != told(FACTS.model_copy(update={"conda": rest}), item)
