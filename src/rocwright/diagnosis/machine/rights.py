"""Who asks, and which device files of the GPUs they may use."""

from __future__ import annotations

from rocwright.diagnosis.machine.model import Group, Right, User
from rocwright.diagnosis.machine.tree import Stat, Tree, is_number

COMPUTE = "/dev/kfd"
GRAPHICS = "/dev/dri"


def read_user(tree: Tree) -> User:
    """The user and groups of this process."""
    words = {
        name: value.split()
        for name, _, value in (
            line.partition(":") for line in (tree.text("/proc/self/status") or "").splitlines()
        )
    }
    uid = _first(words.get("Uid", []), 1)
    gids = dict.fromkeys(
        [_first(words.get("Gid", []), 1), *map(int, filter(is_number, words.get("Groups", [])))]
    )
    names, groups = _names(tree, "/etc/passwd"), _names(tree, "/etc/group")
    return User(
        uid=uid,
        name=names.get(uid, str(uid)),
        groups=tuple(Group(gid=gid, name=groups.get(gid, "")) for gid in gids),
    )


def _first(words: list[str], index: int) -> int:
    return int(words[index]) if len(words) > index and is_number(words[index]) else 65534


def _names(tree: Tree, path: str) -> dict[int, str]:
    """Name by number, of passwd or group."""
    names: dict[int, str] = {}
    for line in (tree.text(path) or "").splitlines():
        fields = line.split(":")
        if len(fields) > 2 and is_number(fields[2]):
            names.setdefault(int(fields[2]), fields[0])
    return names


def read_rights(tree: Tree, user: User) -> tuple[Right, ...]:
    """The compute device and each graphics node: the kernel's own answer, in a tree that of the mode."""
    groups = _names(tree, "/etc/group")
    nodes = [f"{GRAPHICS}/{name}" for name in tree.names(GRAPHICS) if name.startswith(("renderD", "card"))]
    rights = []
    for path in (COMPUTE, *nodes):
        stat = tree.stat(path)
        if stat is None:
            rights.append(Right(path=path, there=False))
            continue
        rights.append(
            Right(
                path=path,
                there=True,
                uid=stat.uid,
                group=Group(gid=stat.gid, name=groups.get(stat.gid, "")),
                mode=stat.mode,
                may=tree.may_use(path) if tree.live else allowed(stat, user),
            )
        )
    return tuple(rights)


def allowed(stat: Stat, user: User) -> bool:
    """Whether mode bits let a user read and write: the first class that fits decides, as in the kernel."""
    if user.uid == 0:
        return True
    if user.uid == stat.uid:
        return stat.mode >> 6 & 6 == 6
    if stat.gid in {group.gid for group in user.groups}:
        return stat.mode >> 3 & 6 == 6
    return stat.mode & 6 == 6


def has_sub_ids(tree: Tree, user: User) -> bool:
    """Whether the user has ranges of subordinate users and groups (subuid(5), subgid(5)); root needs none."""
    texts = [tree.text(f"/etc/{name}") or "" for name in ("subuid", "subgid")]
    owners = (f"{user.name}:", f"{user.uid}:")
    return user.uid == 0 or all(any(line.startswith(owners) for line in text.splitlines()) for text in texts)
