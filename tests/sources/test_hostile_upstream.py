"""A hostile upstream repository: nothing that it names is run, nothing of the host gets into a tree."""

from __future__ import annotations

import contextlib
import subprocess
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from tests.sources.conftest import Repository, make_repository
from tests.store.servers import serving

from rocbase.errors import FetchError, InputError, NetworkError
from rocwheel_samples.tables import each
from rocwright.follow.bisection.run import History
from rocwright.model.steps import GitOrigin
from rocwright.sources import git
from rocwright.sources.archive import unpack
from rocwright.sources.git import check_address, pack_commit, release_day, remote_refs, resolve_tag
from rocwright.sources.mirrors import mirrors


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """A file that is there once a command ran that should not."""
    return tmp_path / "ran"


@pytest.fixture
def generous(repository: Repository, tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user whose settings allow what upstream could misuse."""
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {marker}\n")
        (hooks / name).chmod(0o755)
    template = tmp_path / "template"
    (template / "hooks").mkdir(parents=True)
    (template / "hooks/post-checkout").write_text(f"#!/bin/sh\ntouch {marker}\n")
    (template / "hooks/post-checkout").chmod(0o755)
    (tmp_path / "gitconfig").write_text(
        f"""[core]
    hooksPath = {hooks}
    fsmonitor = touch {marker}
[init]
    templateDir = {template}
[protocol "ext"]
    allow = always
[filter "lfs"]
    smudge = touch {marker}; cat
    process = touch {marker}
    required = true
[filter "mine"]
    smudge = touch {marker}; cat
"""
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))


@pytest.fixture
def upstream(repository: Repository) -> Repository:
    """It asks for filters that a user may have set up."""
    repository.commit("large.bin", "pointer\n")
    repository.commit(".gitattributes", "* filter=mine\n*.bin filter=lfs\n")
    return repository


def with_submodule(repository: Repository, url: str, commit: str, name: str = "inner") -> str:
    """A commit of a submodule at an address that no honest tool would write; gives the commit."""
    (repository.path / ".gitmodules").write_text(f'[submodule "{name}"]\n\tpath = {name}\n\turl = {url}\n')
    repository.git("add", ".gitmodules")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},{name}")
    repository.git("commit", "--quiet", "-m", "submodule")
    return repository.git("rev-parse", "HEAD")


def test_no_filter_hook_or_monitor_of_the_user_is_run_for_an_upstream(
    upstream: Repository, generous: None, marker: Path, tmp_path: Path
) -> None:
    commit = upstream.git("rev-parse", "HEAD")
    marker.unlink(missing_ok=True)
    upstream_refs = remote_refs(upstream.url, 20)
    assert upstream_refs["refs/heads/main"] == commit
    pin = pack_commit(GitOrigin(url=upstream.url, commit=commit), tmp_path / "packed")
    assert not marker.exists()
    unpack(tmp_path / "packed" / pin.filename, tmp_path / "tree", wrapped=False)
    assert (tmp_path / "tree/large.bin").read_text() == "pointer\n"
    assert [path.name for path in (tmp_path / "packed").iterdir()] == [pin.filename]


def test_the_settings_of_the_user_change_no_bytes(
    upstream: Repository, tmp_path: Path, marker: Path, request: pytest.FixtureRequest
) -> None:
    commit = upstream.git("rev-parse", "HEAD")
    plain = pack_commit(GitOrigin(url=upstream.url, commit=commit), tmp_path / "plain")
    request.getfixturevalue("generous")
    assert (
        pack_commit(GitOrigin(url=upstream.url, commit=commit), tmp_path / "generous").sha256 == plain.sha256
    )


def test_an_address_that_is_a_command_is_not_run(
    repository: Repository, generous: None, marker: Path, tmp_path: Path
) -> None:
    head = repository.git("rev-parse", "HEAD")
    commit = with_submodule(repository, f"ext::sh -c 'touch {marker}'", head)
    marker.unlink(missing_ok=True)
    with pytest.raises(NetworkError, match="does not serve the commit"):
        pack_commit(GitOrigin(url=repository.url, commit=commit), tmp_path / "packed")
    assert not marker.exists()


def test_a_folder_in_the_place_of_a_held_submodule_is_no_repository_to_git(
    repository: Repository, marker: Path, tmp_path: Path
) -> None:
    """A bare repository among the files of a tree has a `config` that can name commands."""
    for name in ("objects", "refs"):
        (repository.path / "inner" / name).mkdir(parents=True)
    repository.commit("inner/HEAD", "ref: refs/heads/main\n")
    repository.commit("inner/objects/kept", "")
    repository.commit("inner/refs/kept", "")
    (repository.path / "link").symlink_to("inner")
    settings = f'[core]\n\tbare = true\n\tsshCommand = "touch {marker}; false"\n'
    commit = repository.commit("inner/config", f'{settings}[remote "origin"]\n\turl = ssh://git@h.test/x\n')
    for held in ("inner", "link", ".", ".git"):
        with pytest.raises(FetchError, match="has no submodule"):
            pack_commit(
                GitOrigin(url=repository.url, commit=commit, held={held: commit}), tmp_path / "packed"
            )
    assert not marker.exists()


ADDRESSES = ("ext::sh -c 'touch MARKER'", "fd::7", "UPSTREAM", "file://UPSTREAM", "../upstream", "-uMARKER")


@each("address", ADDRESSES)
def test_no_stranger_names_a_folder_or_a_command(
    repository: Repository, generous: None, marker: Path, tmp_path: Path, address: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A repository in a cloned folder has settings of its own, which older git runs for who reads from it."""
    monkeypatch.delenv("GIT_ALLOW_PROTOCOL", raising=False)
    monkeypatch.chdir(tmp_path)
    url = address.replace("MARKER", str(marker)).replace("UPSTREAM", repository.url)
    head = repository.git("rev-parse", "HEAD")
    marker.unlink(missing_ok=True)
    for read in (
        lambda: resolve_tag(url, "v1"),
        lambda: remote_refs(url, 20),
        lambda: release_day(url, "refs/heads/main", 20),
        lambda: pack_commit(GitOrigin.model_construct(url=url, commit=head), tmp_path / "packed"),
        lambda: History(url, tmp_path / "history"),
    ):
        with pytest.raises(InputError, match="is not a git address"):
            read()
    assert not marker.exists()


def test_a_folder_that_the_user_named_as_a_mirror_is_read(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GIT_ALLOW_PROTOCOL")
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", f"https://upstream.test/x={repository.url}")
    for url in (repository.url, "https://upstream.test/x"):
        assert remote_refs(url, 20)["refs/heads/main"] == repository.git("rev-parse", "HEAD")


@each("url", ["SECRET", "file://SECRET", "MIRROR/../secret", "https://upstream.test/../secret"])
def test_a_mirror_is_no_way_to_another_folder(
    repository: Repository, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name may begin as that of the mirror, or lead there and out again."""
    monkeypatch.delenv("GIT_ALLOW_PROTOCOL", raising=False)
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", f"https://upstream.test/={tmp_path}/sec")
    address = url.replace("SECRET", f"{tmp_path}/secret").replace("MIRROR", f"{tmp_path}/sec")
    with pytest.raises(InputError):
        check_address(address)
    with pytest.raises(InputError, match="leads out of the mirror"):
        mirrors().at("https://upstream.test/a/%2e%2e/%2e%2e/secret")


@each("url", ["https://h/x", "http://h:1/x", "ssh://u@h/x", "git@host.test:o/x.git", "git://h/x"])
def test_addresses_of_the_network_are_followed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GIT_ALLOW_PROTOCOL", raising=False)
    check_address(url)


def test_a_submodule_cannot_name_a_repository_of_this_machine(repository: Repository, tmp_path: Path) -> None:
    secret = make_repository(tmp_path / "secret")
    head = secret.commit("secret", "of this machine\n")
    for url in (secret.url, f"file://{secret.path}"):
        commit = with_submodule(repository, url, head)
        with pytest.raises(NetworkError, match="does not serve the commit"):
            pack_commit(GitOrigin(url=repository.url, commit=commit), tmp_path / "packed")


def test_a_submodule_cannot_say_how_it_is_updated(
    repository: Repository, marker: Path, tmp_path: Path
) -> None:
    with_submodule(repository, "https://127.0.0.1:1/x", repository.git("rev-parse", "HEAD"))
    text = (repository.path / ".gitmodules").read_text()
    commit = repository.commit(".gitmodules", f"{text}\tupdate = !touch {marker}\n")
    with pytest.raises(NetworkError, match="does not serve the commit"):
        pack_commit(GitOrigin(url=repository.url, commit=commit), tmp_path / "packed")
    assert not marker.exists()


@pytest.mark.parametrize("name", [".git", ".GIT"])
def test_a_commit_that_holds_a_git_folder_is_refused(
    repository: Repository, tmp_path: Path, name: str
) -> None:
    def git(*words: str, text: str) -> str:
        done = subprocess.run(
            ["git", "-C", repository.path, "-c", "user.name=x", "-c", "user.email=x", *words],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    blob = git("hash-object", "-w", "--stdin", text="[core]\n\tfsmonitor = false\n")
    inner = git("mktree", text=f"100644 blob {blob}\tconfig\n")
    tree = git("mktree", text=f"040000 tree {inner}\t{name}\n")
    repository.git("update-ref", "refs/heads/main", git("commit-tree", tree, text="hostile"))
    with pytest.raises(NetworkError, match="does not serve the commit"):
        pack_commit(
            GitOrigin(url=repository.url, commit=repository.git("rev-parse", "refs/heads/main")),
            tmp_path / "packed",
        )


class _Endless(BaseHTTPRequestHandler):
    """A host whose list of refs does not end."""

    sent = 0
    piece, pause = b"x" * 65536, 0.0

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/x-git-upload-pack-advertisement")
        self.end_headers()
        while self.piece:
            self.wfile.write(self.piece)
            type(self).sent += len(self.piece)
            time.sleep(self.pause)

    def log_message(self, *_: object) -> None:
        pass

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):
            super().handle()


def test_a_list_of_refs_that_does_not_end_fills_no_memory() -> None:
    class Host(_Endless):
        pass

    with serving(Host) as url, pytest.raises(NetworkError, match="cannot be reached"):
        remote_refs(f"{url}/x.git", 20)
    assert Host.sent < 400 * 2**20


def test_a_host_that_drips_does_not_keep_a_fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Host(_Endless):
        piece, pause = b"0", 0.5

    monkeypatch.setitem(git._APART, "http.lowSpeedTime", "1")
    with serving(Host) as url, pytest.raises(NetworkError, match="does not serve"):
        pack_commit(GitOrigin(url=f"{url}/x.git", commit="1" * 40), tmp_path)
    assert Host.sent < 20
