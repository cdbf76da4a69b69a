"""A stack of one wheel that is in the store, on a tiny root file system with a Python."""

from __future__ import annotations

from pathlib import Path

from samples.making import make_tiny_root
from samples.project import TinyProject, make_sources, open_project, put_roots

from rocwheel_samples.fatbin import write_wheel
from rocwright.home import Home
from rocwright.model.steps import FilePin, IndexOrigin
from rocwright.plan.make import make_plan
from rocwright.plan.packages import RUN_WHEELS
from rocwright.plan.resolve.files import read_lock, write_lock
from rocwright.plan.resolve.model import LockedPython
from rocwright.store.local import LocalStore
from rocwright.store.model import Output
from tests.making import record_of

RECIPE: dict[str, dict[str, object]] = {
    "alpha": {
        "kind": "wheel",
        "run": ["true"],
        "python_run": ["helper"],
        "output": [{"name": "wheel", "pattern": "alpha-*.whl"}],
        "system": {"build": ["shell"], "check": ["shell"]},
        "check": [{"name": "x", "kind": "script", "script": "checks/x.py", "wheels": True}],
        "serve": {"command": [], "env": {"ALPHA_SAYS": "as the recipe"}},
    }
}

QUIRK = """[[target.quirk]]
variable = "CARD_WANTS"
value = "1"
scope = "run"
need = "required"
reason = "x"
source = "x"
"""


def wheel(
    folder: Path,
    name: str,
    text: str,
    *requires: str,
    more: dict[str, str] | None = None,
    version: str = "1.0",
) -> Path:
    """A wheel of one module; `more` are files of its metadata."""
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    about += "".join(f"Requires-Dist: {one}\n" for one in requires)
    tag = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    info = f"{name}-{version}.dist-info"
    files = {f"{name}.py": text, f"{info}/METADATA": about, f"{info}/WHEEL": tag}
    files |= {f"{info}/{path}": content for path, content in (more or {}).items()}
    files[f"{info}/RECORD"] = ""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    return write_wheel(path, {name: content.encode() for name, content in files.items()})


def make_root(folder: Path) -> Path:
    """The root file system: a whole Python, and programs for the tests."""
    # pip reads the first when it is imported; Debian's ensurepip takes pip from the second
    places = [Path(name) for name in ("/etc/ssl/certs", "/usr/share/python-wheels") if Path(name).is_dir()]
    target = folder / "root.tar.zst"
    make_tiny_root(target, folder, python=True, whole=True, folders=places)
    return target


SAYS = "import helper\nsaid = helper.word\ndef main():\n    print(said)\n"


def make_stack(
    home: Home,
    folder: Path,
    root: Path,
    recipe: dict[str, dict[str, object]] = RECIPE,
    text: str = SAYS,
) -> TinyProject:
    """The project: `alpha`, whose module is `text`, is built, what it requires is locked and fetched."""
    sources = folder / "sources"
    make_sources(sources, recipe)
    targets = sources / "catalog" / "targets.toml"
    targets.write_text(targets.read_text() + QUIRK)
    store = LocalStore(home.store)
    helper = wheel(folder, "helper", "word = 'helped'\n")
    sha256, size = store.put_file(helper)
    origin = IndexOrigin(project="helper", version="1.0")
    pin = FilePin(filename=helper.name, sha256=sha256, size=size, origin=origin)
    lock = read_lock(sources / "rocwright.lock")
    run_wheels = LockedPython(version="3", wanted=("helper",), files=(pin,))
    write_lock(sources / "rocwright.lock", lock.model_copy(update={"python_run": run_wheels}))
    project = open_project(sources, home.path)
    put_roots(project, root)
    script = {"entry_points.txt": "[console_scripts]\nalpha-says = alpha:main\n"}
    built = wheel(folder, "alpha", text, "helper>=1", more=script)
    steps = {one.name: one for one in make_plan(project.locked, project.catalog).steps}
    for name, path in (("alpha", built), (RUN_WHEELS, helper)):
        sha256, size = store.put_file(path)
        output = Output(name=name, filename=path.name, sha256=sha256, size=size)
        store.put_record(record_of(steps[name], output))
    return project
