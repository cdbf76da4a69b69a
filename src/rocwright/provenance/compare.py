"""What differs between two SBOMs, as a person would say it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rocwright.provenance.documents import Document, SbomComponent


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A component that both have: what changed, each as (what, before, after)."""

    key: str
    name: str
    role: str
    changes: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SbomComparison:
    """Two SBOMs: components that one alone has, those that changed, edits that one alone has, and what else
    is told of the whole (base, targets, ROCm) that differs."""

    added: tuple[SbomComponent, ...]
    removed: tuple[SbomComponent, ...]
    changed: tuple[Changed, ...]
    edits_added: tuple[tuple[str, str], ...] = ()
    edits_removed: tuple[tuple[str, str], ...] = ()
    whole: tuple[tuple[str, str, str], ...] = ()

    @property
    def same(self) -> bool:
        """Whether both tell of the same components."""
        return not (
            self.added or self.removed or self.changed or self.edits_added or self.edits_removed or self.whole
        )


def compare(before: Document, after: Document) -> SbomComparison:
    """What differs, from `before` to `after`. Order, serial numbers and times are no differences."""
    was, now = _by_key(before), _by_key(after)
    added: list[SbomComponent] = []
    removed: list[SbomComponent] = []
    changed: list[Changed] = []
    for key in sorted(was.keys() | now.keys()):
        gone, come, same = _matched(was.get(key, []), now.get(key, []))
        for one, two in same:
            if found := tuple(_changes(one, two)):
                changed.append(Changed(key=key, name=two.name, role=two.role, changes=found))
        removed += gone
        added += come
    return SbomComparison(
        added=tuple(added),
        removed=tuple(removed),
        changed=tuple(changed),
        edits_added=tuple(sorted(set(after.edits) - set(before.edits))),
        edits_removed=tuple(sorted(set(before.edits) - set(after.edits))),
        whole=tuple(_whole(before, after)),
    )


def _by_key(document: Document) -> Mapping[str, list[SbomComponent]]:
    found: dict[str, list[SbomComponent]] = defaultdict(list)
    for one in document.parts:
        found[one.key].append(one)
    return found


def _matched(
    before: list[SbomComponent], after: list[SbomComponent]
) -> tuple[list[SbomComponent], list[SbomComponent], list[tuple[SbomComponent, SbomComponent]]]:
    """Parts of one key: each with its equal, else with its version, else one with another while both last."""
    pairs: list[tuple[SbomComponent, SbomComponent]] = []
    for same in (_itself, _version):
        there: dict[object, deque[SbomComponent]] = defaultdict(deque)
        for two in after:
            there[same(two)].append(two)
        rest = []
        for one in before:
            if found := there.get(same(one)):
                pairs.append((one, found.popleft()))
            else:
                rest.append(one)
        before, after = rest, [two for found in there.values() for two in found]
    count = min(len(before), len(after))
    pairs += zip(before[:count], after[:count], strict=True)
    return before[count:], after[count:], pairs


def _itself(part: SbomComponent) -> object:
    return part


def _version(part: SbomComponent) -> object:
    return part.version


def _changes(before: SbomComponent, after: SbomComponent) -> Iterator[tuple[str, str, str]]:
    for what in ("version", "scope", "role"):
        one, two = getattr(before, what), getattr(after, what)
        if one != two:
            yield what, one, two
    if before.licenses != after.licenses:
        yield "licence", ", ".join(before.licenses), ", ".join(after.licenses)
    # hashes of kinds that one alone tells do not differ
    mine, theirs = dict(map(_hash, before.hashes)), dict(map(_hash, after.hashes))
    for kind in sorted(mine.keys() & theirs.keys()):
        if mine[kind] != theirs[kind]:
            yield "content", f"{kind} {mine[kind][:12]}", f"{kind} {theirs[kind][:12]}"


def _hash(text: str) -> tuple[str, str]:
    kind, _, digest = text.partition(":")
    return kind, digest


def _whole(before: Document, after: Document) -> Iterator[tuple[str, str, str]]:
    if (before.subject, before.version) != (after.subject, after.version):
        yield "of", f"{before.subject} {before.version}".strip(), f"{after.subject} {after.version}".strip()
    for name in sorted(before.properties.keys() | after.properties.keys()):
        one, two = before.properties.get(name, ""), after.properties.get(name, "")
        if one != two:
            yield name.removeprefix("rocwright:"), one, two
