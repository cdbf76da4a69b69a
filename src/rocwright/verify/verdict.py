"""What can be expected of a GPU: by the evidence on record, and by what the catalog says that it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from rocbase.model import Frozen
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Stack
from rocwright.catalog.target import Target
from rocwright.home import Home
from rocwright.plan.resolve.elsewhere import resolves
from rocwright.plan.resolve.evidence import Evidence, shipped_evidence
from rocwright.plan.resolve.model import Request
from rocwright.records.model import SAID
from rocwright.verify.standing import local_evidence

# What alone is called: it works.
RAN: Literal["ran on a GPU"] = "ran on a GPU"


class Proof(Frozen):
    """The most that was seen of a stack on a base for a GPU; `said` is empty where a row stands unproven."""

    stack: str
    base: str
    said: str = ""
    when: str = ""
    device: str = ""

    def __str__(self) -> str:
        return f"{self.stack} on {self.base}"


class Verdict(Frozen):
    """What can be expected of a target: `works` holds where something ran on it; the proofs of its rows, the
    most first; what it `needs`, and the stacks that do `instead` where nothing ran. With a `stack` it is of
    that one alone; `anywhere` is the most that was seen of one that runs on any GPU."""

    target: str
    stack: str = ""
    works: bool
    proofs: tuple[Proof, ...] = ()
    needs: tuple[str, ...] = ()
    instead: tuple[Proof, ...] = ()
    anywhere: Proof | None = None


def verdict(target: Target, catalog: Catalog, home: Home | None = None, stack: str = "") -> Verdict:
    """The verdict for a target, or for one stack on it; what was seen on this machine counts with `home`."""
    evidence = [*shipped_evidence(catalog), *(local_evidence(home) if home else ())]
    stacks = [candidate for candidate in catalog.stacks.values() if stack in ("", candidate.name)]
    proofs = sorted(_proofs(target, stacks, evidence), key=_rank, reverse=True)
    works = any(proof.said == RAN for proof in proofs)
    alternatives = [candidate for candidate in catalog.stacks.values() if candidate.any_gpu]
    instead = [] if works else [*_instead(target, alternatives, catalog, evidence)]
    anywhere = next((proof for proof in instead if proof.stack == stack), None)
    return Verdict(
        target=target.name,
        stack=stack,
        works=works,
        proofs=tuple(proofs),
        needs=tuple(_needs(target)),
        instead=() if anywhere else tuple(instead),
        anywhere=None if proofs else anywhere,
    )


def _proofs(target: Target, stacks: Sequence[Stack], evidence: Sequence[Evidence]) -> Iterator[Proof]:
    """Of each stack, on each base that it has a row for the target on, or that evidence tells of."""
    for stack in stacks:
        bases = [row.base for row in stack.row if row.gpu == target.name]
        bases += [entry.base for entry in evidence if entry.stack == stack.name and target.name in entry.gpu]
        for base in dict.fromkeys(bases):
            yield _proof(target, stack, base, evidence)


def _proof(target: Target, stack: Stack, base: str, evidence: Sequence[Evidence]) -> Proof:
    matches = [
        entry
        for entry in evidence
        if (entry.stack, entry.base) == (stack.name, base) and (not entry.gpu or target.name in entry.gpu)
    ]
    best = max(matches, key=lambda entry: (SAID.index(entry.said), entry.when), default=None)
    if best is None:
        return Proof(stack=stack.name, base=base)
    return Proof(stack=stack.name, base=base, said=best.said, when=best.when[:10], device=best.device)


def _rank(proof: Proof) -> int:
    return SAID.index(proof.said) if proof.said in SAID else -1


def _needs(target: Target) -> Iterator[str]:
    """What nothing runs without on it: variables, a kernel."""
    for quirk in target.quirk:
        if quirk.scope == "run" and quirk.need == "required":
            yield f"{quirk.variable}={quirk.value.replace('{target}', target.name)}: {quirk.reason}"
    if target.host.kernel_bad:
        yield f"a Linux kernel other than {', '.join(target.host.kernel_bad)}, which are known to fail"


def _instead(
    target: Target, stacks: Sequence[Stack], catalog: Catalog, evidence: Sequence[Evidence]
) -> Iterator[Proof]:
    """Stacks for any GPU that a lock can be made of, with the most that was seen of them on any card."""
    for stack in stacks:
        base = next((base for base in stack.bases if resolves(_request(stack, target, base), catalog)), None)
        if base is not None:
            yield _proof(target, stack, base, [entry.model_copy(update={"gpu": ()}) for entry in evidence])


def _request(stack: Stack, target: Target, base: str) -> Request:
    return Request(stack=stack.name, gpu=(target.name,), base=base)


def lines(verdict: Verdict, limit: int = 4) -> Iterator[tuple[str, str]]:
    """The verdict for people: labels and texts, the verdict itself first."""
    ran = [proof for proof in verdict.proofs if proof.said == RAN]
    some = [proof for proof in verdict.proofs if proof.said and proof.said != RAN]
    untried = [proof for proof in verdict.proofs if not proof.said]
    if ran:
        places = [f"{proof} ({', '.join(filter(None, (proof.when, proof.device)))})" for proof in ran[:limit]]
        yield "works", f"ran on this GPU: {'; '.join(places)}"
    elif some:
        yield "unproven", f"nothing on record ran on this GPU; the most that was seen: {some[0].said}"
    elif verdict.proofs:
        yield "unproven", "nothing on record was built for this GPU; locks for it come with rocwright"
    elif verdict.anywhere is not None:
        yield (
            "unproven",
            "nothing on record ran on this GPU; the stack needs no ROCm, and is for any GPU",
        )
        yield from _sightings((verdict.anywhere,), limit)
    else:
        which = f"the stack {verdict.stack}" if verdict.stack else "no stack"
        has = "has no" if verdict.stack else "has a"
        yield "unknown", f"{which} {has} row for this GPU, and nothing is on record"
    yield from _sightings(some, limit)
    if untried:
        # all names: a stack that is not named is not tried
        yield "untried", _named(untried, len(untried))
    for need in verdict.needs:
        yield "needs", need
    for proof in verdict.instead:
        note = f": {proof.said} ({proof.when})" if proof.said else ""
        yield "instead", f"{proof}, which needs no ROCm{note}"


def _sightings(proofs: Sequence[Proof], limit: int) -> Iterator[tuple[str, str]]:
    for outcome in dict.fromkeys(proof.said for proof in proofs):
        yield "seen", f"{outcome}: {_named([proof for proof in proofs if proof.said == outcome], limit)}"


def _named(proofs: Sequence[Proof], limit: int) -> str:
    suffix = f" and {len(proofs) - limit} more" if len(proofs) > limit else ""
    return f"{', '.join(map(str, proofs[:limit]))}{suffix}"
