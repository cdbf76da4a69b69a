"""What remedies changed is in what is exported: its scripts, its edits, its labels."""

from __future__ import annotations

from tests.making import lock_of
from tests.plan.test_remedies import action, mended, remedy

from rocwright.catalog.load import builtin_catalog
from rocwright.export.containerfile import labels
from rocwright.export.model import ExportSubject
from rocwright.export.write import FORMATS

EDIT = {"file": "a.c", "include": "<cstdint>", "why": "GCC no longer brings it along"}


def test_an_exported_build_has_the_variables_and_edits_of_remedies() -> None:
    lock = lock_of("torch-extensions", "gfx803")
    recipe = builtin_catalog().component("torchvision").env
    gone, joined = (name for name, value in list(recipe.items())[:2] if value)
    lock = mended(
        lock,
        remedy("torchvision", action(kind="unset", variables=[gone])),
        remedy("torchvision", action(kind="set", variables={joined: "more", "NEW": "it's"}, join=" ")),
        remedy("torchvision", action(kind="edit", component="torchvision", edit=EDIT)),
        remedy("torchvision", action(kind="set", variables={"NOT": "1"}), outcome="useless"),
    )
    subject = ExportSubject.of(lock, builtin_catalog(), {"torchvision": b"", "torchaudio": b""})
    files = FORMATS["containerfile"](subject)
    script = files["steps/torchvision.sh"].data.decode()
    assert f"export {gone}=" not in script
    (line,) = (one for one in script.splitlines() if one.startswith(f"export {joined}="))
    assert line.endswith(("more'", " more", 'more"'))
    assert "export NEW='it'\"'\"'s'" in script
    assert "NOT=" not in script
    edits = [path for path, file in files.items() if "torchvision" in path and '"a.c"' in file.text]
    assert edits
    told = labels(subject)
    assert "rocwright.remedy.an-issue" in told
