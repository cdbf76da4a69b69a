"""Wheels in the one form that the same content always has, and whether one is in it already."""

from __future__ import annotations

import filecmp
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rocbase.errors import CheckError, InputError
from rocbase.files.atomic import sha256_file
from rocwheel.wheels.archive import open_wheel, opened
from rocwheel.wheels.metadata import (
    RECORD,
    Headers,
    RecordRow,
    WheelName,
    dist_info_folder,
    parse_name,
    read_record,
    record_contradictions,
)
from rocwheel.wheels.write import WheelFile, order_in, write_wheel

SUFFIX = ".whl"
MOST_TOLD = 10
OTHERWISE = "another compression, or zip fields that are not needed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalised:
    """A wheel that was written: where, its sha256 and size in bytes, whether other bytes lay there before."""

    path: Path
    sha256: str
    size: int
    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The sha256 of a wheel in its one form, and how it differs from that; by nothing where it is in it."""

    sha256: str
    differences: tuple[str, ...] = ()


def wheels_in(path: Path) -> list[Path]:
    """What `path` stands for: a wheel, an unpacked one, or the wheels in a folder. Raises InputError."""
    if not path.is_dir() or any(path.glob("*.dist-info")):
        return [path]
    wheels = sorted(path.glob(f"*{SUFFIX}"))
    if not wheels:
        raise InputError(
            f"{path} is neither a folder of wheels nor an unpacked wheel",
            cause="it contains neither *.whl nor *.dist-info",
            next_step="give a wheel, a folder of wheels, or a folder with a *.dist-info folder",
        )
    return wheels


def normalise(wheel: Path, out: Path, *, epoch: int, fix_record: bool = False) -> Normalised:
    """Write `wheel` (or an unpacked one) to `out`, or into the folder `out`, in its one form.

    Order, times, modes, compression and RECORD are made anew (see write_wheel), no file's content is changed.
    Raises CheckError where RECORD contradicts the files (unless `fix_record`): the one form of a damaged
    wheel would hide that; what RECORD does not say is added. Raises InputError for what is no wheel.
    """
    name = unpacked_name(wheel) if wheel.is_dir() else parse_name(wheel.name)
    target = out / name.file_name if out.is_dir() else out
    if target.suffix != SUFFIX:
        raise InputError(
            f"{target} is neither a folder nor NAME{SUFFIX}",
            cause="it does not exist, and only an existing folder or a new .whl file can be written",
            next_step=f"create the folder first (mkdir {target}), or name a .whl file",
        )
    previous = sha256_file(target) if target.is_file() else ""
    with opened(wheel) as files:
        # An unpacked wheel was opened to be changed, and its RECORD is not expected to know it.
        approve = None if fix_record or wheel.is_dir() else agreeing_with(files, wheel)
        write_wheel(target, files, epoch=epoch, approve=approve)
    digest = sha256_file(target)
    return Normalised(path=target, sha256=digest, size=target.stat().st_size, changed=digest != previous)


def form_of(wheel: Path, *, epoch: int | None = None) -> Form:
    """The one form of a wheel, which is not kept, and how the wheel differs from it.

    Without `epoch`, the time of the wheel's first file may be any, and is that of all. Raises as `normalise`.
    """
    with tempfile.TemporaryDirectory() as folder:
        # zipfile's view of order, times and modes; what it does not show is in the bytes.
        with open_wheel(wheel) as files, zipfile.ZipFile(wheel) as archive:
            infos = archive.infolist()
            timestamp = time_of(infos[0]) if epoch is None else epoch
            normal = Path(folder) / wheel.name
            write_wheel(normal, files, epoch=timestamp, approve=agreeing_with(files, wheel))
        sha256 = sha256_file(normal)
        if filecmp.cmp(normal, wheel, shallow=False):
            return Form(sha256=sha256)
        with zipfile.ZipFile(normal) as archive:
            differences = _reasons(infos, archive.infolist())
        return Form(sha256=sha256, differences=tuple(differences or [OTHERWISE]))


def time_of(info: zipfile.ZipInfo) -> int:
    """When a member was changed, in seconds since 1970; 0 where its time is none."""
    try:
        return int(datetime(*info.date_time, tzinfo=UTC).timestamp())
    except ValueError:
        return 0


def unpacked_name(folder: Path) -> WheelName:
    """The file name that a wheel of this folder has, by its *.dist-info and WHEEL. Raises InputError."""
    info = dist_info_folder(f"{path.name}/" for path in folder.glob("*.dist-info"))
    try:
        wheel = Headers(WheelFile(path=f"{info}/WHEEL", content=folder / info / "WHEEL").read())
    except OSError as error:
        raise InputError(
            f"{folder} has no {info}/WHEEL",
            cause=str(error),
            next_step="unpack the wheel again, with all of its files",
        ) from error
    parts = [sorted(set(part)) for part in zip(*(tag.split("-") for tag in wheel.all("Tag")), strict=True)]
    tags = "-".join(".".join(part) for part in parts)
    build = wheel.get("Build")
    return parse_name(
        "-".join(part for part in (info.removesuffix(".dist-info"), build, tags) if part) + SUFFIX
    )


def _reasons(original: Sequence[zipfile.ZipInfo], canonical: Sequence[zipfile.ZipInfo]) -> list[str]:
    """What a reader of the zip sees of the differences."""
    folder = dist_info_folder(info.filename for info in canonical)
    names = [info.filename for info in original]
    reasons = []
    if any(name.endswith("/") for name in names):
        reasons.append("folders have entries of their own")
    if names != sorted(names, key=lambda name: order_in(folder, name)):
        reasons.append("files are not in order")
    normal = {info.filename: info for info in canonical}
    pairs = [(info, normal[info.filename]) for info in original if info.filename in normal]
    if len({info.date_time for info in original}) > 1:
        reasons.append("files have times that differ")
    elif any(old.date_time != new.date_time for old, new in pairs):
        reasons.append("the files have another time")
    if any(old.external_attr != new.external_attr for old, new in pairs):
        reasons.append("files have modes that are not 0644 or 0755")
    record = f"{folder}/{RECORD}"
    if record not in names:
        reasons.append("there is no RECORD")
    elif any(old.CRC != new.CRC for old, new in pairs):
        reasons.append("RECORD is written in another way")
    return reasons


def agreeing_with(
    files: Sequence[WheelFile], wheel: Path, *, replaced: str = "", remedy: str = "use --fix-record"
) -> Callable[[Sequence[RecordRow]], None]:
    """What raises CheckError where the RECORD among `files` is not that of what they hold.

    What it says of the file `replaced`, which is written with another content, is not looked at. `remedy`
    is what helps if the files are right.
    """
    folder = dist_info_folder(file.path for file in files)
    record = next((file for file in files if file.path == f"{folder}/{RECORD}"), None)

    def approve(rows: Sequence[RecordRow]) -> None:
        if record is None:
            return
        content = {row.path: row for row in [*rows, RecordRow(path=record.path)]}
        recorded = [row for row in read_record(record.read()) if row.path != replaced]
        problems = record_contradictions(recorded, content)
        if problems:
            raise CheckError(
                f"{wheel.name}: RECORD and the files contradict each other",
                cause="the wheel was changed after it was built, damaged, or built wrongly",
                next_step=f"get a fresh copy, or {remedy} if the files are right",
                detail="\n".join(problems[:MOST_TOLD]),
                subject=str(wheel),
            )

    return approve
