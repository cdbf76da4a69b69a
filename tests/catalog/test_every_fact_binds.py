"""Every key of the catalog's files is walked by a test that takes such facts out, or is for people."""

from __future__ import annotations

from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path

from tests.catalog.walks import WALKED

from rocwheel_samples.tables import each
from rocwright.catalog_lint.for_people import ForPeopleFile, in_vain, keys, marked
from rocwright.catalog_lint.tables import FILES

WALKS = ("facts_bind", "targets_bind", "recipes_bind", "bases_bind", "host_binds", "packages_bind")
NAMES = ("name", "*.name", "maker.name", "unsupported.name", "release.version", "check.kind")
"""Taken out with the row that they name, or no row could be read without them."""

ELSEWHERE = {
    "bases/*.toml": {
        "release*.wheels*": "tests/verify/test_run_wheels.py",
        "release.snapshot": "tests/sources/test_debian.py",
        "release.over": "tests/sources/test_debian.py",
        "release.takes": "tests/sources/test_debian.py",
        "release.packages*": "tests/plan/resolve/test_on_bases.py",
    },
    "components/*.toml": {
        "also": "tests/catalog/test_load.py",
        "bundle": "tests/verify/test_loaded.py",
        "opens": "tests/plan/resolve/test_opens.py",
        "over": "tests/catalog/test_overlay.py",
        "like.*": "tests/catalog/test_recipes.py",
        "scheme": "tests/follow/watch/test_look.py",
        "python_run": "tests/verify/test_run_wheels.py",
        "release.*places.*": "tests/sources/test_places.py",
        "edit.*": "tests/sources/patching/test_kinds.py",
        "check.*": "tests/verify/test_run.py",
        "emulated.*": "tests/verify/test_emulated.py",
        "serve.*": "tests/export/test_rows.py",
        "server.*": "tests/serving/test_words.py",
        "architectures": "tests/plan/resolve/test_architecture.py",
        "license": "tests/provenance/test_sbom.py",
        "windows.*": "tests/export/test_windows.py",
        "release.on.*": "tests/plan/resolve/test_on_bases.py",
    },
    "edits/*.toml": {"edit.*": "tests/sources/patching/test_kinds.py"},
    "gpu_names.toml": {
        "fallback.*": "tests/plan/resolve/test_gpus.py",
        "maker.*": "tests/plan/resolve/test_gpus.py",
        "unsupported.*": "tests/plan/resolve/test_gpus.py",
    },
    "host.toml": {
        "installer.*": "tests/test_prepare.py",
        "tool.*": "tests/doctor/test_doctor.py",
        "tools_root.*": "tests/sources/bases/test_tools.py",
        "driver.issues": "tests/diagnosis/test_here.py",
        "firmware.issues": "tests/diagnosis/test_here.py",
        "kernel_log.*": "tests/doctor/test_kernel.py",
        "dkms.*": "tests/doctor/test_kernel.py",
        "secure_boot.file": "tests/doctor/test_kernel.py",
    },
    "issues/*.toml": {
        "issue.remedies.*": "tests/doctor/remedies/test_choose.py",
        "issue.phases": "tests/diagnosis/test_diagnose.py",
        "issue.ended": "tests/diagnosis/test_diagnose.py",
        "issue.since": "tests/diagnosis/test_diagnose.py",
        "issue.named": "tests/diagnosis/test_diagnose.py",
        "issue.filled.*": "tests/diagnosis/test_diagnose.py",
    },
    "stacks/*.toml": {
        "also": "tests/catalog/test_load.py",
        "on": "tests/plan/resolve/test_standing.py",
        "origins": "tests/verify/test_proven.py",
    },
    "targets.toml": {
        "set": "tests/catalog/test_target_sets.py",
        "target.refused.*": "tests/plan/resolve/test_elsewhere.py",
        "shared.targets": "tests/catalog/test_target_sets.py",
    },
    "package_managers.toml": {"manager.*": "tests/sources/bases/test_roots.py"},
    "providers/*.toml": {
        "setup": "tests/real/test_provider_setup.py",
        "windows": "tests/export/test_windows.py",
    },
}
"""What code does with a key is tested there, on data of those tests' own."""

OF_THE_FIELD = (
    "bases/*.toml",
    "components/*.toml",
    "downloads/*.toml",
    "edits/*.toml",
    "gpu_names.toml",
    "host.toml",
    "issues/*.toml",
    "launchers.toml",
    "overrides.toml",
    "package_managers.toml",
    "providers/*.toml",
    "python_packages.toml",
    "stacks/*.toml",
    "targets.toml",
    "watchlist.toml",
)
"""Files of facts of the field; the others say how programs are to be run, or are tables of rocwheel's."""

for name in WALKS:
    import_module(f"tests.catalog.test_{name}")


@each("files", OF_THE_FIELD)
def test_every_key_is_walked_or_for_people(for_people: ForPeopleFile, files: str) -> None:
    says = next(model for glob, model in FILES.values() if glob == files)
    walked = (*WALKED[files], *ELSEWHERE.get(files, {}), *NAMES)
    free = [
        key
        for key in dict.fromkeys(keys(says))
        if not any(fnmatchcase(key, one) for one in walked) and not marked(for_people, files, key)
    ]
    assert not free, f"neither taken out by a test nor marked in for_people.toml: {', '.join(free)}"


@each("files", OF_THE_FIELD)
def test_no_key_is_both_taken_out_by_a_test_and_for_people(for_people: ForPeopleFile, files: str) -> None:
    one_of_many = [mark for mark in for_people.mark if mark.files not in OF_THE_FIELD and mark.files != "*"]
    whole = ForPeopleFile(mark=tuple(mark for mark in for_people.mark if mark not in one_of_many))
    assert not [key for key in WALKED[files] if marked(whole, files, key)]


def test_what_is_tested_elsewhere_is_tested() -> None:
    root = Path(__file__).parents[2]
    assert not [one for keys in ELSEWHERE.values() for one in keys.values() if not (root / one).is_file()]


def test_a_mark_of_what_no_file_says_is_refused() -> None:
    files = {"targets.toml": ("target.name", "target.features"), "bases/*.toml": ("release.name",)}
    right = {"files": "targets.toml", "facts": ("target.features.aiter", "*.name"), "shown": "x"}
    row = {"files": "bases/ubi.toml", "facts": ("release[9]",), "shown": "x"}
    assert not list(in_vain(ForPeopleFile.model_validate({"mark": (right, row)}), files))
    for wrong in ({"facts": ("target.feature",)}, {"files": "target.toml"}, {"facts": ("releases[9]",)}):
        table = ForPeopleFile.model_validate({"mark": (right | wrong,)})
        assert list(in_vain(table, files)), wrong
