"""What a lock has earned, by what is on record of it."""

from __future__ import annotations

from datetime import UTC, datetime

from rocwheel_samples.tables import each
from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import PlainProgress
from rocwright.follow.cycle.channels import LockEvidence, channels, earned, missing
from rocwright.follow.cycle.run import CycleConfig
from rocwright.follow.watch.bump import LockCandidate
from rocwright.plan.resolve.model import Lock
from rocwright.plan.resolve.settings import Channel
from rocwright.project import Project
from rocwright.records.model import ANEW, Figure, Finding, Promotion

NOW = datetime(2026, 1, 10, tzinfo=UTC)
OK = Finding(component="a", check="operators", name="sums are right", ok=True, device="cpu")
EMULATED = OK.model_copy(update={"device": "emulated gfx1151 (rocjitsu 0.2.0)"})
WRONG, ABSENT = OK.model_copy(update={"ok": False}), OK.model_copy(update={"absent": True})


def promotion(channel: str, lock: str, day: str) -> Promotion:
    at = f"{day}T00:00:00Z"
    return Promotion(stack="s", gpu="g", base="b", channel=channel, run="r", lock=lock, at=at)


def states(shown: LockEvidence, *held: Promotion, lock: str = "new") -> dict[str, str]:
    return {channel.name: why for channel, why in earned(channels(), shown, held, lock, NOW)}


def test_each_channel_asks_for_more() -> None:
    assert list(states(LockEvidence(said=""))) == ["nightly", "candidate", "known-good"]
    built = states(LockEvidence(said="built"))
    assert built["nightly"] == ""
    assert "the channel needs 'checked without a GPU'" in built["candidate"]
    checked = states(LockEvidence(said="checked without a GPU", findings=(OK,)))
    assert checked["candidate"] == ""
    assert "the channel needs 'ran in software'" in checked["known-good"]


def test_a_lock_stands_for_its_days() -> None:
    ran = LockEvidence(said="ran on a GPU", findings=(OK,))
    assert states(ran)["known-good"] == "it must stay in that channel for 1 d: 24 h left"
    held = (
        promotion("nightly", "new", "2026-01-01"),
        promotion("candidate", "new", "2026-01-08"),
    )
    assert states(ran, *held) == {"known-good": ""}
    other = promotion("candidate", "old", "2026-01-08")
    assert states(ran, other)["known-good"] == "it must stay in that channel for 1 d: 24 h left"


def test_a_clock_that_was_set_back_promotes_nothing() -> None:
    ran = LockEvidence(said="ran on a GPU", findings=(OK,))
    held = (
        promotion("candidate", "new", "2027-01-01"),
        promotion("nightly", "new", "2026-01-01"),
    )
    assert "clock was set back" in states(ran, *held)["known-good"]


@each(
    ("channel", "finding", "says"),
    [
        (Channel(name="c", said="built"), WRONG, "not right: sums"),
        (Channel(name="c", said="built", checks=("server",)), OK, "did not run: server"),
        (Channel(name="c", said="built", checks=("operators",)), ABSENT, "did not run"),
        (Channel(name="c", said="built", device="gfx1151"), OK, "ran on cpu; the channel needs gfx1151"),
        (Channel(name="c", said="built", device="^cpu", checks=("operators",)), OK, ""),
        (Channel(name="c", said="built", device="gfx1151"), EMULATED, "ran on emulated gfx1151"),
        (Channel(name="c", said="built", device="^emulated gfx1151"), EMULATED, ""),
    ],
)  # fmt: skip
def test_checks_and_devices_that_are_asked_for(channel: Channel, finding: Finding, says: str) -> None:
    shown = LockEvidence(said="ran in software", findings=(finding,))
    lack = missing(channel, shown, None, False, NOW)
    assert lack.why.startswith(says) if lack and says else lack is None and not says


def test_a_projects_own_channel_stands_for_the_catalogs() -> None:
    own = Channel(name="known-good", said="checked without a GPU")
    assert [one.name for one in channels([own])] == ["nightly", "candidate", "known-good"]
    assert channels([own])[-1] == own
    assert channels([Channel(name="lab", said="built")])[-1].name == "lab"


@each(("checks", "resume"), [((), True), (("operators",), True), ((ANEW,), False)])
def test_a_cycle_starts_its_steps_clean_where_a_channel_asks_that_all_was_compiled_anew(
    checks: tuple[str, ...], resume: bool
) -> None:
    def follow(project: Project, lock: Lock) -> LockCandidate:
        raise AssertionError

    own = [Channel(name="known-good", said="built", checks=checks)]
    config = CycleConfig(
        follow=follow, channels=channels(own), options=BuildOptions(), progress=PlainProgress()
    )
    assert config.options_of_builds.resume is resume


SPEED = Channel(name="fast", said="built", slower=5)


def speed(*values: float, device: str = "AMD Radeon 780M Graphics", name: str = "generation") -> Figure:
    return Figure(name=name, unit="tokens/s", better="higher", values=values, device=device)


OLD = speed(100, 101, 99, 100, 100)


@each(
    ("measured", "holds", "says", "bring"),
    [
        ((), (), "not measured with at least 5 runs", "bench"),
        ((speed(100, 100, 100, 100),), (), "not measured with at least 5 runs", "bench"),
        ((OLD,), (), "", ""),
        ((OLD,), (OLD,), "", ""),
        ((speed(90, 91, 89, 90, 90),), (OLD,), "slower than the lock that the channel holds: gen", "faster"),
        ((speed(97, 96, 98, 97, 97),), (OLD,), "", ""),
        ((speed(60, 90, 110, 70, 100),), (OLD,), "", ""),
        ((speed(90, 91, 89, 90, 90, device="cpu"),), (OLD,), "not measured where the lock before", "bench"),
        ((speed(130, 131, 129, 130, 130),), (OLD,), "", ""),
    ],
)  # fmt: skip
def test_a_slower_lock_is_held_back_where_a_channel_goes_by_speed(
    measured: tuple[Figure, ...], holds: tuple[Figure, ...], says: str, bring: str
) -> None:
    shown = LockEvidence(said="built", measured=measured)
    lack = missing(SPEED, shown, None, False, NOW, holds)
    assert (lack.why[: len(says)], lack.bring) == (says, bring) if lack else not says
    assert missing(Channel(name="any", said="built"), shown, None, False, NOW, holds) is None


def test_a_lock_is_compared_with_the_one_that_the_channel_holds() -> None:
    held = (promotion("fast", "old", "2026-01-01"),)
    shown = LockEvidence(said="built", measured=(speed(50, 50, 51, 50, 50),))
    speeds = {"old": (OLD,)}
    ((_, why),) = earned([SPEED], shown, held, "new", NOW, measured=lambda lock: speeds[lock])
    assert why.startswith("slower than the lock that the channel holds")
