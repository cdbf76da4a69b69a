"""Control files and versions of Debian packages."""

from __future__ import annotations

import re
from collections.abc import Iterator


def upstream_version(version: str) -> str:
    """Upstream's version in a Debian version: 1:2.6.0+dfsg-7 -> 2.6.0."""
    return re.split(r"[+~]", version.split(":")[-1].rsplit("-", 1)[0])[0]


def parse_stanzas(text: str) -> Iterator[dict[str, str]]:
    """Stanzas of a Debian control file: field name -> value, continuation lines kept."""
    for block in re.split(r"\n\s*\n", text):
        stanza: dict[str, str] = {}
        name = ""
        for line in block.splitlines():
            if line[:1] in (" ", "\t"):
                stanza[name] = f"{stanza.get(name, '')}\n{line.strip()}"
            elif ":" in line:
                name, value = line.split(":", 1)
                stanza[name] = value.strip()
        if stanza:
            yield stanza
