"""What is known of machines and failures binds: each row, taken out, changes what doctor or diagnose says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.catalog.walks import walks
from tests.diagnosis.machine.machines import GIB, POLARIS, STRIX_HALO, machine

from rocwheel_samples.tables import each
from rocwright.catalog.issue import plain, the_issues
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.watchlist import the_watchlist
from rocwright.diagnosis.facts import HostFacts, host_facts
from rocwright.diagnosis.machine.rooms import storages
from rocwright.diagnosis.machine.tree import Tree
from rocwright.diagnosis.scan import Scan
from rocwright.doctor import findings
from rocwright.doctor.doctor import examine
from rocwright.doctor.this_machine import here
from rocwright.home import Home
from rocwright.model.versions import version_in

CATALOG, FACTS = builtin_catalog(), host_facts()
# Of each kind that the rows tell apart, and those that a row names; each costs its plan.
SOME = ("llama-hip", "llama-vulkan", *dict.fromkeys(row.stack for row in FACTS.wants))
ISSUES, ERROR_LINES = the_issues()


def told(root: Path, facts: HostFacts, **seen: object) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """What doctor says of a machine of a tree, of which some was seen otherwise."""
    with Tree(root) as tree:
        found = here(tree, CATALOG, facts, Home(root / "home")).model_copy(update=seen)
    report = examine(found, CATALOG, facts, SOME)
    return [(one.name, one.grade, one.remedy, one.stacks) for one in report.findings]


def rest(kind: str, number: int) -> HostFacts:
    """The facts without one row."""
    rows: Sequence[Any] = getattr(FACTS, kind)
    changed = [*rows[:number], *rows[number + 1 :]]
    return replace(FACTS, **{kind: changed})  # type: ignore[arg-type]


def rows(kind: str) -> list[int]:
    return list(range(len(getattr(FACTS, kind))))


@walks("host.toml", *(f"setting.{one}" for one in ("stacks", "remedy", "safe", "file", "bad", "grade")))
@pytest.mark.parametrize("number", rows("setting"))
def test_a_setting_of_the_kernel_that_is_bad_is_told_for_its_row(tmp_path: Path, number: int) -> None:
    row = FACTS.setting[number]
    root = machine(tmp_path, POLARIS, more={row.file.lstrip("/"): f"{row.bad[0]}\n"})
    assert told(root, FACTS) != told(root, rest("setting", number))


@walks("host.toml", *(f"leak.{one}" for one in ("stacks", "remedy", "safe", "variable", "value", "grade")))
@pytest.mark.parametrize("number", rows("leak"))
def test_a_variable_that_leaks_is_told_for_its_row(tmp_path: Path, number: int) -> None:
    row = FACTS.leak[number]
    setting = f"{row.variable.replace('*', '')}={row.value.replace('*', 'x')}"
    root = machine(tmp_path, POLARIS, more={"proc/self/environ": f"{setting}\0"})
    assert told(root, FACTS) != told(root, rest("leak", number))


@walks("host.toml", *(f"configured.{one}" for one in ("stacks", "remedy", "safe", "files", "keys", "grade")))
@pytest.mark.parametrize("number", rows("configured"))
def test_a_line_of_a_configuration_is_told_for_its_file_and_key(tmp_path: Path, number: int) -> None:
    row = FACTS.configured[number]
    for file in row.files:
        for key in row.keys:
            path = file.replace("~", "root", 1).lstrip("/")
            root = machine(tmp_path / f"{path}-{key}".replace("/", "_"), more={path: f"{key} = x\n"})
            assert told(root, FACTS) != told(root, rest("configured", number)), (file, key)


@walks("host.toml", *(f"folder.{one}" for one in ("stacks", "remedy", "safe", "path")))
@pytest.mark.parametrize("number", rows("folder"))
def test_a_folder_is_told_for_its_row(tmp_path: Path, number: int) -> None:
    root = machine(tmp_path, POLARIS)
    (root / FACTS.folder[number].path.lstrip("/")).mkdir(parents=True)
    assert told(root, FACTS) != told(root, rest("folder", number))


@walks("host.toml", *(f"firmware.{one}" for one in ("stacks", "remedy", "safe", "targets", "blocks")))
@walks("host.toml", "firmware.mask", "firmware.bad", "driver.module", "shares_memory.families")
@pytest.mark.parametrize("number", rows("firmware"))
def test_bad_firmware_is_told_for_its_row(tmp_path: Path, number: int) -> None:
    row = FACTS.firmware[number]
    root = machine(tmp_path, POLARIS)
    with Tree(root) as tree:
        [gpu] = here(tree, CATALOG, FACTS, Home(root / "home")).gpus
    for target in row.targets:
        for block in row.blocks:
            for bad in row.bad:
                gpus = (gpu.model_copy(update={"target": target, "firmware": {block: bad}}),)
                assert told(root, FACTS, gpus=gpus) != told(root, rest("firmware", number), gpus=gpus)


@walks("host.toml", *(f"link.{one}" for one in ("stacks", "remedy", "safe", "feature", "needed")))
@pytest.mark.parametrize("number", rows("link"))
def test_a_feature_of_the_bus_is_asked_for_by_its_row(tmp_path: Path, number: int) -> None:
    row = FACTS.link[number]
    asking = [one.name for one in CATALOG.targets.values() if one.features.get(row.feature) == row.needed]
    assert asking
    root = machine(tmp_path, POLARIS)
    with Tree(root) as tree:
        [gpu] = here(tree, CATALOG, FACTS, Home(root / "home")).gpus
    for target in asking:
        gpus = (gpu.model_copy(update={"target": target, "atomics": "no"}),)
        assert told(root, FACTS, gpus=gpus) != told(root, rest("link", number), gpus=gpus)


@walks("host.toml", "wants.stack", "wants.memory", "shares_memory.modules", "shares_memory.page")
@walks("host.toml", "shares_memory.keep")
@pytest.mark.parametrize("number", rows("wants"))
def test_memory_that_a_stack_wants_is_told_for_its_row(tmp_path: Path, number: int) -> None:
    row = FACTS.wants[number]
    card = replace(STRIX_HALO, gtt=row.memory - GIB, vram=GIB // 2)
    root = machine(tmp_path, card, memory=row.memory + 32 * GIB)

    def said(facts: HostFacts) -> list[str]:
        with Tree(root) as tree:
            found = here(tree, CATALOG, facts, Home(root / "home"))
        return [one.what for one in examine(found, CATALOG, facts, SOME).findings]

    assert said(FACTS) != said(rest("wants", number))


@walks("host.toml", *(f"storage.{one}" for one in ("engine", "folders", "files", "key")))
@pytest.mark.parametrize("number", rows("storage"))
def test_where_an_engine_keeps_images_is_found_by_its_row(tmp_path: Path, number: int) -> None:
    row = FACTS.storage[number]
    for folder in row.folders:
        root = tmp_path / folder.replace("/", "_")
        (root / folder.replace("~", "home/grace", 1).lstrip("/")).mkdir(parents=True)
        with Tree(root) as tree:
            found = list(storages(tree, FACTS, 1000, "/home/grace"))
            assert found != list(storages(tree, rest("storage", number), 1000, "/home/grace")), folder


@walks("host.toml", *(f"parameter.{one}" for one in ("stacks", "remedy", "safe", "values", "grade")))
@pytest.mark.parametrize("number", rows("parameter"))
def test_a_setting_of_the_driver_is_told_for_its_row(tmp_path: Path, number: int) -> None:
    row = FACTS.parameter[number]
    for value in row.values:
        setting = f"{row.name}={value.replace('[1-9]', '1').replace('*', '0')}"
        root = machine(tmp_path / setting, STRIX_HALO, more={"proc/cmdline": setting})
        assert told(root, FACTS) != told(root, rest("parameter", number))


@walks("host.toml", "vendor_kernel.vendor", "vendor_kernel.releases")
@pytest.mark.parametrize("number", rows("vendor_kernel"))
def test_the_kernel_of_a_vendor_is_judged_otherwise_for_its_row(tmp_path: Path, number: int) -> None:
    for glob in FACTS.vendor_kernel[number].releases:
        release = f"6.14.0-1{glob.lstrip('*').replace('[0-9]', '9').replace('*', '')}"
        root = machine(tmp_path / release, POLARIS, kernel=release)
        assert told(root, FACTS) != told(root, rest("vendor_kernel", number)), release


@walks("host.toml", "container.engine", "container.file", "container.rootless")
@pytest.mark.parametrize("number", rows("container"))
def test_a_container_is_known_for_its_row(tmp_path: Path, number: int) -> None:
    row = FACTS.container[number]
    root = machine(tmp_path, POLARIS, more={row.file.lstrip("/"): f"{row.rootless}\n"})
    with Tree(root) as tree:
        found = here(tree, CATALOG, FACTS, Home(root / "home")).container
        without = here(tree, CATALOG, rest("container", number), Home(root / "home")).container
    assert without is None
    assert found is not None and (found.engine, found.rootless) == (row.engine, bool(row.rootless))


@walks("host.toml", *(f"advice.{one}" for one in ("name", "stacks", "remedy", "safe")))
@each("name", FACTS.advice)
def test_an_advice_is_given_by_a_finding_of_that_name(name: str) -> None:
    folder = Path(next(iter(findings.__path__)))
    assert any(f'"{name}"' in path.read_text() for path in folder.glob("*.py"))


# failures


@walks("issues/*.toml", *(f"issue.{one}" for one in ("class", "role", "patterns", "examples", "no_match")))
def test_each_issue_is_seen_in_each_of_its_examples() -> None:
    unseen = []
    for issue in ISSUES.values():
        for example in issue.examples:
            scan = Scan([issue], ERROR_LINES.before)
            scan.feed(plain(example) + b"\n")
            unseen += [] if scan.hits else [(issue.name, example)]
    assert unseen == []


@walks("issues/*.toml", "issue.components", "issue.versions", "issue.targets", "issue.bases")
@walks("issues/*.toml", "issue.fixed_in.component", "issue.fixed_in.versions")
def test_where_an_issue_comes_is_somewhere_that_there_is() -> None:
    bases = {name for base in CATALOG.bases.values() for name in (base.name, *base.names)}
    nowhere = []
    for issue in ISSUES.values():
        nowhere += [(issue.name, target) for target in set(issue.targets) - set(CATALOG.targets)]
        nowhere += [(issue.name, base) for base in set(issue.bases) - bases]
        for component, versions in issue.versions.items():
            recipe = CATALOG.components.get(component)
            releases = [release.version for release in recipe.release] if recipe else []
            if releases and not any(version_in(version, versions) for version in releases):
                nowhere.append((issue.name, f"{component} {versions}"))
    assert nowhere == []


@walks("watchlist.toml", "followed.stands", "followed.issues", "followed.components", "followed.targets")
@walks("watchlist.toml", "followed.address")
def test_what_is_followed_is_of_something_that_is_known() -> None:
    for one in the_watchlist():
        assert one.address
        assert set(one.issues) <= set(ISSUES)
        assert set(one.components) <= set(CATALOG.components)
        assert set(one.targets) <= set(CATALOG.targets)
