"""Where licences are found: dpkg's lists, Debian's names of packages, ROCm's share/doc."""

from __future__ import annotations

from pathlib import Path

from rocwheel.wheels.repair.facts import the_facts
from rocwheel.wheels.repair.licences import debian_names, licences
from rocwheel_samples.tables import each


@each(
    ("soname", "package"),
    [
        ("libMIOpen.so.1", "libmiopen1"),
        ("libamdhip64.so.6", "libamdhip64-6"),
        ("libamd_comgr.so.3", "libamd-comgr3"),
        ("libelf.so.1", "libelf1t64"),
        ("libLLVM-15.so.1", "libllvm15"),
        ("libLLVM.so.21.1", "libllvm21"),
    ],
)
def test_debians_names_of_packages(soname: str, package: str) -> None:
    assert package in debian_names(soname)


def test_the_package_that_owns_the_file_stands_before_names(tmp_path: Path) -> None:
    library = tmp_path / "usr/lib/x86_64-linux-gnu/libnuma.so.1.0.0"
    lists = tmp_path / "var/lib/dpkg/info"
    documents = [tmp_path / "usr/share/doc" / name for name in ("odd-name", "libnuma1")]
    for folder in (library.parent, lists, *documents):
        folder.mkdir(parents=True)
    library.write_bytes(b"")
    for folder in documents:
        (folder / "copyright").write_text(folder.name)
    (lists / "odd-name:amd64.list").write_text("/.\n/usr/lib/x86_64-linux-gnu/libnuma.so.1.0.0\n")
    found = licences({"libnuma.so.1": library}, [tmp_path], the_facts())
    assert found["libnuma.so.1"] == (documents[0] / "copyright",)
    (lists / "odd-name:amd64.list").unlink()
    assert licences({"libnuma.so.1": library}, [tmp_path], the_facts())["libnuma.so.1"] == (
        documents[1] / "copyright",
    )


def test_rocms_own_documents_by_the_catalogs_name(tmp_path: Path) -> None:
    library = tmp_path / "lib" / "libMIOpen.so.1"
    document = tmp_path / "share/doc/miopen-hip/LICENSE.txt"
    for folder in (library.parent, document.parent):
        folder.mkdir(parents=True)
    library.write_bytes(b"")
    document.write_text("MIT")
    assert licences({"libMIOpen.so.1": library}, [tmp_path], the_facts())["libMIOpen.so.1"] == (document,)


def test_a_name_alone_is_no_licence_outside_of_the_given_roots(tmp_path: Path) -> None:
    library = tmp_path / "libc.so.6"
    library.write_bytes(b"")
    assert licences({"libc.so.6": library}, [], the_facts())["libc.so.6"] == ()
