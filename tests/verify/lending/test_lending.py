"""A verification that one machine wants and another runs: real S3 server, keys, sandboxes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from samples.project import TinyProject, make_sources, open_project, put_roots
from tests.farm.machines import make_homes
from tests.forked import Forking
from tests.store.servers import reach, s3
from tests.store.sharers import Machine as Owner
from tests.verify.stored import put_alpha

from rocbase.errors import InputError
from rocwheel_samples.trees import write_tree
from rocwright.diagnosis.machine.model import Driver, Gpu, Machine, Topology, User
from rocwright.home import Home
from rocwright.plan.resolve.files import lock_text, write_lock, write_request
from rocwright.records.opening import read_records
from rocwright.store.blobs import blob_name
from rocwright.store.bucket import Bucket
from rocwright.store.leases import step_lease
from rocwright.store.local import LocalStore
from rocwright.store.model import records
from rocwright.store.shared import word_name
from rocwright.store.sharing import WorkingStore
from rocwright.store.signed import LARGEST
from rocwright.verify.lending.ask import LentEvidence, answers, put, verify_wish
from rocwright.verify.lending.lend import Lender, evidence_line
from rocwright.verify.lending.model import VerifyWish

SCRIPT = """import json, os
from pathlib import Path
say = lambda name, ok, detail="": print(
    "ROCWRIGHT-CHECK " + json.dumps({"name": name, "ok": ok, "detail": detail, "device": "cpu"})
)
say("artifact", sorted(os.listdir("/artifact")) == ["file"], str(os.listdir("/artifact")))
say("secrets", not [one for one in os.environ if "AWS" in one])
say("home", not Path(os.environ.get("ROCWRIGHT_HOME", "/nothing")).exists())
devices = [line.partition(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]]
say("network", devices == ["lo"], str(devices))
"""
RECIPE = {
    "alpha": {
        "kind": "archive",
        "run": ["true"],
        "output": [{"name": "archive", "pattern": "alpha-*.tar.gz"}],
        "system": {"build": ["shell"], "check": ["shell"]},
        "check": [{"name": "looks", "kind": "script", "script": "checks/looks.py"}],
    }
}
CARD = Gpu(
    target="gfx1151",
    pci_id="1002:1586",
    told_by=("kfd",),
    driver="amdgpu",
    firmware={"mes": 0x80, "smc": 0x6441},
)


def machine(*gpus: Gpu) -> Machine:
    return Machine(
        gpus=gpus,
        topology=Topology(there=bool(gpus)),
        user=User(uid=0, name="root", groups=()),
        rights=(),
        driver=Driver(kernel="6.18.0", module=True),
        memory=None,
    )


@dataclass
class Scene:
    """The lab with what it has built, the owner of a card, and the bucket between them."""

    bucket: Bucket
    lab: Owner
    owner: Owner
    project: TinyProject
    said: list[str]

    def store(self, of: Owner, *trusted: Owner) -> WorkingStore:
        return WorkingStore(
            of.store, of.behind(self.bucket, *(one.key for one in (of, *trusted))).shared, of.signer, "lab"
        )

    def ask(self, device: str = "") -> VerifyWish:
        what = verify_wish(self.asking, self.project.locked, device)
        put(self.asking, self.project.locked, what)
        return what

    @property
    def asking(self) -> TinyProject:
        return replace(self.project, at=self.store(self.lab, self.owner))

    def lender(self, *gpus: Gpu, trusts: bool = True) -> Lender:
        store = self.store(self.owner, *((self.lab,) if trusts else ()))
        return Lender(store, Home(self.owner.path), self.project.catalog, machine(*gpus), self.said.append)

    def taken(self, what: VerifyWish) -> list[LentEvidence]:
        """What of it counts at the lab."""
        return answers(self.asking, self.project.locked, what, print)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3() as url:
        yield url


@pytest.fixture
def scene(
    server: str, engine: str, python_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Scene:
    reach(monkeypatch, server)
    sources = tmp_path / "sources"
    make_sources(sources, RECIPE)
    write_tree(sources / "catalog", {"checks/looks.py": SCRIPT})
    project = open_project(sources, tmp_path / "lab")
    put_roots(project, python_root)
    put_alpha(project, tmp_path)
    lab, owner = (Owner(tmp_path / name, name) for name in ("lab", "owner"))
    return Scene(Bucket(f"s3://lab/{tmp_path.name}"), lab, owner, project, [])


def test_what_is_wanted_of_a_card_runs_on_a_machine_that_has_one_and_its_evidence_goes_on_record(
    scene: Scene,
) -> None:
    what = scene.ask("gfx1151")
    assert scene.taken(what) == []
    lender = scene.lender(CARD)
    [seen] = lender.look()
    assert (seen.what, seen.by, seen.why_not) == ("tiny for gfx1151 on debian:sid", "lab", "")
    evidence = lender.run(seen)
    assert evidence is not None
    assert {one.name: one.ok for one in evidence.findings} == dict.fromkeys(
        ("artifact", "secrets", "home", "network"), True
    )
    [answer] = scene.taken(what)
    assert (answer.by, answer.keyid, answer.ok, answer.new) == ("owner", scene.owner.key.keyid, True, True)
    with read_records(scene.project.home) as records:
        run = records.run(evidence.run)
        assert run is not None
        assert (run.command, run.outcome, run.origin) == ("verify", "verified", "lent by owner")
        found = {one.name: one for one in records.findings(run=run.id)}
    assert found["network"].ok
    where = found["on a machine of owner"].detail
    assert where == (
        f"key {answer.keyid[:12]}: gfx1151 1002:1586, kernel 6.18.0, amdgpu, firmware mes 0x80, smc 0x6441"
    )
    # it is on record once, and not run again
    assert [one.new for one in scene.taken(what)] == [False]
    assert [one.why_not for one in lender.look()] == ["owner has verified it"]


def test_a_machine_without_the_card_does_not_run_it_and_says_why(scene: Scene) -> None:
    scene.ask("gfx1151")
    assert [one.why_not for one in scene.lender().look()] == ["this machine has no gfx1151"]


def test_a_stranger_can_want_nothing(scene: Scene) -> None:
    scene.ask()
    assert scene.lender(trusts=False).look() == []


def test_evidence_of_a_stranger_does_not_count(scene: Scene) -> None:
    what = scene.ask()
    lender = scene.lender()
    lender.run(lender.look()[0])
    lonely = replace(scene.project, at=scene.store(scene.lab))
    assert answers(lonely, scene.project.locked, what, print) == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"wanted": "0" * 64}, "it is of something else"),
        ({"card": {"target": "gfx803"}}, "it ran on gfx803, not on a processor"),
        ({"findings": [{"component": "beta", "check": "c", "name": "n", "ok": True}]}, "of another artifact"),
        (
            {"findings": [{"component": "alpha", "check": "c", "name": "n", "ok": True, "sha256": "0"}]},
            "of another artifact",
        ),
        ({"run": "../../x"}, "String should match pattern"),
        ({"run": ".."}, "String should match pattern"),
    ],
)
def test_evidence_that_does_not_fit_is_refused(scene: Scene, change: dict[str, object], why: str) -> None:
    what = scene.ask()
    lender = scene.lender()
    evidence = lender.run(lender.look()[0])
    assert evidence is not None
    forged = json.dumps(evidence.model_dump(mode="json") | change)
    lender.store.say_word("evidence", what.id, forged)
    assert scene.taken(what) == []
    assert any(why in one for one in scene.lab.said), scene.lab.said


def test_older_evidence_put_back_over_newer_does_not_count(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    what = scene.ask()
    lender = scene.lender()
    evidence = lender.run(lender.look()[0])
    assert evidence is not None
    place = word_name("evidence", what.id, scene.owner.key.keyid)
    first = scene.bucket.get(place, LARGEST)
    assert first is not None
    newer = evidence.model_copy(update={"run": "newer", "started": "2999-01-01T00:00:00Z"})
    lender.store.say_word("evidence", what.id, newer.model_dump_json())
    assert [one.evidence.run for one in scene.taken(what)] == ["newer"]
    scene.bucket.remove(place)
    assert scene.bucket.add(place, first)
    assert scene.taken(what) == []
    assert "by owner was refused: it gave newer evidence before" in capsys.readouterr().out


def test_what_is_wanted_of_another_version_is_not_run(scene: Scene) -> None:
    what = scene.ask().model_copy(update={"rocwright": "9.9"})
    scene.store(scene.lab).say_word("wanted", what.id, what.model_dump_json())
    assert any("for rocwright 9.9" in one.why_not for one in scene.lender().look())


def test_a_wish_under_the_name_of_another_is_told_and_not_run(scene: Scene) -> None:
    what = scene.ask()
    other = what.model_copy(update={"device": "gfx1151"})
    scene.store(scene.lab).say_word("wanted", what.id, other.model_dump_json())
    assert scene.lender(CARD).look() == []
    assert any("lies under another name" in one for one in scene.owner.said)


def test_a_lock_that_does_not_fit_the_recipes_here_is_not_run(scene: Scene) -> None:
    lock = scene.project.locked.model_copy(update={"components": ()})
    what = VerifyWish(lock=lock_text(lock), artifacts={})
    scene.store(scene.lab).say_word("wanted", what.id, what.model_dump_json())
    [seen] = scene.lender().look()
    assert seen.why_not and "could not" not in seen.why_not


def test_bytes_that_are_not_those_that_were_signed_are_not_run(scene: Scene) -> None:
    what = scene.ask()
    [sha256] = what.artifacts.values()
    scene.bucket.replace(blob_name(sha256), b"something else")
    lender = scene.lender()
    [seen] = lender.look()
    with pytest.raises(InputError, match="alpha is not in the store"):
        lender.run(seen)


def test_other_bytes_than_those_that_are_wanted_are_not_run(scene: Scene) -> None:
    what = scene.ask().model_copy(update={"artifacts": {"alpha": "0" * 64}})
    scene.store(scene.lab).say_word("wanted", what.id, what.model_dump_json())
    lender = scene.lender()
    [seen] = [one for one in lender.look() if one.wanted.id == what.id]
    with pytest.raises(InputError, match="not what is wanted"):
        lender.run(seen)


def test_what_another_machine_runs_is_left_to_it(scene: Scene) -> None:
    what = scene.ask()
    lender = scene.lender()
    with step_lease(scene.bucket, what.id):
        assert lender.run(lender.look()[0]) is None
    assert scene.bucket.get(word_name("evidence", what.id, scene.owner.key.keyid), 2**20) is None


def test_a_failed_check_is_evidence_too(scene: Scene) -> None:
    script = (
        'import json\nprint("ROCWRIGHT-CHECK " + json.dumps({"name": "sum", "ok": False, "detail": "2"}))\n'
    )
    (scene.project.catalog.folders[0] / "checks/looks.py").write_text(script)
    what = scene.ask()
    lender = scene.lender()
    lender.run(lender.look()[0])
    [answer] = scene.taken(what)
    assert not answer.ok
    assert evidence_line(answer.evidence) == "1 FAILED: sum, on no device"


def test_a_project_that_is_not_in_a_bucket_cannot_be_lent_to(scene: Scene) -> None:
    with pytest.raises(InputError, match="no other machine sees the store"):
        put(scene.project, scene.project.locked, verify_wish(scene.project, scene.project.locked, ""))


def test_what_was_not_verified_here_first_has_no_root_to_check_in(scene: Scene) -> None:
    what = verify_wish(scene.project, scene.project.locked, "")
    store = LocalStore(scene.project.home.store)
    for record in records(store):
        if record.step == "root/check":
            store.local.remove("record", record.key)
    with pytest.raises(InputError, match="root/check is not built"):
        put(scene.asking, scene.project.locked, what)


def test_the_two_commands_lend_a_processor(scene: Scene, tmp_path: Path, forking: Forking) -> None:
    homes = make_homes(tmp_path / "homes")
    here = {**os.environ, "ROCWRIGHT_CATALOG": str(scene.project.catalog.folders[0])}
    folder = tmp_path / "project"
    write_request(folder / "rocwright.toml", scene.project.request)
    write_lock(folder / "rocwright.lock", scene.project.locked)
    url = f"{scene.bucket.url}-commands"
    (homes["asks"] / "config.toml").write_text(f'store = "{url}"\n')
    (scene.project.home.store).rename(homes["asks"] / "store")

    def say(who: str, *words: str) -> str:
        done = forking.run(words, folder, here | {"ROCWRIGHT_HOME": str(homes[who])})
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    assert "nobody has verified it yet" in say("asks", "farm", "verify", "--cpu")
    worker = ("farm", "worker", "--only", "verify", "--store", url)
    assert "it would run" in say("one", *worker, "--dry-run")
    said = say("one", *worker, "--once")
    assert "tiny for gfx1151 on debian:sid, wanted by asks" in said
    assert "4 ok, on cpu" in said
    [seen] = json.loads(say("two", *worker, "--json"))
    assert (seen["runs"], seen["why_not"]) == (False, "one has verified it")
    said = say("asks", "farm", "verify", "--cpu", "--wait", "1")
    assert "a processor: 4 ok, on cpu" in said
    run = said.rsplit("rocwright history ", 1)[1].split()[0]
    assert "on a machine of one" in say("asks", "history", run)
