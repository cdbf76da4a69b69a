"""Each form of an export is run: what it starts of the programs outside is there, and is called as it should
be. One row of each form for every change, all rows every night."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.engines import must_work
from tests.export.outside import HASH, PROGRAMS, Outside
from tests.export.test_rows import ROWS, lock_of_row, services_of

from rocwright.catalog.load import builtin_catalog
from rocwright.export.arguments import arguments
from rocwright.export.environment import environment_image, image_arguments
from rocwright.export.model import ExportSubject, slug, variable
from rocwright.export.run import Served, served
from rocwright.export.write import carried_sources, export, write
from rocwright.model.steps import RunAction, TreeAction
from rocwright.sandbox import probe_all

# Options of `run` that take a value, and those that take none.
VALUED = {
    *("--name", "--device", "--volume", "--publish", "--shm-size", "--env", "--entrypoint", "--group-add"),
}
PLAIN = {"--rm", "--init"}
LISTS = ("sha256", ".packages", "/requirements.lock")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def row_of(stack: str) -> str:
    """Return the first row of a stack."""
    return next(name for name, (one, _) in ROWS.items() if one.name == stack)


def each_row(*stacks: str) -> pytest.MarkDecorator:
    """Run a test with a row of these stacks, and with every other row by night."""
    chosen = {row_of(stack) for stack in stacks}
    night = [pytest.mark.real, pytest.mark.nightly]
    return pytest.mark.parametrize(
        "row", [name if name in chosen else pytest.param(name, marks=night) for name in ROWS]
    )


def subject_of(row: str) -> ExportSubject:
    lock, catalog = lock_of_row(*ROWS[row]), builtin_catalog()
    return ExportSubject.of(lock, catalog, carried_sources(lock, catalog))


def laid(row: str, format_: str, folder: Path) -> Path:
    """Write an export, with the root file systems that mmdebstrap would make."""
    write(export(lock_of_row(*ROWS[row]), builtin_catalog(), format_), folder)
    for role in ("build", "run", "check"):
        (folder / "base").mkdir(exist_ok=True)
        (folder / f"base/{role}.tar").write_bytes(bytes(10240))
    return folder


def given(subject: ExportSubject) -> dict[str, str]:
    """A value for each argument that the lock leaves open."""
    values = {"DEBIAN_FILES": json.dumps(_packaging(subject)), "OUTPUTS": json.dumps(_outputs(subject))}
    for argument in (*arguments(subject), *image_arguments(subject)):
        if argument.pending:
            image = argument.name.startswith("IMAGE_") or argument.name.endswith("_IMAGE")
            values[argument.name] = f"example.org/image@sha256:{HASH}" if image else HASH
    return values


def _packaging(subject: ExportSubject) -> list[str]:
    trees = [step.action for step in subject.plan.steps if isinstance(step.action, TreeAction)]
    return [f"debian/{folder}/file" for tree in trees for folder in tree.packaging]


def _outputs(subject: ExportSubject) -> dict[str, list[str]]:
    return {
        f"{step.name.replace('/', '-')}.sh": [
            re.sub(r"\[(.)[^]]*\]", r"\1", output.pattern).replace("*", "1") for output in step.action.outputs
        ]
        for step in subject.plan.steps
        if isinstance(step.action, RunAction)
    }


def give_requirements(folder: Path, subject: ExportSubject) -> None:
    """Put the lists of packages where the arguments of their hashes say."""
    parts = [(name, part.pending) for name, part in subject.packages]
    for name in [*(name for name, pending in parts if pending), "required"]:
        if not (folder / name / "requirements.lock").exists():
            (folder / name).mkdir(exist_ok=True)
            (folder / name / "requirements.lock").write_text(f"package==1 --hash=sha256:{HASH}\n")


@each_row("vllm-debian", "llama-vulkan")
def test_the_pipeline_prepares_all_that_the_containerfile_takes(row: str, tmp_path: Path) -> None:
    subject, folder = subject_of(row), laid(row, "pipeline", tmp_path / "export")
    give_requirements(folder, subject)
    outside = Outside(tmp_path, (*PROGRAMS, "buildah"))
    image = environment_image(subject)
    for whole in ({"IMAGE": "1"}, {}) if image is not None else ({},):
        done = outside.run("./build_pipeline.sh", cwd=folder, env=given(subject) | {"JOBS": "3"} | whole)
        assert done.returncode == 0, done.stderr
        words = outside.calls("buildah")[-1]["words"]
        assert words[0] == "build" and words[-1] == "."
        passed = [word.partition("=")[0] for flag, word in pairwise(words) if flag == "--build-arg"]
        assert all(NAME.fullmatch(name) for name in passed)
        assert {"JOBS", "TARGETS"} <= set(passed)
        stages = check_containerfile((folder / "Containerfile").read_text(), folder, whole=bool(whole))
        assert ("--target" not in words) or words[words.index("--target") + 1] in stages
        assert stages[-1] == (image.stage if image is not None else stages[-1])
    if image is not None:
        targets = [call["words"][call["words"].index("--target") + 1] for call in outside.calls("buildah")]
        assert targets == [image.stage, "artifacts"]


def check_containerfile(text: str, folder: Path, *, whole: bool) -> list[str]:
    """Follow each instruction as a builder does, and return the stages: what is copied is there, variables
    are declared before they are used, commands are files that were copied."""
    stages: dict[str, set[str]] = {}
    declared: set[str] = set()
    everywhere: set[str] = set()
    stage = ""
    for line in text.replace("\\\n", "").splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, stage = rest.partition(" AS ")
            assert stage not in stages, f"two stages are called {stage}"
            named = base.removeprefix("${").removesuffix("}")
            assert base in stages or base == "scratch" or named in everywhere, line
            stages[stage], declared = set(stages.get(base, ())), set()
        elif word in ("ARG", "ENV", "LABEL"):
            name = rest.partition("=")[0]
            assert word == "LABEL" or NAME.fullmatch(name), line
            (declared if stage else everywhere).add(name)
        elif word in ("COPY", "ADD"):
            stages[stage] |= set(_copied(rest.split(), folder, stages, line, whole=whole))
        elif word == "RUN":
            _check_run(rest, declared, stages[stage], line)
        elif word == "ENTRYPOINT":
            program = json.loads(rest)[0]
            copied = program in stages[stage] or any(f"{path}/" in program for path in stages[stage])
            assert (program.startswith("/") and copied) or stage in _pulled(text), line
        else:
            assert not word or word.startswith("#") or word in ("EXPOSE", "CMD"), line
    return list(stages)


def _pulled(text: str) -> list[str]:
    """The stages that start from an image of others: its programs are its own."""
    return re.findall(r"^FROM \$\{\w+\} AS (\S+)", text, re.MULTILINE)


def _copied(
    words: list[str], folder: Path, stages: dict[str, set[str]], line: str, *, whole: bool
) -> Iterator[str]:
    if words[0].startswith("--from="):
        assert words[0].removeprefix("--from=") in stages, line
        yield words[-1].rstrip("/")
    else:
        for source in words[:-1]:
            present = list(folder.glob(source.rstrip("/")))
            # what only the image takes is fetched for it alone
            assert present or (not whole and "artifacts" in stages), line
            for path in present:
                yield words[-1] + (path.name if words[-1].endswith("/") else "")
                yield from (
                    words[-1] + one.relative_to(path).as_posix() for one in path.rglob("*") if path.is_dir()
                )


def _check_run(rest: str, declared: set[str], copied: set[str], line: str) -> None:
    while rest.startswith("--mount"):
        rest = rest.partition(" ")[2]
    if rest.startswith("["):
        script = next(word for word in json.loads(rest)[1:] if word.startswith("/"))
        assert script in copied, f"{line}: {sorted(copied)[-5:]}"
    else:
        used = set(re.findall(r"\$([A-Z][A-Z0-9_]*)", rest))
        assert used <= declared, line


@each_row("vllm", "comfyui")
def test_the_commands_of_a_stage_run_in_it(row: str, probed: Path, tmp_path: Path) -> None:
    """The package manager of the image gets every package; an application is packed."""
    must_work({one.engine: one for one in probe_all(probed)}["bubblewrap"])
    subject, folder = subject_of(row), laid(row, "containerfile", tmp_path / "export")
    image = environment_image(subject)
    components = map(subject.catalog.component, subject.lock.versions.keys() & subject.catalog.components)
    applications = {component.name for component in components if component.kind == "application"}
    for locked in (*subject.roots, *((image.root,) if image is not None else ())):
        if locked.image:
            outside = Outside(tmp_path / locked.role, (*PROGRAMS, "dnf", "pacman"))
            place = tmp_path / locked.role / "root"
            shutil.copytree(folder / "base", place / "rocwright/base")
            (place / "etc/pacman.d").mkdir(parents=True)
            (place / "var/lib/pacman/local/base").mkdir(parents=True)
            (place / "var/lib/pacman/local/base/desc").touch()
            packages = variable("packages", locked.role)
            done = outside.run_inside(
                place, f"/rocwright/base/{locked.role}-root.sh", {packages: "one two=2"}
            )
            assert done.returncode == 0, done.stderr
            calls = [call["words"] for name in ("apt-get", "dnf", "pacman") for call in outside.calls(name)]
            own = (
                ["one", "two=2"]
                if locked.pending
                else (folder / f"base/{locked.role}.packages").read_text().split()
            )
            assert any(words[-len(own) :] == own for words in calls), calls
            assert not (place / "rocwright/base").exists()
    for step in subject.plan.steps:
        if not isinstance(step.action, RunAction) or step.action.own_python:
            continue
        if step.component in applications:
            outside, place = Outside(tmp_path / step.component), tmp_path / step.component / "root"
            for name in ("build/src", "out", "in", "ccache", "tmp"):
                (place / name).mkdir(parents=True)
            shutil.copytree(folder / "steps", place / "rocwright")
            done = outside.run_inside(place, f"/rocwright/{step.component}.sh", {})
            assert done.returncode == 0, done.stderr
            assert [path.name for path in (place / "out").iterdir()] == _outputs(subject)[f"{step.name}.sh"]


@each_row("gfx-smoke", "comfyui")
def test_the_nspawn_script_runs_each_step_in_the_root(row: str, tmp_path: Path) -> None:
    subject, folder = subject_of(row), laid(row, "nspawn", tmp_path / "export")
    give_requirements(folder, subject)
    outside = Outside(tmp_path, (*PROGRAMS, "podman"))
    done = outside.run("./build-nspawn.sh", cwd=folder, env=given(subject) | {"WORK": str(tmp_path / "work")})
    assert done.returncode == 0, done.stderr
    scripts = []
    for call in outside.calls("systemd-nspawn"):
        words = call["words"]
        assert words[-2] == "/bin/sh"
        for word in words:
            if word.startswith(("--bind=", "--bind-ro=")):
                assert Path(word.partition("=")[2].partition(":")[0]).is_dir(), word
            if word.startswith("--setenv="):
                name, _, value = word.removeprefix("--setenv=").partition("=")
                assert NAME.fullmatch(name)
                assert value or name == "JOBS" or name.startswith("PACKAGES_"), word
        scripts.append(Path(words[-1]).name)
    steps = list(_outputs(subject))
    assert [script for script in scripts if not script.endswith("-root.sh")] == steps
    assert all((folder / "steps" / script).is_file() for script in steps)
    shell = outside.run("./shell-nspawn.sh", cwd=folder, env={"WORK": str(tmp_path / "work")})
    assert shell.returncode == 0, shell.stderr
    assert outside.calls("systemd-nspawn")[-1]["words"][-1].startswith("--property=DeviceAllow=")


def run_call(words: list[str], entry: Served) -> tuple[str, list[str]]:
    """Read the arguments of `run` as an engine does; gives the image, and what is started in it."""
    assert words[0] == "run"
    position, options = 1, dict[str, list[str]]()
    while words[position].startswith("-"):
        flag = words[position]
        assert flag in VALUED | PLAIN, f"an engine does not know {flag}"
        value = words[position + 1] if flag in VALUED else ""
        options.setdefault(flag, []).append(value)
        position += 2 if flag in VALUED else 1
    for variable_text in options.get("--env", []):
        assert NAME.fullmatch(variable_text.partition("=")[0])
    assert all(port.startswith("127.0.0.1:") for port in options.get("--publish", []))
    assert len(options.get("--publish", [])) == len(entry.serve.ports)
    assert all(group.isdigit() or group == "keep-groups" for group in options.get("--group-add", []))
    return words[position], [*options.get("--entrypoint", []), *words[position + 1 :]]


def check_started(started: list[str], entry: Served) -> None:
    """The program is a path of the image or its own entry point, and no word is given twice."""
    assert started[:2] != started[2:4] or not started
    assert started[:1] != ["serve"], "the image's entry point is another"
    assert not [word for word in started if "{" in word]


@each_row("vllm", "ollama")
@pytest.mark.parametrize("engine", ["podman", "docker"])
def test_a_run_script_starts_the_image_by_the_engine_of_the_machine(
    row: str, engine: str, tmp_path: Path
) -> None:
    subject = subject_of(row)
    for entry in served(subject):
        name = slug(entry.component.name)
        folder = laid(row, "run", tmp_path / "export")
        outside = Outside(tmp_path / engine, (*PROGRAMS, engine))
        image = {variable(entry.component.name, "image"): f"example.org/image@sha256:{HASH}"}
        done = outside.run(f"./run-{name}.sh", "/models/x", cwd=folder, env={} if entry.image else image)
        assert done.returncode == 0, done.stderr
        (call,) = outside.calls(engine)
        reference, started = run_call(call["words"], entry)
        assert reference == (entry.image or next(iter(image.values())))
        assert started[-1] == "/models/x"
        check_started(started, entry)


@each_row("comfyui")
def test_a_script_names_what_is_missing_if_the_machine_has_no_engine(row: str, tmp_path: Path) -> None:
    subject, outside = subject_of(row), Outside(tmp_path)
    scripts = [("pipeline", "build_pipeline.sh")]
    scripts += [("run", f"run-{slug(entry.component.name)}.sh") for entry in served(subject) if entry.image]
    if any(root.image for root in subject.roots):
        scripts.append(("nspawn", "build-nspawn.sh"))
    for format_, script in scripts:
        folder = laid(row, format_, tmp_path / format_)
        give_requirements(folder, subject)
        done = outside.run(f"./{script}", cwd=folder, env=given(subject))
        assert done.returncode == 2, done.stderr
        assert f"{script}: install podman" in done.stderr


@each_row("gfx-smoke", "ollama")
def test_each_command_of_the_workflow_runs(row: str, tmp_path: Path) -> None:
    folder, subject = laid(row, "github", tmp_path / "export"), subject_of(row)
    (path,) = (folder / ".github/workflows").iterdir()
    workflow = yaml.safe_load(path.read_text())
    place = folder / workflow["jobs"]["build"]["defaults"]["run"]["working-directory"]
    laid(row, "pipeline", place)
    give_requirements(place, subject)
    outside = Outside(tmp_path, (*PROGRAMS, "buildah"))
    steps = workflow["jobs"]["build"]["steps"]
    for step in steps:
        if "run" in step:
            done = outside.run("sh", "-c", step["run"], cwd=place, env=given(subject))
            assert done.returncode == 0, done.stderr
    (call,) = outside.calls("buildah")
    uploads = [step["with"]["path"] for step in steps if "path" in step.get("with", {})]
    made = [word.partition("dest=")[2] for word in call["words"] if word.startswith("type=local,")]
    assert [Path(path) for path in uploads] == [Path(subject.name, path) for path in made]


@each_row("vllm", "ollama")
def test_a_unit_starts_what_the_script_starts(row: str, tmp_path: Path) -> None:
    subject = subject_of(row)
    for entry in served(subject):
        name = slug(entry.component.name)
        folder = laid(row, "quadlet", tmp_path / "export")
        unit = (folder / f"{name}.container").read_text()
        lines = [line.partition("=")[::2] for line in unit.splitlines() if not line.startswith("#")]
        podman = [word for key, value in lines if key == "PodmanArgs" for word in _words(value)]
        for key, flag in (("AddDevice", "--device"), ("Volume", "--volume"), ("PublishPort", "--publish")):
            podman += [word for one, value in lines if one == key for word in (flag, value)]
        podman += [word for key, value in lines if key == "Environment" for word in ("--env", *_words(value))]
        (image,) = [value for key, value in lines if key == "Image"]
        started = [word for key, value in lines if key == "Exec" for word in _words(value)]
        reference, program = run_call(["run", *podman, image, *started], entry)
        assert entry.image in ("", reference)
        assert program == [*entry.serve.entrypoint, *entry.serve.command]
        check_started(program, entry)
        units = tmp_path / "units"
        units.mkdir()
        (units / f"{name}.container").write_text(unit)
        assert list(services_of(units)) == [f"{name}.service"]


def _words(value: str) -> list[str]:
    """The words of a setting as systemd reads them."""
    return [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(value)]


@each_row("vllm", "ollama")
def test_a_compose_file_starts_what_the_script_starts(row: str, tmp_path: Path) -> None:
    subject = subject_of(row)
    for entry in served(subject):
        folder = laid(row, "compose", tmp_path / "export")
        text = (folder / "compose.yaml").read_text()
        needed = set(re.findall(r"(?<!\$)\$\{(\w+):\?", text))
        values = dict.fromkeys(needed, "7")
        document: dict[str, Any] = json.loads(interpolated(text, values))
        service = document["services"][slug(entry.component.name)]
        options = [word for one in service.get("devices", []) for word in ("--device", one)]
        options += [word for one in service.get("ports", []) for word in ("--publish", one)]
        options += [word for one in service.get("group_add", []) for word in ("--group-add", one)]
        options += [
            word
            for name, value in service.get("environment", {}).items()
            for word in ("--env", f"{name}={value}")
        ]
        program = [*service.get("entrypoint", []), *service.get("command", [])]
        reference, started = run_call(["run", *options, service["image"], *program], entry)
        assert entry.image in ("", reference) or not entry.image
        assert started == [*entry.serve.entrypoint, *entry.serve.command]
        check_started(started, entry)


def interpolated(text: str, values: dict[str, str]) -> str:
    """Fill variables in as compose does: `$$` is a dollar, `${NAME:?message}` must be set. Raises KeyError
    for a variable that nobody set."""
    form = r"\$(?:(\$)|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::\?[^}]*)?\}|())"

    def value(match: re.Match[str]) -> str:
        return match[1] or values[match[2] or match[3]]

    return re.sub(form, value, text)


@each_row("vllm", "comfyui")
def test_pip_reads_the_requirements(row: str, tmp_path: Path) -> None:
    from pip._internal.network.session import PipSession
    from pip._internal.req import parse_requirements

    folder = laid(row, "requirements", tmp_path / "export")
    for path in folder.rglob("requirements.lock"):
        text = path.read_text()
        if "--pending" in text:
            continue
        requirements = list(parse_requirements(str(path), session=PipSession()))
        names = re.findall(r"^(\S+==\S+)", text, re.MULTILINE)
        assert [one.requirement.strip() for one in requirements] == names
        assert all((one.options or {})["hashes"]["sha256"] for one in requirements)


@each_row("vllm", "llama-vulkan", "vllm-wheels")
def test_the_tutorial_names_arguments_and_files_that_the_pipeline_has(row: str, tmp_path: Path) -> None:
    subject, folder = subject_of(row), laid(row, "pipeline", tmp_path / "export")
    text = export(lock_of_row(*ROWS[row]), builtin_catalog(), "tutorial")["TUTORIAL.md"].text
    named = set(re.findall(r"^\| `([A-Z0-9_]+)` \|", text, re.MULTILINE))
    assert named <= {argument.name for argument in (*arguments(subject), *image_arguments(subject))}
    known = re.search(r"^known='([^']*)'$", (folder / "build_pipeline.sh").read_text(), re.MULTILINE)
    assert known is not None
    given_names = {name for line in re.findall(r"`([A-Z0-9_]+=\S.*?)`", text) for name in _given(line)}
    assert given_names <= {*known[1].split(), "TARGETS"}
    for path in re.findall(r"`((?:base|edits|sources|wheels-[^/`]+)/[^`]+)`", text):
        # a list of hashes that are pending is not there yet
        assert (folder / path).is_file() or (path.endswith(LISTS) and subject.lock.pending), path


def _given(line: str) -> list[str]:
    return [word.partition("=")[0] for word in line.split() if re.match(r"[A-Z0-9_]+=", word)]
