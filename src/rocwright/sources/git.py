"""Git repositories: a tag's commit, and the tree of a commit packed the same way everywhere."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rocbase.errors import FetchError, InputError, NetworkError
from rocbase.files.atomic import sha256_bytes, sha256_file, write_atomic
from rocbase.files.bounds import GIB, GIT
from rocbase.folders.temporary import temporary_folder
from rocbase.model import canonical_json
from rocbase.processes import run as process
from rocbase.units import size as size_text
from rocwright.catalog.place import ANY_COMMIT
from rocwright.model.step_environment import EPOCH
from rocwright.model.steps import FilePin, GitOrigin
from rocwright.sources.archive import pack
from rocwright.sources.git_objects import lay_repository
from rocwright.sources.mirrors import mirrors, with_settings
from rocwright.sources.patience import asked, within

# How long a repository may take to answer before the next source place is tried.
REACH_SECONDS = 20

# A look writes no file above 64 MiB, and none of its processes takes more than 384 MiB.
#
# A million refs fit. A list of refs without an end fills any bound in seconds.
BOUNDED = ("sh", "-c", 'ulimit -f 131072 && ulimit -v 393216 && exec "$@"', "sh")

# What fetches writes no file above 8 GiB, the pack of a commit, and takes no more than 1.5 GiB of memory.
_FETCHING = ("sh", "-c", f'ulimit -f {8 * GIB // 512} && ulimit -v 1572864 && exec "$@"', "sh")

# A pack stays one, and a large file in it is not held.
_IN_LITTLE_MEMORY = (
    *("fetch.unpackLimit=1", "core.bigFileThreshold=16m", "pack.threads=1", "core.deltaBaseCacheLimit=32m"),
    *("core.packedGitWindowSize=32m", "core.packedGitLimit=256m"),
)

# What a command prints, through a program of awk that stops at `most`: a list may have no end.
_LISTED = 'most=$1 program=$2; shift 2; { "$@" || echo failed; } | awk -v most="$most" "$program"'
# Files of the tree that was fetched, until there are too many, and the bytes that they take.
_ADD = (
    "/^failed$/ { exit 1 } { files++; size += $4 } files > most { exit } "
    'END { printf "%d %.0f", files, size }'
)
# Objects that a repository knows of and has not.
_MISSING = "/^failed$/ { exit 1 } /^[?]/ { objects++; print substr($1, 2) } objects > most { exit 1 }"

# Submodules, at any depth: PyTorch has 60.
MOST_REPOSITORIES = 500

# The settings of a repository in which the user stands, which may be a stranger's, are not read.
APART = ("git", "-C", "/")

# What git sets for its hooks: where another repository lies.
_LOCAL = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")

# Nothing that upstream's files or addresses name is run, whatever the user allows elsewhere, and no host
# keeps a fetch waiting by bytes that drip.
_APART = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "submodule.recurse": "false",
    "protocol.allow": "never",
    "protocol.ext.allow": "never",
    **{f"protocol.{name}.allow": "always" for name in ("https", "http", "ssh", "git")},
    # for what the user named: git allows none of it to submodules
    "protocol.file.allow": "user",
    # a host that prepares a pack sends a byte a second meanwhile, but not for minutes for a single commit
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "120",
}

# Addresses that a lock or a recipe of a stranger may name.
_NETWORK = re.compile(r"(https?|ssh|git)://[^-].*|[A-Za-z0-9_.]+@[A-Za-z0-9][A-Za-z0-9.-]*:[^:-].*")

# git's own variable; with `file` in it, folders of this machine may be named as repositories.
ALLOW = "GIT_ALLOW_PROTOCOL"

# A repository in which objects may be missing that its origin has.
_PARTIAL = {
    "core.repositoryFormatVersion": "1",
    "extensions.partialClone": "origin",
    "remote.origin.promisor": "true",
    "remote.origin.partialCloneFilter": "blob:none",
    "core.sparseCheckout": "true",
}

# Attributes over those of a tree: it cannot choose among the user's own filter programs.
_NO_FILTER = "* -filter\n"

# No setting of the user's changes the bytes of a checkout; proxies and credentials stay.
_AS_COMMITTED = ("core.autocrlf=false", "core.eol=lf", "core.symlinks=true", "core.attributesFile=/dev/null")


def environment() -> dict[str, str]:
    """What git runs with: the user's settings for the network, and no repository of the caller's."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(_LOCAL)}
    variables |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8", "GIT_LFS_SKIP_SMUDGE": "1"}
    variables |= {"GIT_ATTR_NOSYSTEM": "1"}
    # it stands over all settings
    variables.pop(ALLOW, None)
    return mirrors().for_git(with_settings(variables, _APART.items()))


def check_address(url: str) -> None:
    """Raise InputError for an address that no stranger may name: a folder of this machine, a command.

    A folder may be named by who starts rocwright: as a mirror, or with `file` in $GIT_ALLOW_PROTOCOL.
    """
    mirror_table = mirrors()
    if _NETWORK.fullmatch(url):
        mirror_table.at(url)
        return
    local = "::" not in url and not url.startswith("-")
    if local and (mirror_table.holds(url) or "file" in os.environ.get(ALLOW, "").split(":")):
        return
    raise InputError(
        f"{url} is not a git address that rocwright follows",
        cause="a lock or a recipe may name https, http, ssh and git addresses, no folder and no command",
        next_step=f"if the folder is yours, name it as a mirror in config.toml, or set {ALLOW}=file",
    )


def resolve_tag(url: str, tag: str, expected: str = "") -> str:
    """The commit that a tag names, peeled; ANY_COMMIT stands for what only one tag has there.

    Raises NetworkError, FetchError where there is no such tag, several, or it is not the commit `expected`.
    """
    if tag.startswith("-"):
        raise InputError(
            f"{url} {tag} is not a valid git source",
            cause="a git tag may not start with a dash",
            next_step="correct the source in the recipe",
        )
    commits = _remote(url, [f"refs/tags/{tag}", f"refs/tags/{tag}^{{}}"], REACH_SECONDS)
    # a name may also be the end of another one: ls-remote compares from behind
    whole = re.compile("refs/tags/" + re.escape(tag).replace(re.escape(ANY_COMMIT), "[0-9a-f]{7,40}"))
    tags = sorted({name for name in (each.removesuffix("^{}") for each in commits) if whole.fullmatch(name)})
    if len(tags) > 1:
        raise FetchError(
            f"{url} has {len(tags)} tags {tag}",
            cause=", ".join(name.removeprefix("refs/tags/") for name in tags),
            next_step="name one of them in the recipe",
        )
    commit = next((commits.get(f"{name}^{{}}") or commits.get(name) for name in tags), None)
    if commit is None:
        raise FetchError(
            f"{url} has no tag {tag}",
            cause="the release does not exist, or the tag was removed",
            next_step="correct the version in the recipe or in rocwright.toml",
        )
    if expected and commit != expected:
        raise FetchError(
            f"the tag {tag} of {url} has moved",
            cause=f"it now points to {commit[:12]}; the catalog has {expected[:12]}",
            next_step="find out why upstream moved it before you trust it; then correct the catalog",
        )
    return commit


def remote_refs(url: str, seconds: float) -> dict[str, str]:
    """Every branch and tag of a repository -> its commit; of an annotated tag what it stands for.

    Raises NetworkError where it does not answer, or not to the end, in `seconds`.
    """
    refs = _remote(url, ["--heads", "--tags"], seconds)
    peeled = {name.removesuffix("^{}"): commit for name, commit in refs.items() if name.endswith("^{}")}
    return {name: commit for name, commit in refs.items() if not name.endswith("^{}")} | peeled


def _remote(url: str, arguments: Sequence[str], seconds: float) -> dict[str, str]:
    check_address(url)
    options = [argument for argument in arguments if argument.startswith("--")]
    names = [argument for argument in arguments if not argument.startswith("--")]
    words = [*BOUNDED, *APART, "ls-remote", *options, "--", url, *names]
    with asked(url):
        completed = process.run(words, env=environment(), timeout=within(seconds))
        if not completed.ok:
            cause = (
                "no answer in time"
                if completed.timed_out
                else (completed.stderr.strip().splitlines() or [""])[-1]
            )
            raise NetworkError(f"{url} cannot be reached", cause=cause, next_step="check the network")
    rows = (line.partition("\t") for line in completed.stdout.splitlines())
    return {name: commit for commit, _, name in rows}


def release_day(url: str, ref: str, seconds: float) -> datetime | None:
    """When a tag was made, or the commit that it stands for; None where that is not told cheaply.

    One commit is fetched, and no tree where the repository can leave it out; what is larger than a bound, or
    later than `seconds`, is given up.
    """
    check_address(url)
    until = time.monotonic() + within(seconds)
    with temporary_folder("day") as folder:
        for words in (
            ["init", "--quiet", "--bare"],
            ["fetch", "--quiet", "--depth", "1", "--filter=tree:0", "--no-tags", "--", url, f"{ref}:{ref}"],
        ):
            git = [*BOUNDED, "git", "-C", str(folder), *words]
            if not process.run(git, env=environment(), timeout=max(until - time.monotonic(), 0.1)).ok:
                return None
        words = ["for-each-ref", "--format=%(creatordate:unix)", ref]
        completed = process.run(["git", "-C", folder, *words], env=environment(), timeout=seconds)
    timestamp = completed.stdout.strip()
    return datetime.fromtimestamp(int(timestamp), UTC) if timestamp.isdecimal() else None


def pack_commit(origin: GitOrigin, folder: Path) -> FilePin:
    """Fetch a commit, or parts of it, and pack its tree into `folder`. Raises NetworkError, FetchError
    for what the commit does not have.
    """
    url, commit = origin.url, origin.commit
    check_address(url)
    tree = folder / f"{commit}.tree"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    template = folder / f"{commit}.template"
    # git makes every repository from it, those of submodules too
    write_atomic(template / "info" / "attributes", _NO_FILTER)
    checkout = _Checkout(template, dict(origin.held))
    checkout.bring(tree, url, commit, "", origin.paths)
    for path, pin in checkout.held.items():
        raise FetchError(
            f"{url} has no submodule {path}",
            cause=f"the recipe pins it to {pin[:12]}",
            next_step="correct `held` in the recipe's source",
        )
    if origin.repository:
        lay_repository(tree, commit, environment())
    for git in sorted(tree.rglob(".git")):
        shutil.rmtree(git) if git.is_dir() else git.unlink()
    packed = folder / filename_of(origin)
    pack(tree, packed, epoch=EPOCH)
    shutil.rmtree(tree)
    shutil.rmtree(template)
    return FilePin(
        filename=packed.name,
        sha256=sha256_file(packed),
        size=packed.stat().st_size,
        origin=origin,
    )


def filename_of(origin: GitOrigin) -> str:
    """The name of a packed tree; parts of a commit have another than the whole."""
    kind = [*origin.paths, *(["/"] if origin.repository else [])]
    part = f"-{sha256_bytes(canonical_json(kind))[:8]}" if kind else ""
    return f"{origin.commit}{part}.tar.zst"


@dataclass
class _Checkout:
    """A commit and its submodules: `held` are those at another commit that did not come yet, by path.

    Before anything is checked out, what it would take is counted, over all that came.
    """

    template: Path
    held: dict[str, str]
    received: int = 0
    size: int = 0
    files: int = 0
    repositories: int = 0

    def bring(self, tree: Path, url: str, commit: str, place: str, paths: Sequence[str] = ()) -> None:
        """Fetch a commit, or its folders and files `paths`, into the folder `tree`, which lies at `place` of
        the first repository's."""
        self._git(tree, url, commit, "init", "--quiet")
        self._git(tree, url, commit, "config", "remote.origin.url", url)
        if paths:
            self._fetch_parts(tree, url, commit, paths)
        else:
            self._git(tree, url, commit, "fetch", "--quiet", "--depth", "1", "--", url, commit)
        self._count(tree, url, commit, paths)
        self._git(tree, url, commit, "-c", "advice.detachedHead=false", "checkout", "--quiet", "FETCH_HEAD")
        if (tree / ".gitmodules").is_file() and not (tree / ".gitmodules").is_symlink():
            self._submodules(tree, url, commit, place)

    def _fetch_parts(self, tree: Path, url: str, commit: str, paths: Sequence[str]) -> None:
        """Fetch the commit without the content of its files, then that of the files in `paths`.

        Raises FetchError if it has no such path.
        """
        for name, value in _PARTIAL.items():
            self._git(tree, url, commit, "config", name, value)
        fetch = ("fetch", "--quiet", "--no-tags", "--depth", "1", "--filter=blob:none")
        self._git(tree, url, commit, *fetch, "--", "origin", commit)
        for path in paths:
            kind = self._git(tree, url, commit, "ls-tree", "FETCH_HEAD", "--", path).split()[1:2]
            if kind not in (["tree"], ["blob"]):
                raise FetchError(
                    f"{url} has no {path}",
                    cause=f"the commit {commit[:12]} has no folder or file of that name",
                    next_step="correct `paths` in the recipe's source",
                    subject=url,
                )
        words = ("rev-list", "--objects", "--missing=print", "FETCH_HEAD", "--", *paths)
        missing = self._listed(tree, url, commit, GIT.members, _MISSING, words)
        if missing:
            batch = ("-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags", "--refmap=")
            whole = (*batch, "--no-write-fetch-head", "--filter=blob:none", "--stdin", "origin")
            self._git(tree, url, commit, *whole, stdin=missing.encode())
        write_atomic(tree / ".git/info/sparse-checkout", "".join(f"/{path}\n" for path in paths))

    def _submodules(self, tree: Path, url: str, commit: str, place: str) -> None:
        self._git(tree, url, commit, "submodule", "--quiet", "init")
        settings = self._settings(tree, url, commit, ".git/config")
        for name, path in self._settings(tree, url, commit, ".gitmodules").items():
            if not name.endswith(".path") or f"{name[:-5]}.url" not in settings:
                continue
            row = self._git(tree, url, commit, "ls-tree", "FETCH_HEAD", "--", path).split()
            inner = tree / path
            if row[1:2] != ["commit"] or settings.get(f"{name[:-5]}.update") == "none":
                continue
            if not inner.resolve().is_relative_to(tree.resolve()) or not inner.is_dir():
                raise self._refused(url, f"its submodule {path[:200]} lies elsewhere")
            full_path = f"{place}{path}"
            revision = self.held.pop(full_path, row[2])
            self.bring(inner, settings[f"{name[:-5]}.url"], revision, f"{full_path}/")

    def _settings(self, tree: Path, url: str, commit: str, file: str) -> dict[str, str]:
        """Return the settings of submodules in a file of git's, by name."""
        words = ("config", "--null", "--file", file, "--list")
        rows = (row.partition("\n") for row in self._git(tree, url, commit, *words).split("\0"))
        return {name: value for name, _, value in rows if name.startswith("submodule.")}

    def _count(self, tree: Path, url: str, commit: str, paths: Sequence[str]) -> None:
        """Raise FetchError if what came stands for more than any real repository."""
        self.repositories += 1
        packs = (tree / ".git" / "objects" / "pack").glob("*.pack")
        self.received += sum(pack.stat().st_size for pack in packs)
        words = ("ls-tree", "-r", "-l", "FETCH_HEAD", "--", *paths)
        counted = self._listed(tree, url, commit, GIT.members - self.files, _ADD, words)
        files, size = map(int, counted.split())
        self.files, self.size = self.files + files, self.size + size
        if self.files > GIT.members or self.repositories > MOST_REPOSITORIES:
            raise self._refused(
                url, f"it has more than {GIT.members:,} files, or {MOST_REPOSITORIES} submodules"
            )
        if self.size > GIT.size_of(self.received):
            raise self._refused(
                url, f"it has {size_text(self.size)}, of which {size_text(self.received)} came"
            )

    def _listed(
        self, tree: Path, url: str, commit: str, most: int, program: str, words: Sequence[str]
    ) -> str:
        """What a command of git prints, through a program of awk that ends at `most`."""
        listed = ("sh", "-c", _LISTED, "sh", str(most), program, "git", "-C", str(tree), *words)
        completed = process.run((*_FETCHING, *listed), env=self._env(), timeout=600)
        if not completed.ok:
            raise self._refused(url, f"the tree of {commit[:12]} cannot be listed")
        return completed.stdout

    def _git(self, tree: Path, url: str, commit: str, *words: str, stdin: bytes | None = None) -> str:
        settings = (word for setting in (*_AS_COMMITTED, *_IN_LITTLE_MEMORY) for word in ("-c", setting))
        command = (*_FETCHING, "git", "-C", str(tree), *settings, *words)
        completed = process.run(command, env=self._env(), stdin=stdin, timeout=3600)
        if not completed.ok:
            raise NetworkError(
                f"{url} does not serve the commit {commit[:12]}",
                cause=(completed.stderr.strip().splitlines() or ["no message"])[-1],
                next_step="try again; if the commit was removed upstream, name another source in the recipe",
            )
        return completed.stdout

    def _env(self) -> dict[str, str]:
        # an address that a repository names is none that the user named
        own = {"GIT_PROTOCOL_FROM_USER": "0"} if self.repositories else {}
        fixed = {"GIT_TEMPLATE_DIR": str(self.template), "GIT_LITERAL_PATHSPECS": "1"}
        return environment() | fixed | own

    def _refused(self, url: str, cause: str) -> FetchError:
        return FetchError(
            f"the repository {url} is refused: it unpacks to more than any real one",
            cause=cause,
            next_step="find out where it came from, and name another source in the recipe",
            subject=url,
        )
