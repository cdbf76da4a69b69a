"""The build on Windows, as it is written: its values, whole, and nothing where no recipe knows it."""

from __future__ import annotations

import re

import pytest

from rocbase.errors import InputError
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.model import Stack, StackRow
from rocwright.export.write import export
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Lock
from rocwright.plan.resolve.shipped import request_of, rows, shipped_lock

CATALOG = builtin_catalog()
ROWS = list(rows(CATALOG))
OF_LINUX = re.compile(
    r"\b(gcc|g\+\+|apt|dnf|pacman|bash|python3|cp|rm)\b|/opt/|/usr/|/build/|-Wno-|\$\(|\.so\b"
)


def lock_of_row(stack: Stack, row: StackRow) -> Lock:
    lock = shipped_lock(CATALOG, request_of(stack, row))
    assert lock is not None
    return lock


def on_windows() -> list[tuple[Stack, StackRow]]:
    """The rows with ROCm as wheels that have Windows, which is what the document wished for."""
    return [(stack, row) for stack, row in ROWS if "Windows" in row.wish or "windows" in row.wish]


EACH = pytest.mark.parametrize(("stack", "row"), on_windows(), ids=[row.gpu for _, row in on_windows()])


def scripts(stack: Stack, row: StackRow) -> dict[str, str]:
    files = export(lock_of_row(stack, row), CATALOG, "powershell")
    return {name: file.text.removeprefix("\ufeff") for name, file in files.items() if name.endswith(".ps1")}


def variables(text: str, component: str) -> dict[str, str]:
    """What environment.ps1 sets for the build of a component."""
    block = text.split(f"    '{component}' = @{{\r\n")[1].split("    }")[0]
    return dict(re.findall(r"'(\w+)' = '([^']*)'", block))


@EACH
def test_a_build_there_has_the_values_of_windows(stack: Stack, row: StackRow) -> None:
    text = scripts(stack, row)["environment.ps1"]
    torch = variables(text, "pytorch")
    assert (torch["CC"], torch["CXX"], torch["DISTUTILS_USE_SDK"]) == ("clang-cl", "clang-cl", "1")
    assert (torch["USE_KINETO"], torch["BUILD_TEST"]) == ("0", "0")
    assert (torch["USE_ROCM"], torch["PYTORCH_ROCM_ARCH"]) == ("1", row.gpu)
    assert "CXXFLAGS" not in torch
    for name in ("torchvision", "torchaudio"):
        assert variables(text, name)["CC"] == "clang-cl"
        assert variables(text, name)["DISTUTILS_USE_SDK"] == "1"


@EACH
def test_the_programs_and_dlls_of_rocm_are_found_before_those_of_the_machine(
    stack: Stack, row: StackRow
) -> None:
    lines = scripts(stack, row)["environment.ps1"].splitlines()
    [path] = [line for line in lines if line.startswith("$env:PATH") and "rocm_sdk" in line]
    assert path.index("'--bin'") < path.index("$env:HIP_CLANG_PATH") < path.index("$env:PATH", 10)
    assert lines.index(path) > next(at for at, line in enumerate(lines) if "'rocm[" in line)


@EACH
def test_each_component_is_fetched_edited_built_and_installed_before_the_next(
    stack: Stack, row: StackRow
) -> None:
    lock, text = lock_of_row(stack, row), scripts(stack, row)["build.ps1"]
    at = 0
    for locked in lock.components:
        wanted = [f"# {locked.name} {locked.version}", "'clone'", "'bdist_wheel'", "'--force-reinstall'"]
        for one in wanted:
            at = text.index(one, at)
        assert not locked.commit or f"'{locked.commit}'" in text
    edited = {one.name for one in make_plan(lock, CATALOG).steps if getattr(one.action, "edits", ())}
    files = export(lock, CATALOG, "powershell")
    for name in edited:
        file = f"edits/{name.replace('/', '-')}.json"
        assert file in files
        assert f"'{file}'" in text
    assert text.index("build_amd.py") < text.index("libomp140.x86_64.dll") < text.index("'bdist_wheel'")


@EACH
def test_no_value_or_command_of_linux_is_in_a_script_for_windows(stack: Stack, row: StackRow) -> None:
    for name, text in scripts(stack, row).items():
        code = "\n".join(line.partition("# ")[0] for line in text.splitlines())
        assert not OF_LINUX.findall(code), name


@EACH
def test_brackets_and_quotes_of_the_scripts_are_closed(stack: Stack, row: StackRow) -> None:
    for name, text in scripts(stack, row).items():
        lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
        bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", "\n".join(lines))
        assert not set("'\"") & set(bare), name
        for one, other in ("()", "{}", "[]"):
            assert bare.count(one) == bare.count(other), (name, one)


@EACH
def test_what_was_never_run_says_so(stack: Stack, row: StackRow) -> None:
    assert all("Written, never run" in text.splitlines()[1] for text in scripts(stack, row).values())


def test_a_stack_whose_recipes_do_not_know_windows_has_no_build_there() -> None:
    for stack, row in ROWS:
        if (stack, row) in on_windows():
            continue
        try:
            found = scripts(stack, row)
        except InputError as error:
            assert "how it is built on Windows" in error.cause
            continue
        assert not {"environment.ps1", "build.ps1"} & set(found)
