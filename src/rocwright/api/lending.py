"""Cards to lend: what is wanted of other machines, and what others want of this one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from rocwright.api.gpus import silent
from rocwright.api.projects import Say

if TYPE_CHECKING:
    from rocwright.project import Project
    from rocwright.verify.lending.ask import LentEvidence
    from rocwright.verify.lending.lend import Lender

LOOK = 5.0


def verify_elsewhere(
    project: Project, *, cpu: bool = False, wait: float = 0, say: Say = silent
) -> dict[str, list[LentEvidence]]:
    """Want what is built verified on machines that lend their GPU; gives the evidence so far, by target.

    It goes into the store that the machines share, with what they need of it, and evidence that trusted keys
    signed goes on record here. With `cpu` any machine will do, on its processor, and the target is "".
    `wait` are seconds to wait for evidence of each. Raises InputError where the store is this machine's alone
    or the project is not built, NetworkError.
    """
    from rocwright import flow
    from rocwright.verify.lending.ask import answers, put, verify_wish

    lock = flow.current_lock(project, say)
    devices = ("",) if cpu else lock.request.gpu
    requests = {device: verify_wish(project, lock, device) for device in devices}
    for request in requests.values():
        put(project, lock, request)
    end = time.monotonic() + wait
    evidence: dict[str, list[LentEvidence]] = {}
    while True:
        for device, request in requests.items():
            if not evidence.get(device):
                evidence[device] = answers(project, lock, request, say)
        if all(evidence.values()) or time.monotonic() >= end:
            return evidence
        time.sleep(LOOK)


def lender(url: str = "", *, say: Say = silent) -> Lender:
    """This machine as one that lends its GPU, by the store at `url`, or the one of its settings.

    `Lender.look` says what is wanted, `Lender.serve` runs it. Raises InputError where no bucket is named, or
    there is no key to sign with.
    """
    from rocbase.errors import InputError
    from rocwright.catalog.load import the_catalog
    from rocwright.config import config_file, store_of
    from rocwright.diagnosis.facts import host_facts
    from rocwright.diagnosis.machine.tree import Tree
    from rocwright.doctor.this_machine import here
    from rocwright.home import Home
    from rocwright.store import open_store
    from rocwright.store.sharing import WorkingStore
    from rocwright.verify.lending.lend import Lender

    home, catalog = Home.default(), the_catalog()
    store = open_store(url) if url else store_of(home)
    if not isinstance(store, WorkingStore):
        raise InputError(
            "no store that machines share is named",
            cause=f"{store} is this machine's alone",
            next_step=f'--store s3://..., or store = "s3://..." in {config_file()}',
        )
    with Tree(Path("/")) as tree:
        return Lender(store, home, catalog, here(tree, catalog, host_facts(), home), say)
