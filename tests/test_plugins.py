"""The core without the libraries of the dashboard, of messages, of farms and of hubs builds and verifies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution, entry_points
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from samples.project import make_sources, open_project, put_roots

from rocbase.errors import InputError
from rocwright import plugins
from rocwright.home import Home
from rocwright.plan.resolve.files import read_lock, write_lock, write_request

ROOT = Path(__file__).parents[1]
OWN = ("rocwright", "rocwheel", "rocbase")


def _core() -> dict[str, Distribution]:
    """Find all distributions that rocwright needs if none of its extras is asked for."""
    needed: dict[str, Distribution] = {}
    pending = [("rocwright", "")]
    while pending:
        name, extra = pending.pop()
        needed[name] = distribution(name)
        for requirement in map(Requirement, needed[name].requires or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                pending += [(requirement.name, each) for each in ("", *requirement.extras)]
        pending = [(name, extra) for name, extra in pending if extra or name not in needed]
    return needed


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment of the core alone; its Python."""
    folder = tmp_path_factory.mktemp("core")
    venv.create(folder, symlinks=True)
    [site] = folder.glob("lib/python*/site-packages")
    for name, needed in _core().items():
        for file in needed.files or ():
            top = file.parts[0]
            if top not in ("..", "__pycache__") and not (site / top).exists():
                (site / top).symlink_to(Path(str(needed.locate_file(top))))
        assert any(site.glob(f"{name.replace('-', '_')}*.dist-info")) or name not in OWN
    return folder / "bin/python"


@pytest.mark.usefixtures("engine")
def test_the_core_builds_and_verifies_and_says_what_its_other_verbs_need(
    core: Path, tmp_path: Path, home: Home, tiny_root: Path
) -> None:
    make_sources(tmp_path / "sources")
    put_roots(open_project(tmp_path / "sources", home.path), tiny_root)
    lock = read_lock(tmp_path / "sources/rocwright.lock")
    write_request(tmp_path / "project/rocwright.toml", lock.request)
    write_lock(tmp_path / "project/rocwright.lock", lock)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [core, "-m", "rocwright", *words],
            cwd=tmp_path / "project",
            env=os.environ | {"ROCWRIGHT_CATALOG": str(tmp_path / "sources/catalog")},
            capture_output=True,
            text=True,
            check=False,
        )

    for words in (
        "plan",
        "build",
        "verify",
        "ps",
        "stop nobody --quiet",
        "doctor",
        "history",
        "watch --list",
    ):
        done = run(*words.split())
        assert "Traceback" not in done.stderr and done.returncode in (0, 3), (words, done.stdout, done.stderr)
    assert (tmp_path / "project/rocwright-out/tiny").is_dir()
    for verb, library, extra in (("serve", "starlette", "web"), ("farm up", "distributed", "farm")):
        done = run(*verb.split())
        assert done.returncode == InputError.failure.exit_code
        assert library in done.stderr and f"pip install -e '{ROOT}[{extra}]'" in done.stderr


@pytest.mark.parametrize(
    ("origin", "mark", "command"),
    [
        ({}, "pipx_metadata.json", "pipx install --force '{}[web]'"),
        ({}, "uv-receipt.toml", "uv tool install '{}[web]'"),
        ({"editable": True}, "pyvenv.cfg", f"{sys.executable} -m pip install -e '{{}}[web]'"),
    ],
)
def test_an_extra_is_added_the_way_rocwright_was_installed(
    origin: dict[str, bool], mark: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "a checkout"
    checkout.mkdir()
    (tmp_path / mark).touch()
    direct_url = json.dumps({"url": checkout.as_uri(), "dir_info": origin})
    (tmp_path / "direct_url.json").write_text(direct_url)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(plugins, "distribution", lambda _: Distribution.at(tmp_path))
    assert plugins.install_command("web") == command.format(checkout)


def test_every_verb_without_a_module_is_one_of_our_entry_points() -> None:
    for group in ("rocwright.verbs", "rocwright.changes", "rocwright.pages", "rocwright.executors"):
        points = [point for point in entry_points(group=group) if point.value.startswith("rocwright.")]
        assert points and all(callable(plugins.load(group, point.name)) for point in points)
    assert callable(plugins.load("rocwright.logs", "servers").server_log)


def test_the_core_has_no_library_of_an_extra(core: Path) -> None:
    code = "import importlib.util, sys; sys.exit(any(map(importlib.util.find_spec, sys.argv[1:])))"
    names = ("starlette", "apprise", "distributed", "huggingface_hub")
    for python, expected in ((core, 0), (Path(sys.executable), 1)):
        assert subprocess.run([python, "-c", code, *names], check=False).returncode == expected
