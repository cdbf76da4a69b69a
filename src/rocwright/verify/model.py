"""Evidence: the record of one check or run: what, where, on which device, the outcome."""

from __future__ import annotations

from rocwright.models import Frozen


class Finding(Frozen):
    """One statement found true or false. `device` is where it ran: a GPU's name, cpu, "" if nothing ran.

    `absent`: what it would have tried is not there, so that nothing was proved, and nothing is wrong.
    """

    component: str
    check: str
    name: str
    ok: bool
    absent: bool = False
    detail: str = ""
    device: str = ""
    artifact: str = ""
    sha256: str = ""
    when: str = ""
    machine: str = ""
    engine: str = ""
