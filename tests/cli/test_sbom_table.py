"""What an SBOM looks like in a terminal."""

from __future__ import annotations

import json

import pytest

from rocwright.cli.sbom.table import show
from rocwright.provenance.documents import parse_document

DOCUMENT = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.6",
    "metadata": {
        "component": {"type": "library", "name": "small", "version": "1"},
        "properties": [
            {"name": "rocwright:file", "value": "small.whl"},
            {"name": "rocwright:gpu-code:gfx1151", "value": "4 code objects"},
        ],
    },
    "components": [
        {
            "type": "library",
            "bom-ref": f"requirement:{name}",
            "name": name,
            "scope": scope,
            "properties": [{"name": "rocwright:role", "value": "requirement"}],
        }
        for name, scope in (("torch", "required"), ("pytest", "optional"))
    ],
}


def test_what_is_told_stands_below_each_other_and_what_only_an_extra_wants_is_told_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(parse_document(json.dumps(DOCUMENT).encode(), "x"), every=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].index("small.whl") == lines[2].index("4 code objects")
    assert [line.split()[1:3] for line in lines if line.startswith(("torch", "pytest"))] == [
        ["optional", "requirement"],
        ["requirement"],
    ]
