"""The tools root: where it comes from, and that it leaves no trace in what it makes."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from tests.tools_root import debian_image, shared_tools

from rocbase.errors import InputError
from rocbase.files.atomic import sha256_bytes
from rocwheel_samples.tables import each
from rocwright.diagnosis.facts import host_facts
from rocwright.home import Home
from rocwright.model.steps import BaseAction
from rocwright.sources import programs
from rocwright.sources.bases.debian import make_root
from rocwright.sources.bases.namespace import host_settings
from rocwright.sources.bases.tools import Tools, tools_key
from rocwright.sources.debian import DebianArchive

FACTS = host_facts().tools_root


@each(
    ("present", "able"),
    [
        ("mmdebstrap bwrap podman skopeo", "mmdebstrap podman skopeo"),
        ("mmdebstrap docker podman", "podman docker"),
        ("skopeo bwrap", "skopeo"),
        ("skopeo mmdebstrap", ""),
    ],
)
def test_the_programs_of_a_host_that_can_make_it_are_tried_in_order(
    present: str, able: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in present.split():
        (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / name).symlink_to("/usr/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert programs.tools_sources() == able.split()
    for name in present.split():
        (tmp_path / name).unlink()


@each(
    ("system", "advice"),
    [
        ("debian", "install mmdebstrap bubblewrap"),
        ("fedora", "install mmdebstrap"),
        ("arch", "--needed podman"),
    ],
)
def test_a_host_that_cannot_make_it_is_told_what_its_distribution_has(
    system: str, advice: str, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: {"ID": system})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="not installed") as caught:
        Tools(home).record  # noqa: B018 - it would be made here
    assert advice in caught.value.next_step


@each(
    ("proxy", "lines"),
    [
        ("http://host.example:3128/", 1),
        ("", 0),
        ('http://x";\nDPkg::Pre-Invoke { "true"; };\n', 0),
    ],
)
def test_proxies_of_the_environment_are_in_the_settings_of_apt(
    proxy: str, lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a command line everybody could read a password in them."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", proxy)
    folder = tmp_path / sha256_bytes(proxy.encode())
    folder.mkdir()
    mounts = host_settings(folder)
    settings = (folder / "apt/apt.conf.d/99environment").read_text()
    assert settings.splitlines() == [f'Acquire::http::Proxy "{proxy}";'][:lines]
    assert not any("host.example" in word for word in mounts)
    assert "/etc/apt" in mounts


def test_its_key_covers_what_it_is_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {tools_key()}
    for field, value in (("suite", "sid"), ("image", "other"), ("packages", ("dpkg",)), ("sources", {})):
        monkeypatch.setattr(
            "rocwright.sources.bases.tools._facts", partial(FACTS.model_copy, update={field: value})
        )
        keys.add(tools_key())
    assert len(keys) == 5


@pytest.mark.real
@pytest.mark.nightly
def test_two_tools_roots_make_the_same_root(
    tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the host's mmdebstrap, and one of an image that podman has."""
    first = Tools(shared_tools())
    archive = DebianArchive(first, "sid", "amd64")
    archive.refresh()
    archive.download(archive.resolve(["make"]), tmp_path / "debs")
    monkeypatch.setattr("rocwright.sources.bases.tools.tools_sources", lambda: ["podman"])
    with debian_image(tmp_path):
        second = Tools(home)
        assert second.digest != first.digest
    packages = [(path.name, path) for path in sorted((tmp_path / "debs").glob("*.deb"))]
    made = []
    for number, tools in enumerate((first, second)):
        scratch = tmp_path / f"scratch-{number}"
        scratch.mkdir()
        action = BaseAction(suite="sid", architecture="amd64")
        made.append(make_root(action, packages, tmp_path / f"{number}.tar.zst", scratch, tools, print))
    assert made[0] == made[1]
