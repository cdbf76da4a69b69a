"""Which programs are there, and of which version, as they say themselves."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

from rocbase.errors import ExplainedError
from rocbase.processes.run import run
from rocwright.diagnosis.facts import HostFacts, VersionedTool

# Seconds that a program may take to say its version.
LIMIT = 2.0


def read_tools(facts: HostFacts) -> dict[str, str]:
    """Program -> version; nothing for one that is not there, "?" for one that does not say."""
    with ThreadPoolExecutor(max_workers=len(facts.tool) or 1) as pool:
        versions = pool.map(_version, facts.tool)
        return {tool.program: version for tool, version in zip(facts.tool, versions, strict=True) if version}


def _version(tool: VersionedTool) -> str:
    try:
        completed = run([tool.program, *tool.arguments], timeout=LIMIT)
    except (ExplainedError, OSError):
        return ""
    match = re.search(r"\d+(\.\d+)+", completed.stdout or completed.stderr)
    return match[0] if match and completed.ok else "?"
