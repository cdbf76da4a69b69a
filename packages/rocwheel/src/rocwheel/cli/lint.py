"""`rocwheel lint`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from rocbase.cli.options import json_option

if TYPE_CHECKING:
    from rocwheel.wheels.lint.rules import Linted, Profile

PROFILES = ("index", "distribution", "vendor")


@click.command("lint")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default="index",
    show_default=True,
    help="Whose rules: a public index's, a Linux distribution's, a vendor's for its own downloads.",
)
@click.option("--strict", is_flag=True, help="Warnings fail too.")
@click.option(
    "--rules", is_flag=True, help="Print the rules of the profile, why each is one and who says so."
)
@click.option(
    "--sarif", type=click.Path(dir_okay=False, path_type=Path), help="Write the findings as SARIF 2.1.0."
)
@click.option(
    "--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write the findings as JUnit's XML."
)
@click.option("--verbose", "-v", is_flag=True, help="Print each finding whole, and what to do.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    paths: tuple[Path, ...],
    profile: str,
    strict: bool,
    rules: bool,
    sarif: Path | None,
    junit: Path | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """Judge PATHS (wheels, or folders of libraries) before they are published.

    Tags, RECORD, libraries, search paths, and what the building machine left behind. Nothing is run. Exit
    code 0: no error; 12: an error, or with --strict a warning.
    """
    chosen = cast("Profile", profile)
    if rules:
        _print_rules(chosen, as_json)
        return
    if not paths:
        raise click.UsageError("Missing argument 'PATHS...'.")
    from rocbase.errors import CheckError
    from rocwheel.wheels.lint.rules import lint

    linted = [lint(path, chosen) for path in paths]
    _write(linted, chosen, strict, sarif, junit)
    if as_json:
        _print_json(linted, chosen, strict)
    else:
        _tell(linted, verbose)
    if any(file.failing(strict) for file in linted):
        context.exit(CheckError.failure.exit_code)


def _write(
    linted: list[Linted], profile: Profile, strict: bool, sarif: Path | None, junit: Path | None
) -> None:
    from rocbase.files.atomic import write_atomic
    from rocwheel.wheels.lint.junit import junit as as_junit
    from rocwheel.wheels.lint.rules import rules_of
    from rocwheel.wheels.lint.sarif import sarif as as_sarif

    if sarif is not None:
        write_atomic(sarif, json.dumps(as_sarif(linted, rules_of(profile), profile), indent=2) + "\n")
    if junit is not None:
        write_atomic(junit, as_junit(linted, rules_of(profile), strict=strict))


def _tell(linted: list[Linted], details: bool) -> None:
    from rocwheel.cli.findings import print_findings, print_total

    for file in linted:
        if len(linted) > 1 and file.findings:
            click.echo(click.style(str(file.path), bold=True))
        print_findings(file.findings, details=details)
    print_total([finding for file in linted for finding in file.findings], details=details)


def _print_json(linted: list[Linted], profile: str, strict: bool) -> None:
    from rocbase.cli.tell import print_json
    from rocwheel.cli.findings import as_data

    files = [
        {"path": str(file.path), "passes": not file.failing(strict), "findings": as_data(file.findings)}
        for file in linted
    ]
    print_json({"profile": profile, "strict": strict, "files": files})


def _print_rules(profile: Profile, as_json: bool) -> None:
    from rocbase.cli.tell import print_json
    from rocwheel.wheels.lint.rules import rules_of

    rules = rules_of(profile)
    if as_json:
        print_json([{"id": rule.id, "why": rule.why, "source": rule.source} for rule in rules])
        return
    for number, rule in enumerate(rules):
        click.echo(click.style(f"{'' if number == 0 else chr(10)}{rule.id}", bold=True))
        click.echo(f"  {rule.why}")
        for source in rule.source:
            click.echo(f"  source: {source}")
