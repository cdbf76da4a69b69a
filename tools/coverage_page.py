"""Which lines of each package the fast tests run: `make coverage` writes docs/coverage.md and its badge."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from coverage import Coverage

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {"": ROOT / "src" / "rocwright", "rocwheel/": ROOT / "packages/rocwheel/src/rocwheel"}
"""Packages, and what stands before the names of their rooms."""
DATA = SOURCES[""] / "catalog" / "data"
"""What steps and checks run in their own Python."""

HEAD = (ROOT / "tools" / "coverage_page.md").read_text()


def measured(tests: list[str], jobs: int) -> Counter[tuple[str, str]]:
    """Statements of each package, in all and run; the tests must pass."""
    with tempfile.TemporaryDirectory(prefix="rocwright-coverage-") as folder:
        data = f"{folder}/data"
        words = [
            *(f"--cov={one}" for one in SOURCES.values()),
            "--cov-report=",
            "-q",
            "-m",
            "not real",
            "-p",
            "no:cacheprovider",
        ]
        words += [f"--basetemp={folder}/tests", *(["-n", str(jobs)] if jobs > 1 else []), *tests]
        env = os.environ | {"COVERAGE_FILE": data}
        if subprocess.call([sys.executable, "-m", "pytest", *words], cwd=ROOT, env=env) != 0:
            raise SystemExit("the tests fail: nothing is written")
        found: Counter[tuple[str, str]] = Counter()
        known = Coverage(data_file=data)
        known.load()
        files = [(path, before, top) for before, top in SOURCES.items() for path in sorted(top.rglob("*.py"))]
        for path, before, top in files:
            if not path.is_relative_to(DATA):
                _, statements, _, missing, _ = known.analysis2(str(path))
                package = before + path.relative_to(top).parts[0].removesuffix(".py")
                found[package, "all"] += len(statements)
                found[package, "run"] += len(statements) - len(missing)
        return found


def page(found: Counter[tuple[str, str]], what: str, only: set[str]) -> str:
    packages = sorted({package for package, _ in found if not only or package in only})
    rows = [(name, found[name, "all"], found[name, "run"]) for name in packages]
    rows.append(("together", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    table = [f"| `{name}` | {total} | {100 * ran / total:.1f} % |" for name, total, ran in rows if total]
    table[-1] = table[-1].replace("`", "**")
    lines = [HEAD, what, "", "| package | statements | run |", "| --- | ---: | ---: |", *table]
    return "\n".join(lines) + "\n"


def badge(text: str) -> str:
    """The figure of a page as a picture (SVG) for the README; it says of how much it is, where not of all."""
    figure = re.search(r"\*\*together\*\* \| \d+ \| (\d+\.\d %)", text)
    if figure is None:
        raise ValueError("the page has no row for all packages together")
    some = len(re.findall(r"^\| `", text, re.MULTILINE))
    label = "coverage" if ": all fast tests." in text else f"coverage of {some} packages"
    left, right = 7 * len(label) + 10, 7 * len(figure[1]) + 10
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img">
<title>{label}: {figure[1]}</title>
<rect width="{left + right}" height="20" rx="3" fill="#555"/>
<rect x="{left}" width="{right}" height="20" rx="3" fill="#2b7a4b"/>
<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="{left / 2:.0f}" y="14">{label}</text>
<text x="{left + right / 2:.0f}" y="14">{figure[1]}</text>
</g>
</svg>
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="*", help="folders below tests; all fast tests without one")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "coverage.md")
    asked = parser.parse_args()
    tests = [f"tests/{room}" for room in asked.rooms]
    found = measured(tests or ["tests"], asked.jobs)
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, check=True)
    which = f"the fast tests of {', '.join(asked.rooms)}, and their packages" if tests else "all fast tests"
    what = f"Measured on {datetime.now(UTC):%Y-%m-%d} at commit {head.stdout.decode().strip()}: {which}."
    told = page(found, what, set(asked.rooms))
    asked.page.write_text(told)
    (asked.page.parent / "img" / "coverage.svg").write_text(badge(told))


if __name__ == "__main__":
    main()
