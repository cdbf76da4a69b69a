"""What the repository brings for its host: workflows, forms, hooks and a release, each with what it calls."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools.pinned import pinned

from rocwheel_samples.tables import each
from rocwright import __version__
from rocwright.export.github import CHECKOUT, UPLOAD

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TARGETS = set(re.findall(r"^([\w.-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
OF_THE_IMAGE = {"apt-get", "git", "make", "gh"}
"""Programs that a workflow finds on its machine or installs first."""


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def steps(path: Path) -> Iterator[dict[str, Any]]:
    for job in loaded(path)["jobs"].values():
        yield from job["steps"]


def commands(path: Path) -> Iterator[list[str]]:
    """The words of each command that a workflow runs."""
    for step in steps(path):
        for line in step.get("run", "").splitlines():
            yield from (one.split() for one in line.split("&&"))


@each("path", WORKFLOWS, ids=lambda path: path.stem)
def test_what_a_workflow_calls_is_there(path: Path) -> None:
    called = list(commands(path))
    assert called
    for first, *words in called:
        if first == "make":
            assert words and set(words) <= TARGETS, words
        elif first == ".venv/bin/python":
            assert words[0] == "-m"
            assert (ROOT / words[1].replace(".", "/")).with_suffix(".py").is_file(), words
        elif "/" in first:
            assert (ROOT / first).stat().st_mode & 0o100, first
        else:
            assert first in OF_THE_IMAGE, first


@each("path", WORKFLOWS, ids=lambda path: path.stem)
def test_each_action_is_pinned_by_commit_with_its_version_beside_it(path: Path) -> None:
    used = re.findall(r"uses: (.*)", path.read_text())
    assert len(used) == sum("uses" in step for step in steps(path))
    for one in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one), one


@each("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_no_more_than_each_job_says(path: Path) -> None:
    assert loaded(path)["permissions"] == {"contents": "read"}
    assert "secrets." not in path.read_text()
    # what somebody else can name (a branch, a title) is never put into a command
    for step in steps(path):
        assert "${{" not in step.get("run", "")


def test_every_python_that_is_supported_is_tested() -> None:
    matrix = loaded(GITHUB / "workflows/ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert matrix == ["3.11", "3.12", "3.13", "3.14"]
    assert PROJECT["project"]["requires-python"] == f">={matrix[0]}"
    lines = [words for words in commands(GITHUB / "workflows/ci.yml") if words[0] == "make"]
    assert lines == [["make", "test"]]


@each("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_is_one(path: Path) -> None:
    form = loaded(path)
    assert form["name"] and form["description"]
    fields = [one for one in form["body"] if one["type"] != "markdown"]
    assert {one["type"] for one in fields} <= {"input", "textarea", "dropdown", "checkboxes"}
    assert len({one["id"] for one in fields}) == len(fields)
    assert all(one["attributes"]["label"] for one in fields)


def test_every_owner_is_of_a_path_that_is_there() -> None:
    rows = [line.split() for line in (GITHUB / "CODEOWNERS").read_text().splitlines()]
    paths = [row[0] for row in rows if row and row[0] != "#"]
    assert paths[0] == "*"
    assert [path for path in paths[1:] if not (ROOT / path.strip("/")).exists()] == []


def test_the_hooks_before_a_commit_are_what_lint_runs() -> None:
    [repository] = loaded(ROOT / ".pre-commit-config.yaml")["repos"]
    hooked = {tuple(hook["entry"].removeprefix(".venv/bin/").split()) for hook in repository["hooks"]}
    # they name the files that changed, and must still leave out what the configuration leaves out
    hooked = {tuple(word for word in words if word != "--force-exclude") for words in hooked}
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    linted = {tuple(line.split()[1:]) for line in recipe[1].replace("$(BIN)/", "tool ").splitlines()}
    linted = {tuple(word for word in words if word != ".") for words in linted}
    assert hooked == linted


def test_what_is_pinned_is_installed_as_it_is() -> None:
    """An installer that resolves a pinned file again can want a release that is newer than the file."""
    installs = [line for line in (ROOT / "Makefile").read_text().splitlines() if " -r requirements/" in line]
    assert len(installs) == 2
    for line in installs:
        assert {"--no-deps", "--require-hashes"} <= set(line.split())


def test_the_action_installs_by_hash_all_that_rocwheel_needs() -> None:
    """The closure by what the installed packages say themselves."""
    needed, names = {"rocwheel", "hatchling"}, ["rocwheel", "hatchling"]
    for name in names:
        for text in requires(name) or ():
            wanted = Requirement(text)
            project = canonicalize_name(wanted.name)
            if (wanted.marker is None or wanted.marker.evaluate()) and project not in needed:
                needed.add(project)
                names.append(project)
    rows = pinned((ROOT / "requirements/dev.txt").read_text())
    assert needed - {"rocbase", "rocwheel"} <= rows.keys()
    assert all("--hash=sha256:" in row for row in rows.values())
    install = loaded(ROOT / "action.yml")["runs"]["steps"][0]["run"]
    words = [line.split() for line in install.splitlines() if "install[@]" in line]
    assert ["--require-hashes" in line for line in words] == [True, False]
    assert "--no-build-isolation" in words[1] and "--no-deps" in install


def test_exported_workflows_pin_the_actions_that_ours_do() -> None:
    ours = "".join(path.read_text() for path in (GITHUB / "workflows").iterdir())
    for action in (CHECKOUT, UPLOAD):
        assert (
            re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v[0-9.]+", action) and f"uses: {action}\n" in ours
        )


def test_dependencies_are_kept_fresh_where_they_are_pinned() -> None:
    told = loaded(GITHUB / "dependabot.yml")
    assert told["version"] == 2
    kinds = {one["package-ecosystem"]: one for one in told["updates"]}
    assert set(kinds) == {"github-actions", "pip"}
    for folder in ("/", "/requirements"):
        assert folder in kinds["pip"]["directories"]


def test_every_text_file_ends_as_the_editors_are_told() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    kinds = ("*.py", "*.toml", "*.md", "*.yml", "Makefile")
    wrong = []
    for name in listed.stdout.split("\0"):
        path = ROOT / name
        if any(fnmatch(path.name, kind) for kind in kinds) and path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            if data and (b"\r\n" in data or not data.endswith(b"\n")):
                wrong.append(name)
    assert wrong == []


def test_every_row_of_a_table_has_as_many_cells_as_its_head() -> None:
    for page in subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines():
        inside, width = False, 0
        for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
            inside ^= line.lstrip().startswith("```")
            cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") and not inside else 0
            assert not (cells and width) or cells == width, f"{page}:{number}"
            width = cells


def test_the_version_is_in_one_place() -> None:
    assert "version" not in PROJECT["project"]
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "packages/rocwheel/src/rocwheel/version.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?", __version__)
    files = [*(ROOT / "src/rocwright").rglob("*.py"), *(ROOT / "packages").rglob("src/**/*.py")]
    own = (path for path in files if not path.is_relative_to(ROOT / "src/rocwright/catalog/data"))
    held = [path for path in own if f'"{__version__}"' in path.read_text()]
    assert held == [ROOT / "packages/rocwheel/src/rocwheel/version.py"]


def test_rocwright_takes_the_rocwheel_of_its_version() -> None:
    [needed] = [one for one in map(Requirement, PROJECT["project"]["dependencies"]) if one.name == "rocwheel"]
    assert needed.specifier.contains(__version__)
    wheel = tomllib.loads((ROOT / "packages/rocwheel/pyproject.toml").read_text())
    assert wheel["tool"]["hatch"]["version"]["path"] == "src/rocwheel/version.py"
    assert wheel["project"]["requires-python"] == PROJECT["project"]["requires-python"]
