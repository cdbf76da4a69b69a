"""Whose builds are the same: what a channel that wants several owners to agree goes by."""

from __future__ import annotations

from rocwright.model.steps import Plan
from rocwright.project import Project
from rocwright.records.model import OWNER, Finding, now
from rocwright.store.model import Record, Store
from rocwright.store.shared import signers
from rocwright.store.signing.keys import own_public_key, public_key


def owners(project: Project, plan: Plan) -> list[Finding]:
    """A finding for each owner that gave the same in every step of a plan that runs commands, where there are
    several: this machine, and the trusted keys that have signed it in a shared store.

    Who used what yet another has compiled does not count, this machine neither.
    """
    steps = [step for step in plan.steps if step.kind == "run"]
    records = [project.store.record(step.key) for step in steps]
    owners_of = [_owners(project.store, record) if record is not None else frozenset() for record in records]
    agreed = frozenset.intersection(*owners_of) if owners_of else frozenset()
    if len(agreed) < 2:
        return []
    return [
        Finding(
            component=steps[-1].component,
            check=OWNER,
            name=f"the same, signed by {keyid[:16]}" if keyid else "the same, built on this machine",
            ok=True,
            when=now(),
        )
        for keyid in sorted(agreed)
    ]


def _owners(store: Store, record: Record) -> frozenset[str]:
    """Who says the same: ids of keys, "" for this machine where it has none."""
    own = own_public_key()
    keyid = str(public_key(own).keyid) if own is not None else ""
    return frozenset(signer or keyid for signer in signers(store, record))
