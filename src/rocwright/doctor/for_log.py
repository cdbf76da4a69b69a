"""What this machine says of the causes that a log tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rocbase.toml.read import Reader
from rocwright.catalog.folders import HOST, catalog_folders
from rocwright.diagnosis.diagnose import Diagnosis


def with_this_machine(
    diagnosis: Diagnosis,
    targets: Sequence[str] = (),
    say: Callable[[str], None] = lambda _: None,
    *,
    elsewhere: bool = False,
) -> Diagnosis:
    """A diagnosis with what speaks for or against causes that are the kernel's or the firmware's.

    It is this machine that is looked at, and only where it matters; of a log that is of another, what that
    says itself. `targets` are those that it is of, where they are known.
    """
    if not {match.issue.name for match in diagnosis.known} & _blamed():
        return diagnosis
    from rocwright.catalog.load import the_catalog
    from rocwright.diagnosis.facts import host_facts
    from rocwright.diagnosis.here import not_of, of_log, with_machine
    from rocwright.diagnosis.machine.driver import read_driver
    from rocwright.diagnosis.machine.gpus import read_gpus
    from rocwright.diagnosis.machine.tree import Tree
    from rocwright.doctor.findings.kernel import evidence

    catalog, facts, machine = the_catalog(), host_facts(), of_log(diagnosis)
    if not elsewhere:
        with Tree() as tree:
            this = evidence(read_gpus(tree, catalog, facts)[0], read_driver(tree, facts))
        reason = not_of(diagnosis, this)
        if reason:
            say(f"this machine says nothing of it: {reason}")
        else:
            machine = this
    return with_machine(diagnosis, machine, facts, catalog.targets, targets)


def _blamed() -> set[str]:
    """The issues for which kernel or firmware are blamed, read without loading what looks at a machine: most
    logs have none of them."""
    reader, names = Reader(catalog_folders()), set[str]()
    for path in reader.layers(HOST):
        table = reader.data(path)
        driver = table.get("driver")
        for row in (*reader.rows(path, table, "firmware"), *([driver] if isinstance(driver, dict) else [])):
            issues = row.get("issues", ())
            names.update(issues if isinstance(issues, list) else ())
    return names
