"""The git of a shell's tree: a repository made for it, and what the user did there, asked inside a sandbox.

A step could write the tree and the repository in it, so no program of the host runs on either.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rocbase.errors import InputError, SandboxError
from rocbase.files.atomic import is_git
from rocbase.folders.removal import remove_tree
from rocbase.folders.temporary import temporary_folder
from rocwright import sandbox
from rocwright.execution import opened
from rocwright.execution.exec_step import resolve_inputs
from rocwright.execution.stages import Stage, make_repository
from rocwright.execution.workspace import Workspace
from rocwright.home import Home
from rocwright.model.step_environment import BUILD, FIXED, OUT, SOURCE
from rocwright.model.steps import Step
from rocwright.sandbox.model import Ended, Mount, SandboxJob
from rocwright.sandbox.untrusted import Untrusted
from rocwright.sources.bases.roots import unpacked_root
from rocwright.sources.patching.diffs import parse_diff
from rocwright.sources.patching.history import ENVIRONMENT, SCRIPT, Changes, read_changes
from rocwright.sources.patching.repository import BASE, Repository
from rocwright.store.model import Store

# How long git may take over what the user did.
SECONDS = 600.0

_HOST_ROOT = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


def give_repository(
    step: Step,
    workspace: Workspace,
    stages: Sequence[Stage],
    store: Store,
    say: Callable[[str], None],
) -> Repository:
    """Put a repository with a commit a stage into the tree, in place of whatever the step left there.

    It is made beside what any sandbox sees, and is the shell's from then on. Raises SandboxError where the
    step left no folder.
    """
    folder = Path(tempfile.mkdtemp(prefix="git-", dir=workspace.path)) / "made"
    folder.mkdir()
    repository = make_repository(folder, stages, store, say)
    with _tree(workspace, step.name) as (build, tree):
        for name in os.listdir(tree):  # noqa: PTH208 - an open folder
            if is_git(name):
                aside = f"{secrets.token_hex(4)}.git"
                os.rename(name, aside, src_dir_fd=tree, dst_dir_fd=build)
                say(f"the {name} that {step.name} left is now {BUILD}/{aside}")
        os.rename(folder, ".git", dst_dir_fd=tree)
    folder.parent.rmdir()
    return repository


@contextlib.contextmanager
def _tree(workspace: Workspace, step: str) -> Iterator[tuple[int, int]]:
    """The folder that a sandbox sees, and the tree in it, open; no link is followed to it."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    build = os.open(workspace.build, flags)
    try:
        try:
            tree = os.open(opened.TREE, flags | os.O_NOFOLLOW, dir_fd=build)
        except OSError as error:
            raise SandboxError(
                f"{step} left no tree: {workspace.source} is not a folder",
                cause="its commands replaced it with something else",
                next_step=f"check what the commands of {step} do, then start again with rocwright "
                "build --discard",
                subject=step,
            ) from error
        try:
            yield build, tree
        finally:
            os.close(tree)
    finally:
        os.close(build)


def remember(step: Step, workspace: Workspace, repository: Repository) -> None:
    """Note what the tree holds: what is otherwise later is the user's."""
    files = opened.look(workspace.build, step.name)
    source = set(map(os.fsdecode, repository.files))
    untracked = sorted(files.keys() - source)
    note = opened.Opened(step=step.name, base=repository.head, files=files, left=untracked)
    opened.write(workspace.path, note)


def changes(step: Step, store: Store, home: Home, message: str, say: Callable[[str], None]) -> Changes:
    """The user's commits in the tree of `step`; with a `message`, what is not committed becomes one first.

    Raises PatchError for what is no series of patches, InputError where git cannot say.
    """
    workspace = Workspace.of(home, step.key)
    out = Path(tempfile.mkdtemp(prefix="changes-", dir=workspace.path))
    try:
        words = (SCRIPT, "sh", OUT, _opened(workspace).base, message)
        _git(words, step, workspace, store, home, say, (Mount(source=out, target=OUT, writable=True),))
        return read_changes(Untrusted(out, step.name))
    finally:
        remove_tree(out)


def mark_saved(step: Step, store: Store, home: Home, changes: Changes, say: Callable[[str], None]) -> None:
    """What was found is saved: the user's next change comes on top of it."""
    workspace = Workspace.of(home, step.key)
    names = {part.name for commit in changes.commits for part in parse_diff(commit.diff, commit.subject)}
    opened.note_saved(workspace.path, workspace.build, changes.head, names - set(changes.uncommitted))
    words = ('git update-ref "$1" "$2"', "sh", BASE, changes.head)
    _git(words, step, workspace, store, home, say)


def _opened(workspace: Workspace) -> opened.Opened:
    try:
        note = opened.read(workspace.path)
    except ValueError as error:
        raise InputError(
            f"the notes about the tree {workspace.source} are damaged",
            cause=f"{workspace.path / opened.NOTE}: {error}",
            next_step="copy your changes to another folder, then run rocwright build --discard",
        ) from error
    assert note is not None
    return note


def _git(
    words: Sequence[str],
    step: Step,
    workspace: Workspace,
    store: Store,
    home: Home,
    say: Callable[[str], None],
    mounts: tuple[Mount, ...] = (),
) -> None:
    """Run a script of git commands in the tree, in a sandbox. Raises InputError where it fails."""
    engine = sandbox.pick(None, home.probes)
    root = unpacked_root(store, resolve_inputs(store, step)["root"][0].sha256, home.roots, say)
    mounts = (Mount(source=workspace.build, target=BUILD, writable=True), *mounts)
    for mount in mounts:
        sandbox.make_writable(mount.source)
    last: deque[str] = deque(maxlen=20)
    with _root_with_git(root) as (place, root_mounts):
        job = SandboxJob(
            root=place,
            argv=("/bin/sh", "-c", *words),
            env=FIXED | ENVIRONMENT,
            workdir=SOURCE,
            mounts=(*root_mounts, *mounts),
            seconds=SECONDS,
        )
        outcome = sandbox.run(engine, job, last.append)
    if not outcome.ok:
        late = outcome.ended is Ended.TIMED_OUT
        raise InputError(
            f"git failed in the tree of {step.name}",
            cause=f"it took more than {SECONDS:.0f} s" if late else next(reversed(last), "no message"),
            detail="\n".join(last),
            next_step=f"run git status in rocwright shell {step.name} to see the state of the tree",
            subject=step.name,
        )


@contextlib.contextmanager
def _root_with_git(root: Path) -> Iterator[tuple[Path, tuple[Mount, ...]]]:
    """A root to run git in: the step's own where that has one, else the programs of this machine and no more.

    Raises InputError where neither has git.
    """
    if (root / "usr/bin/git").is_file():
        yield root, ()
        return
    if shutil.which("git", path="/usr/bin") is None:
        raise InputError(
            "git is not available to examine the tree",
            cause="neither the step's base nor /usr/bin has one",
            next_step="install git (on Debian and Ubuntu: apt-get install git), then try again",
        )
    with temporary_folder("root") as folder:
        host_root = Path(folder) / "root"
        (host_root / "etc").mkdir(parents=True)
        mounts = [Mount(source=Path("/usr"), target="/usr")]
        for place in (Path("/", name) for name in _HOST_ROOT):
            if place.is_symlink():
                (host_root / place.name).symlink_to(place.readlink())
            elif place.is_dir():
                mounts.append(Mount(source=place, target=str(place)))
        yield host_root, tuple(mounts)
