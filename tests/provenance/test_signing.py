"""A statement is signed once the checks of its artifact's recipe have passed, and by nothing else."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

import pytest
from samples.project import COMPONENTS, make_sources, open_project, put_roots

from rocbase.errors import CheckError, InputError
from rocwheel_samples.trees import write_tree
from rocwheel_samples.wheel_making import zip_of
from rocwright.catalog.model import Check
from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import PlainProgress
from rocwright.flow import build
from rocwright.home import Home
from rocwright.provenance.check import statements_of, verify
from rocwright.provenance.checks.passed import Passed
from rocwright.provenance.checks.static import CheckNote
from rocwright.provenance.sidecars import attest
from rocwright.store.signing.keys import NewKey, make_key, public_key
from rocwright.verify import run
from tests.provenance.workplace import BETA, FILES, Workplace, make_workplace

ALPHA = "alpha-1.0.tar.gz"
SCRIPT = 'import sys\nsys.exit("it does not do what it should" if {wrong} else 0)\n'
RUNS = {"name": "runs", "kind": "script", "script": "checks/a/runs.py"}


def recorded(files: Mapping[str, bytes]) -> bytes:
    """A wheel whose RECORD has all its files."""
    lines = [
        f"{name},sha256={urlsafe_b64encode(sha256(data).digest()).decode().rstrip('=')},{len(data)}\n"
        for name, data in files.items()
    ]
    record = "beta-1.0.dist-info/RECORD"
    return zip_of({**files, record: "".join([*lines, f"{record},,\n"]).encode()})


PURE = {name: data for name, data in FILES.items() if not name.endswith(".so")}
CHECKED: dict[str, dict[str, object]] = {
    "alpha": COMPONENTS["alpha"] | {"check": [RUNS]},
    "beta": COMPONENTS["beta"] | {"check": [{"name": "wheel", "kind": "wheel"}]},
}  # fmt: skip


def place(home: Home, folder: Path, wheel: bytes = recorded(PURE)) -> Workplace:
    write_tree(folder / "catalog", {"checks/a/runs.py": SCRIPT.format(wrong=False)})
    return make_workplace(home, folder, wheel, CHECKED)


@pytest.fixture
def key() -> NewKey:
    """The user's key."""
    return make_key()


@pytest.fixture
def work(home: Home, tmp_path: Path) -> Workplace:
    """A project of a component with a check that runs a program, and one with a check that only reads."""
    return place(home, tmp_path)


def passed(work: Workplace) -> tuple[Passed, Check]:
    from rocwright.project import built_outputs

    found = Passed(
        home=work.project.home,
        store=work.project.store,
        catalog=work.project.catalog,
        lock=work.lock,
        outputs=built_outputs(work.project, work.plan),
    )
    return found, work.project.catalog.component("alpha").check[0]


def note(work: Workplace, *, ok: bool) -> None:
    """Keep how alpha's check went."""
    kept, check = passed(work)
    kept.note("alpha", check, [CheckNote("runs", ok, "as it is")])


def test_what_passed_all_that_can_be_read_is_signed_at_the_build(work: Workplace, key: NewKey) -> None:
    assert work.lay_out()[BETA].keyid == key.keyid


def test_what_has_checks_left_to_run_is_laid_out_unsigned(work: Workplace, key: NewKey) -> None:
    laid = work.lay_out()
    assert (laid[ALPHA].keyid, laid[ALPHA].lacking) == ("", ("runs",))
    assert laid["alpha-tiny.oci.tar"].keyid == ""
    with pytest.raises(CheckError, match="not signed: checks have not passed: runs") as caught:
        verify(laid[ALPHA].path, statements_of(laid[ALPHA].path), [public_key(key.public)])
    assert "rocwright verify" in caught.value.next_step


def test_it_is_signed_once_they_have_passed(work: Workplace, key: NewKey) -> None:
    path = work.lay_out()[ALPHA].path
    inode = path.stat().st_ino
    note(work, ok=True)
    laid = work.lay_out()
    assert {one.keyid for one in laid.values()} == {key.keyid}
    assert verify(path, statements_of(path), [public_key(key.public)]).keyid == key.keyid
    assert path.stat().st_ino == inode, "only its statement is written anew"


def test_a_check_that_fails_later_takes_the_signature_back(work: Workplace, key: NewKey) -> None:
    note(work, ok=True)
    assert work.lay_out()[ALPHA].keyid == key.keyid
    note(work, ok=False)
    assert work.lay_out()[ALPHA].keyid == ""


def test_a_wheel_that_is_not_what_it_says_is_not_signed_and_that_is_said(
    home: Home, tmp_path: Path, key: NewKey
) -> None:
    files = PURE | {"beta-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nTag: cp311-cp311-win_amd64\n"}
    work = place(home, tmp_path, recorded(files))
    said: list[str] = []
    laid = work.lay_out(said)
    assert (laid[BETA].keyid, laid[BETA].lacking) == ("", ("wheel",))
    assert [line for line in said if line.startswith("check beta: wheel: ")]


@pytest.mark.parametrize("damage", [b"", b"{}", b'"passed":true', None])
def test_a_passed_check_that_is_damaged_is_none(
    work: Workplace, key: NewKey, home: Home, damage: bytes | None
) -> None:
    note(work, ok=False)
    (file,) = (home.path / "checks").iterdir()
    file.write_bytes(file.read_bytes().replace(b"false", b"true") if damage is None else damage)
    assert work.lay_out()[ALPHA].keyid == ""


def test_what_passed_is_of_these_bytes_and_this_check_alone(
    work: Workplace, key: NewKey, tmp_path: Path
) -> None:
    note(work, ok=True)
    write_tree(tmp_path / "catalog", {"checks/a/runs.py": SCRIPT.format(wrong="other")})
    assert work.lay_out()[ALPHA].keyid == ""


# attest


def test_attest_signs_nothing_whose_checks_have_not_passed(work: Workplace, key: NewKey, home: Home) -> None:
    laid = work.lay_out()
    with pytest.raises(CheckError, match="checks have not passed") as caught:
        attest(laid[ALPHA].path, home, key.private)
    assert "runs" in caught.value.cause
    note(work, ok=True)
    assert attest(laid[ALPHA].path, home, key.private)[1] == key.keyid


@pytest.mark.parametrize("file", ["statement", "statement_mark"])
def test_attest_signs_no_statement_that_was_damaged(
    work: Workplace, key: NewKey, home: Home, file: str
) -> None:
    one = work.lay_out()[BETA]
    path: Path = getattr(home, file)(one.sha256)
    data = path.read_bytes()
    at = data.index(b'"', 20) + 1
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(InputError, match="is damaged"):
        attest(one.path, home, key.private)


def test_an_output_that_was_exchanged_in_a_record_is_not_signed(
    work: Workplace, key: NewKey, tmp_path: Path
) -> None:
    store, step = work.project.store, work.step("beta")
    (tmp_path / "bad").write_bytes(recorded(PURE | {"beta/__init__.py": b"answer = 'bad'\n"}))
    digest, size = store.put_file(tmp_path / "bad")
    path = work.project.home.store / "records" / step.key[:2] / f"{step.key}.json"
    said = json.loads(path.read_text())
    said["outputs"][0] |= {"sha256": digest, "size": size}
    path.write_text(json.dumps(said))
    with pytest.raises(InputError, match="beta is not built"):
        work.lay_out()
    assert not (work.project.output / "tiny" / BETA).exists()


# the whole way


Built = Callable[[bool], tuple[str, str]]


@pytest.fixture
def built(home: Home, engine: str, python_root: Path, tmp_path: Path, key: NewKey) -> Built:
    """Build and verify a component whose check is right or wrong; who signed it before and after."""

    def make(wrong: bool) -> tuple[str, str]:
        recipe = {"alpha": CHECKED["alpha"] | {"system": {"build": ["shell"], "check": ["shell"]}}}
        recipe["alpha"].pop("image")
        make_sources(tmp_path / "sources", recipe)
        write_tree(tmp_path / "sources/catalog", {"checks/a/runs.py": SCRIPT.format(wrong=wrong)})
        project = open_project(tmp_path / "sources", home.path)
        put_roots(project, python_root)
        first = build(project, project.locked, BuildOptions(engine=engine), PlainProgress())
        assert first.failures == ()
        run.verify(project, project.locked, engine, print)
        again = build(project, project.locked, BuildOptions(engine=engine), PlainProgress())
        return first.artifacts[0].keyid, again.artifacts[0].keyid

    return make


def test_verify_signs_what_passes(built: Built, key: NewKey) -> None:
    assert built(False) == ("", key.keyid)


def test_verify_signs_nothing_that_fails(built: Built) -> None:
    assert built(True) == ("", "")
