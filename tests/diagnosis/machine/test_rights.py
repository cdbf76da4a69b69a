"""Who may use the devices, by number."""

from __future__ import annotations

from pathlib import Path

from tests.diagnosis.machine.machines import POLARIS, machine

from rocwheel_samples.tables import each
from rocwright.diagnosis.machine.model import Group, User
from rocwright.diagnosis.machine.rights import allowed, read_rights, read_user
from rocwright.diagnosis.machine.tree import Stat, Tree

GRACE = User(uid=1000, name="grace", groups=(Group(gid=1000), Group(gid=992)))


def test_the_user_is_known_by_number_and_name(tmp_path: Path) -> None:
    with Tree(machine(tmp_path, groups="1000 44 108")) as tree:
        user = read_user(tree)
    assert (user.uid, user.name) == (1000, "grace")
    assert user.groups == (Group(gid=1000, name="grace"), Group(gid=44, name="video"), Group(gid=108))


@each(
    ("uid", "gid", "mode", "may"),
    [
        (0, 992, 0o660, True),
        (0, 44, 0o660, False),
        (0, 44, 0o666, True),
        (0, 992, 0o606, False),
        (1000, 992, 0o060, False),
        (1000, 0, 0o600, True),
        (0, 992, 0o640, False),
    ],
)
def test_the_first_class_of_the_mode_that_fits_decides(uid: int, gid: int, mode: int, may: bool) -> None:
    assert allowed(Stat(mode=mode, kind=0, uid=uid, gid=gid), GRACE) is may


def test_root_may_use_anything() -> None:
    root = User(uid=0, name="root", groups=())
    assert allowed(Stat(mode=0, kind=0, uid=1, gid=1), root)


def test_devices_are_told_with_numeric_groups(tmp_path: Path) -> None:
    root = machine(tmp_path, POLARIS)
    (root / "dev/kfd").chmod(0o660)
    with Tree(root) as tree:
        rights = {one.path: one for one in read_rights(tree, GRACE)}
    assert list(rights) == ["/dev/kfd", "/dev/dri/renderD128"]
    found = rights["/dev/kfd"]
    assert found.mode == 0o660
    assert found.group is not None
    assert found.group.gid == (root / "dev/kfd").stat().st_gid


def test_a_device_that_is_not_there_is_told(tmp_path: Path) -> None:
    with Tree(machine(tmp_path, kfd=False)) as tree:
        [found] = read_rights(tree, GRACE)
    assert (found.path, found.there) == ("/dev/kfd", False)
