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


def compare(old: Document, new: Document) -> SbomComparison:
    """What differs, from `old` to `new`. Order, serial numbers and times are no differences."""
    was, current = _by_key(old), _by_key(new)
    added: list[SbomComponent] = []
    removed: list[SbomComponent] = []
    changed: list[Changed] = []
    for key in sorted(was.keys() | current.keys()):
        dropped, come, pairs = _matched(was.get(key, []), current.get(key, []))
        for old_part, new_part in pairs:
            if changes := tuple(_changes(old_part, new_part)):
                changed.append(Changed(key=key, name=new_part.name, role=new_part.role, changes=changes))
        removed += dropped
        added += come
    return SbomComparison(
        added=tuple(added),
        removed=tuple(removed),
        changed=tuple(changed),
        edits_added=tuple(sorted(set(new.edits) - set(old.edits))),
        edits_removed=tuple(sorted(set(old.edits) - set(new.edits))),
        whole=tuple(_document_changes(old, new)),
    )


def _by_key(document: Document) -> Mapping[str, list[SbomComponent]]:
    by_key: dict[str, list[SbomComponent]] = defaultdict(list)
    for part in document.parts:
        by_key[part.key].append(part)
    return by_key


def _matched(
    old: list[SbomComponent], new: list[SbomComponent]
) -> tuple[list[SbomComponent], list[SbomComponent], list[tuple[SbomComponent, SbomComponent]]]:
    """Parts of one key: each with its equal, else with its version, else one with another while both last."""
    pairs: list[tuple[SbomComponent, SbomComponent]] = []
    for key_of in (_itself, _version):
        available: dict[object, deque[SbomComponent]] = defaultdict(deque)
        for new_part in new:
            available[key_of(new_part)].append(new_part)
        unmatched = []
        for old_part in old:
            if queue := available.get(key_of(old_part)):
                pairs.append((old_part, queue.popleft()))
            else:
                unmatched.append(old_part)
        old, new = unmatched, [new_part for queue in available.values() for new_part in queue]
    count = min(len(old), len(new))
    pairs += zip(old[:count], new[:count], strict=True)
    return old[count:], new[count:], pairs


def _itself(part: SbomComponent) -> object:
    return part


def _version(part: SbomComponent) -> object:
    return part.version


def _changes(old: SbomComponent, new: SbomComponent) -> Iterator[tuple[str, str, str]]:
    for field in ("version", "scope", "role"):
        old_value, new_value = getattr(old, field), getattr(new, field)
        if old_value != new_value:
            yield field, old_value, new_value
    if old.licenses != new.licenses:
        yield "licence", ", ".join(old.licenses), ", ".join(new.licenses)
    # hashes of kinds that one alone tells do not differ
    mine, theirs = dict(map(_hash, old.hashes)), dict(map(_hash, new.hashes))
    for kind in sorted(mine.keys() & theirs.keys()):
        if mine[kind] != theirs[kind]:
            yield "content", f"{kind} {mine[kind][:12]}", f"{kind} {theirs[kind][:12]}"


def _hash(text: str) -> tuple[str, str]:
    kind, _, digest = text.partition(":")
    return kind, digest


def _document_changes(old: Document, new: Document) -> Iterator[tuple[str, str, str]]:
    if (old.subject, old.version) != (new.subject, new.version):
        yield "of", f"{old.subject} {old.version}".strip(), f"{new.subject} {new.version}".strip()
    for name in sorted(old.properties.keys() | new.properties.keys()):
        old_value, new_value = old.properties.get(name, ""), new.properties.get(name, "")
        if old_value != new_value:
            yield name.removeprefix("rocwright:"), old_value, new_value
