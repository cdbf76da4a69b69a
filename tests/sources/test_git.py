"""Git sources: a tag's commit, and the same bytes for a commit everywhere."""

from __future__ import annotations

import socket
from pathlib import Path
from random import Random

import pytest
from tests.sources.conftest import Repository, make_repository

from rocbase.errors import FetchError, InputError, NetworkError
from rocbase.processes import run as process
from rocwright.model.steps import GitOrigin
from rocwright.sources import git
from rocwright.sources.archive import unpack
from rocwright.sources.git import pack_commit, resolve_tag
from rocwright.sources.git_objects import FOLDER


def test_a_tag_names_its_commit(repository: Repository) -> None:
    repository.git("tag", "v1")
    assert resolve_tag(repository.url, "v1") == repository.git("rev-parse", "HEAD")


def test_an_annotated_tag_names_the_commit_and_not_itself(repository: Repository) -> None:
    repository.git("tag", "-a", "-m", "release", "v1")
    assert resolve_tag(repository.url, "v1") == repository.git("rev-parse", "HEAD")
    assert repository.git("rev-parse", "v1") != repository.git("rev-parse", "HEAD")


def test_only_the_whole_name_of_a_tag_counts(repository: Repository) -> None:
    repository.git("tag", "other/v1")
    repository.git("branch", "v1")
    with pytest.raises(FetchError, match="has no tag v1"):
        resolve_tag(repository.url, "v1")


def test_a_tag_that_is_not_there_is_an_error(repository: Repository) -> None:
    with pytest.raises(FetchError, match="has no tag v9"):
        resolve_tag(repository.url, "v9")


def test_a_tag_that_moved_is_refused_with_both_commits(repository: Repository) -> None:
    repository.git("tag", "v1")
    known = resolve_tag(repository.url, "v1")
    moved = repository.commit("file", "two\n")
    repository.git("tag", "--force", "v1")
    with pytest.raises(FetchError, match=r"the tag v1 of .* has moved") as caught:
        resolve_tag(repository.url, "v1", known)
    assert known[:12] in caught.value.cause
    assert moved[:12] in caught.value.cause


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/x.git", "/nowhere/at/all", "https://x.invalid/y.git"])
def test_a_repository_that_cannot_be_reached_is_a_network_failure(repository: Repository, url: str) -> None:
    with pytest.raises(NetworkError, match="cannot be reached") as caught:
        resolve_tag(url, "v1")
    assert caught.value.cause


def test_a_repository_that_does_not_answer_is_given_up(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git, "REACH_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as deaf, pytest.raises(NetworkError) as caught:
        resolve_tag(f"http://127.0.0.1:{deaf.getsockname()[1]}/x.git", "v1")
    assert caught.value.cause == "no answer in time"


@pytest.mark.parametrize(("url", "tag"), [("--upload-pack=touch /tmp/x", "v1"), ("/x", "--evil")])
def test_words_that_git_would_take_for_options_are_refused(url: str, tag: str) -> None:
    with pytest.raises(InputError):
        resolve_tag(url, tag)


def test_a_commit_is_packed_without_its_history(repository: Repository, tmp_path: Path) -> None:
    first = repository.git("rev-parse", "HEAD")
    repository.commit("file", "two\n")
    pin = pack_commit(GitOrigin(url=repository.url, commit=first), tmp_path)
    unpack(tmp_path / pin.filename, tmp_path / "out", wrapped=False)
    assert {path.name: path.read_text() for path in (tmp_path / "out").iterdir()} == {"file": "one\n"}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([pin.filename, "out", "upstream"])


def test_a_commit_is_packed_to_the_same_bytes_every_time(repository: Repository, tmp_path: Path) -> None:
    (repository.path / "run").write_text("#!/bin/sh\n")
    (repository.path / "run").chmod(0o755)
    (repository.path / "link").symlink_to("file")
    repository.git("add", "run", "link")
    commit = repository.commit("other", "text\n")
    one, other = (
        pack_commit(GitOrigin(url=repository.url, commit=commit), tmp_path / name)
        for name in ("one", "other")
    )
    assert one == other
    unpack(tmp_path / "one" / one.filename, tmp_path / "out", wrapped=False)
    assert (tmp_path / "out/run").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "out/link").readlink() == Path("file")


def test_a_users_own_git_settings_do_not_change_the_bytes(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.git("rev-parse", "HEAD")
    plain = pack_commit(GitOrigin(url=repository.url, commit=commit), tmp_path / "plain")
    settings = tmp_path / "gitconfig"
    settings.write_text("[core]\n\tautocrlf = true\n\tsymlinks = false\n\teol = crlf\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    assert pack_commit(GitOrigin(url=repository.url, commit=commit), tmp_path / "set").sha256 == plain.sha256


def add_submodule(
    repository: Repository, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Repository:
    """Link a new repository, by an address of the network, as a submodule; gives it."""
    inner = make_repository(folder)
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", f"https://inner.test/={inner.url}")
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", inner.url, name)
    repository.git("config", "-f", ".gitmodules", f"submodule.{name}.url", "https://inner.test/")
    repository.git("add", ".gitmodules")
    return inner


def test_the_submodules_of_a_commit_come_along(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = add_submodule(repository, "third_party/inner", tmp_path / "inner", monkeypatch)
    repository.git("commit", "--quiet", "-m", "submodule")
    commit = repository.git("rev-parse", "HEAD")
    inner.commit("file", "later\n")
    pin = pack_commit(GitOrigin(url=repository.url, commit=commit), tmp_path)
    unpack(tmp_path / pin.filename, tmp_path / "out", wrapped=False)
    assert (tmp_path / "out/third_party/inner/file").read_text() == "one\n"
    assert not list((tmp_path / "out").rglob(".git"))


def test_a_commit_that_is_gone_is_told_with_its_repository(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="does not serve the commit 000000000000"):
        pack_commit(GitOrigin(url=repository.url, commit="0" * 40), tmp_path)


def test_the_git_variables_of_the_caller_do_not_redirect_it(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.git("rev-parse", "HEAD")
    other = make_repository(tmp_path / "other")
    for name, value in (("GIT_DIR", ".git"), ("GIT_WORK_TREE", "."), ("GIT_INDEX_FILE", ".git/index")):
        monkeypatch.setenv(name, str(other.path / value))
    pin = pack_commit(GitOrigin(url=repository.url, commit=commit), tmp_path / "out")
    assert pin.filename == f"{commit}.tar.zst"
    assert (other.path / "file").read_text() == "one\n"


def test_folders_of_a_commit_are_fetched_alone(repository: Repository, tmp_path: Path) -> None:
    """The bytes of a library of a monorepo, of its own shape: a commit elsewhere in it changes nothing."""
    for library in range(40):
        folder = repository.path / f"projects/library{library}"
        folder.mkdir(parents=True)
        (folder / "source.cpp").write_bytes(Random(library).randbytes(60_000))
    (repository.path / "projects/LICENSE").write_text("MIT\n")
    repository.git("add", "projects")
    repository.git("config", "uploadpack.allowFilter", "true")
    repository.git("config", "uploadpack.allowAnySHA1InWant", "true")
    commits = [repository.commit("file", text) for text in ("two\n", "three\n")]
    pins = [
        pack_commit(
            GitOrigin(
                url=f"file://{repository.path}",
                commit=commit,
                paths=("projects/library7", "projects/LICENSE"),
            ),
            tmp_path / commit,
        )
        for commit in commits
    ]
    assert pins[0].sha256 == pins[1].sha256
    unpack(tmp_path / commits[0] / pins[0].filename, tmp_path / "out", wrapped=False)
    out = tmp_path / "out"
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert files == {"projects/library7/source.cpp", "projects/LICENSE"}


def test_a_folder_that_a_commit_does_not_have_is_named(repository: Repository, tmp_path: Path) -> None:
    commit = repository.git("rev-parse", "HEAD")
    for path in ("projects/rocblas", "file/inner"):
        with pytest.raises(FetchError, match=f"has no {path}") as caught:
            pack_commit(GitOrigin(url=repository.url, commit=commit, paths=(path,)), tmp_path / "out")
        assert "`paths`" in caught.value.next_step


def test_a_tree_that_asks_git_has_its_commit_and_links(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = add_submodule(repository, "base/inner", tmp_path / "inner", monkeypatch)
    commit = repository.commit("large", "x" * 200_000)
    origin = GitOrigin(url=repository.url, commit=commit, repository=True)
    pins = [pack_commit(origin, tmp_path / name) for name in ("one", "other")]
    assert pins[0] == pins[1]
    tree = tmp_path / "tree"
    unpack(tmp_path / "one" / pins[0].filename, tree, wrapped=False)
    assert not list(tree.rglob(".git"))
    (tree / ".git-repository").rename(tree / ".git")

    def git(*words: str) -> str:
        return process.run(["git", "-C", tree, *words]).stdout.strip()

    assert git("rev-parse", "HEAD") == commit
    assert git("ls-tree", "HEAD", "--", "base/inner").split()[2] == inner.git("rev-parse", "HEAD")
    assert git("config", "--blob", "HEAD:.gitmodules", "submodule.base/inner.path") == "base/inner"
    assert git("log", "-1", "--format=%H") == commit
    assert len(list((tree / ".git/objects").rglob("*"))) < 20


def test_a_tree_that_has_the_name_of_the_repository_is_refused(
    repository: Repository, tmp_path: Path
) -> None:
    (repository.path / FOLDER).symlink_to(tmp_path / "elsewhere")
    repository.git("add", FOLDER)
    commit = repository.commit("other", "text\n")
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(FetchError, match="has something of the name"):
        pack_commit(GitOrigin(url=repository.url, commit=commit, repository=True), tmp_path / "out")
    assert not list((tmp_path / "elsewhere").iterdir())
