"""Package URLs: each kind of origin in the form that others look it up by."""

from __future__ import annotations

from rocwheel_samples.tables import each
from rocwright.model.steps import (
    ArchiveOrigin,
    BuiltinOrigin,
    DebianOrigin,
    FilePin,
    GitOrigin,
    ImageOrigin,
    IndexOrigin,
    Origin,
    PackageOrigin,
)
from rocwright.plan.resolve.model import LockedRoot
from rocwright.provenance.materials import Material
from rocwright.provenance.purl import purl_of

SHA, COMMIT = "5" * 64, "c" * 40


def root(base: str, suite: str, manager: str) -> LockedRoot:
    return LockedRoot(role="build", base=base, manager=manager, suite=suite, architecture="x86_64")


def package(base: str, release: str, manager: str, asked: str) -> tuple[Origin, LockedRoot]:
    origin = PackageOrigin(base=base, release=release, manager=manager, image=SHA, package=asked)
    return origin, root(base, release, manager)


@each(
    ("origin", "on", "purl"),
    [
        (
            DebianOrigin(suite="sid", package="g++-15", version="1:15.2-3", architecture="amd64"),
            root("debian", "sid", "apt"),
            "pkg:deb/debian/g%2B%2B-15@1:15.2-3?arch=amd64&distro=debian-sid",
        ),
        (
            *package("fedora", "43", "dnf", "gcc-c++-0:15.2.1-2.fc43.x86_64"),
            "pkg:rpm/fedora/gcc-c%2B%2B@15.2.1-2.fc43?arch=x86_64&distro=fedora-43",
        ),
        (
            *package("ubi", "9", "dnf", "perl-4:5.32.1-481.el9.x86_64"),
            "pkg:rpm/redhat/perl@5.32.1-481.el9?arch=x86_64&distro=rhel-9&epoch=4",
        ),
        (
            *package("arch", "2025-10-28", "pacman", "gcc=15.2.1+r301-1"),
            "pkg:alpm/arch/gcc@15.2.1%2Br301-1?arch=x86_64&distro=arch-2025-10-28",
        ),
        (
            *package("rocm-ubuntu-24.04", "6.4", "apt", "g++=4:13.2.0-7ubuntu1"),
            "pkg:deb/ubuntu/g%2B%2B@4:13.2.0-7ubuntu1?arch=x86_64&distro=ubuntu-24.04",
        ),
        (
            IndexOrigin(project="Typing_Extensions", version="4.15.0"),
            None,
            "pkg:pypi/typing-extensions@4.15.0?file_name=a.file",
        ),
        (
            GitOrigin(url="https://github.com/ROCm/TheRock.git", commit=COMMIT),
            None,
            f"pkg:github/rocm/therock@{COMMIT}",
        ),
        (
            GitOrigin(url="https://example.org/a.git", commit=COMMIT),
            None,
            f"pkg:generic/a@1.0?vcs_url=git%2Bhttps://example.org/a.git%40{COMMIT}",
        ),
        (
            ImageOrigin(reference="docker.io/library/ubuntu:24.04", digest=f"sha256:{SHA}"),
            None,
            f"pkg:oci/ubuntu@sha256:{SHA}?repository_url=docker.io/library/ubuntu&tag=24.04",
        ),
        (
            ArchiveOrigin(url="https://example.org/a-1.0.tar.gz"),
            None,
            f"pkg:generic/a@1.0?checksum=sha256:{SHA}&download_url=https://example.org/a-1.0.tar.gz",
        ),
        (BuiltinOrigin(name="a"), None, f"pkg:generic/a@1.0?checksum=sha256:{SHA}"),
        # what a manager asks for in a way that the table does not know is named all the same
        (*package("fedora", "43", "dnf", "strange"), f"pkg:generic/a@1.0?checksum=sha256:{SHA}"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_origin_has_its_package_url(origin: Origin, on: LockedRoot | None, purl: str) -> None:
    pin = FilePin(filename="a.file", sha256=SHA, size=1, origin=origin)
    found = purl_of(Material(pin=pin, role="source", name="a", version="1.0", root=on))
    assert found.to_string() == purl
    assert type(found).from_string(purl) == found
