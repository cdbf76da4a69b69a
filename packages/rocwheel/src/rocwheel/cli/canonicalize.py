"""`rocwheel canonicalize`."""

from __future__ import annotations

from pathlib import Path

import click

from rocbase.cli.options import json_option


@click.command("canonicalize")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="A folder, or NAME.whl  [default: replace a wheel; write an unpacked one into the current folder]",
)
@click.option(
    "--epoch", type=int, help="The time of all files, in seconds since 1970, instead of SOURCE_DATE_EPOCH."
)
@click.option("--check", is_flag=True, help="Write nothing; fail if a wheel is not in canonical form.")
@click.option("--fix-record", is_flag=True, help="Rewrite RECORD even if it contradicts the files.")
@json_option
def command(
    path: Path, out: Path | None, epoch: int | None, check: bool, fix_record: bool, as_json: bool
) -> None:
    """Rewrite wheels in canonical form: the same content is the same bytes, on every machine.

    PATH is a wheel, a folder of wheels, or an unpacked wheel. Without --epoch the time is
    SOURCE_DATE_EPOCH, or 1980-01-01; --check without --epoch accepts any time, if all files of a wheel have
    it.
    """
    from rocwheel.wheels.canonicalize import wheels_in

    if check:
        _check(wheels_in(path), epoch, as_json)
    else:
        _write(wheels_in(path), out, epoch, fix_record, as_json)


def _check(wheels: list[Path], epoch: int | None, as_json: bool) -> None:
    from dataclasses import asdict

    from rocbase.cli.tell import print_json
    from rocbase.errors import CheckError, InputError
    from rocwheel.wheels.canonicalize import form_of

    if any(wheel.is_dir() for wheel in wheels):
        raise InputError(
            "an unpacked wheel cannot be checked",
            cause="the order, times and compression of its files exist only in the packed wheel",
            next_step="give the .whl file instead of the folder",
        )
    forms = [(wheel, form_of(wheel, epoch=epoch)) for wheel in wheels]
    wrong = [f"{wheel.name}: {difference}" for wheel, form in forms for difference in form.differences]
    if as_json:
        print_json(
            [{"wheel": wheel, "normal": not form.differences, **asdict(form)} for wheel, form in forms]
        )
        raise SystemExit(CheckError.failure.exit_code if wrong else 0)
    count = sum(not form.differences for _, form in forms)
    if wrong:
        raise CheckError(
            f"{len(forms) - count} of {len(forms)} wheels not in canonical form",
            detail="\n".join(wrong),
            cause="they were written by another tool, or changed since",
            next_step="rewrite them: rocwheel canonicalize PATHS",
        )
    click.echo(f"in canonical form: {count} of {len(forms)}")


def _write(wheels: list[Path], out: Path | None, epoch: int | None, fix_record: bool, as_json: bool) -> None:
    from dataclasses import asdict

    from rocbase.cli.options import say
    from rocbase.cli.tell import print_json, print_table
    from rocbase.errors import InputError
    from rocwheel.wheels.canonicalize import normalise
    from rocwheel.wheels.write import epoch_from_environment

    if len(wheels) > 1 and out and not out.is_dir():
        raise InputError(
            f"{out} is not a folder, and several wheels were given",
            cause="several wheels need an existing folder to be written into",
            next_step=f"mkdir {out}",
        )
    time = epoch_from_environment() if epoch is None else epoch
    normalised = []
    for wheel in wheels:
        say(f"  {wheel.name}")
        target = out or (Path() if wheel.is_dir() else wheel)
        normalised.append(normalise(wheel, target, epoch=time, fix_record=fix_record))
    if as_json:
        print_json([asdict(wheel) for wheel in normalised])
        return
    print_table(
        ("wheel", "bytes", "sha256", ""),
        [
            (str(wheel.path), f"{wheel.size:,}", wheel.sha256, "" if wheel.changed else "already canonical")
            for wheel in normalised
        ],
        right=(1,),
    )
