"""A report for a bug tells nothing of who and where."""

from __future__ import annotations

import json
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocbase.errors import InputError
from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog
from rocwright.diagnosis.facts import host_facts
from rocwright.diagnosis.machine.tree import Tree
from rocwright.doctor.bundle import clean, secrets, write_bundle
from rocwright.doctor.doctor import examine
from rocwright.doctor.this_machine import here
from rocwright.home import Home
from tests.diagnosis.machine.machines import STRIX_HALO, machine

PLANTED = {
    "etc/machine-id": "0123456789abcdef0123456789abcdef",
    "etc/hostname": "hoppers-tower.example.org",
    "sys/class/dmi/id/product_serial": "SN-77A31B",
    "sys/class/net/eth0/address": "52:54:00:ab:cd:ef",
}
ELSEWHERE = (
    "52:54:00:ab:cd:ef",
    "192.168.17.4",
    "fe80::5054:ff:feab:cdef",
    "2001:db8:1:2:3:4:5:6",
    "c0ffee00-1111-2222-3333-444455556666",
    "/home/grace",
    "/home/ada/wheels",
    "hoppers-tower",
    "grace",
    "1234567890abcdef",
    str(0x1234567890ABCDEF),
)


def texts(path: Path) -> list[str]:
    if path.name.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            return [archive.read(name).decode() for name in sorted(archive.namelist())]
    with tarfile.open(path) as packed:
        files = [
            packed.extractfile(member) for member in sorted(packed.getmembers(), key=lambda one: one.name)
        ]
        return [file.read().decode() for file in files if file is not None]


@pytest.mark.parametrize("name", ["doctor.tar.gz", "doctor.zip"])
def test_planted_secrets_are_gone_from_the_whole_report(tmp_path: Path, name: str) -> None:
    lines = ("index-url = https://grace:hunter2@192.168.17.4/simple", f"find-links = {' '.join(ELSEWHERE)}")
    pip = "\n".join(("[global]", *lines))
    root = machine(tmp_path / "root", STRIX_HALO, more=PLANTED | {"etc/pip.conf": pip})
    catalog, facts = builtin_catalog(), host_facts()
    with Tree(root) as tree:
        found = examine(here(tree, catalog, facts, Home(tmp_path)), catalog, facts, tuple(catalog.stacks))
        known = secrets(tree, found.machine.user.name, "/home/grace")
    data = found.model_dump(mode="json")
    assert "hunter2" in json.dumps(data)
    text = "\n".join([*PLANTED.values(), *ELSEWHERE])
    write_bundle(tmp_path / name, {"report.json": data, "report.txt": text}, known)
    told = texts(tmp_path / name)
    assert len(told) == 2
    for secret in (*PLANTED.values(), *ELSEWHERE, "hunter2", "example.org"):
        assert not any(secret in text for text in told), secret
    assert "gfx1151" in told[0]
    assert json.loads(told[0])["machine"]["gpus"][0]["address"] == STRIX_HALO.address


def test_what_the_environment_keeps_secret_is_taken_out_by_its_content(tmp_path: Path) -> None:
    environment = {
        "HF_TOKEN": "hf_abcdef",
        "MY_PASSWORD": "correct horse",
        "A_TOKEN": "yes",
        "CC": "clang-19",
    }
    with Tree(machine(tmp_path / "root", STRIX_HALO)) as tree:
        known = secrets(tree, "", "", environment)
    said = {"detail": "fetch hf_abcdef of correct horse: yes, clang-19"}
    write_bundle(tmp_path / "doctor.zip", {"failure.json": said}, known)
    [told] = texts(tmp_path / "doctor.zip")
    assert json.loads(told) == {"detail": "fetch [secret] of [secret]: yes, clang-19"}


def test_the_number_of_a_user_without_a_line_in_passwd_is_no_secret(tmp_path: Path) -> None:
    with Tree(machine(tmp_path / "root", STRIX_HALO)) as tree:
        known = secrets(tree, "4242", "/")
    user = {"uid": 4242, "name": "4242"}
    write_bundle(tmp_path / "doctor.zip", {"report.json": user}, known)
    [told] = texts(tmp_path / "doctor.zip")
    assert json.loads(told) == user


def test_what_is_no_secret_stays() -> None:
    text = "kernel 6.12.25, torch 2.6.0, 0000:c5:00.0, 1002:1586, ROCm 6.4.1, >=6.18.4, 23:59:59, root"
    assert clean(text, {}) == text


@given(st.text(alphabet="abcdefgh019", min_size=4), st.text())
def test_a_known_secret_never_survives_as_a_word(secret: str, around: str) -> None:
    assert f" {secret} " not in clean(f"{around} {secret} {around}", {secret: "[X]"})


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a valid name for a bundle"):
        write_bundle(tmp_path / "doctor.rar", {}, {})


@each(
    ("text", "told"),
    [
        ("http://10.0.0.1:8080/x", "http://[address]:8080/x"),
        ("at 10.0.0.1.", "at [address]."),
        ("proxy=10.1.2.3", "proxy=[address]"),
        ("fe80::1, [::1]:80", "[address], [[address]]:80"),
        ("2001:db8::1/64", "[address]/64"),
        ("AA-BB-CC-DD-EE-FF", "[mac]"),
        ("https://ada:pw@host/x", "https://[login]@host/x"),
        ("/Users/ada/x", "/home/[user]/x"),
        ("Authorization: Bearer ab.cd==", "Authorization: [secret]"),
        ("'authorization': 'abcd'", "'authorization': '[secret]'"),
        ("get http://h/x?token=abc&y=1", "get http://h/x?token=[secret]&y=1"),
        ("--api-key=abc HF_TOKEN='abc'", "--api-key=[secret] HF_TOKEN='[secret]'"),
        ("EOS token        = 2 '</s>'", "EOS token        = 2 '</s>'"),
        ("tokenizers 0.21, a token of the job server", "tokenizers 0.21, a token of the job server"),
        ("std::string a::Foo 12:30 0000:c5:00.0", "std::string a::Foo 12:30 0000:c5:00.0"),
    ],
)
def test_what_looks_like_an_address_or_a_name_is_taken_out(text: str, told: str) -> None:
    assert clean(text, {}) == told
