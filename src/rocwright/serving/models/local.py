"""A model that lies on this machine: which format it has, is it whole, may it be loaded?"""

from __future__ import annotations

import difflib
import json
import os
import re
import stat
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from rocbase.errors import CheckError, InputError
from rocwright.catalog.model_files import Format, ModelsFile
from rocwright.serving.models.ggml_bin import read_ggml_bin
from rocwright.serving.models.gguf import read_gguf
from rocwright.serving.models.model import Head, Model
from rocwright.serving.models.refused import damaged, shown, unsuited
from rocwright.serving.models.safetensors import json_pairs, looks_like_safetensors, read_safetensors

# Bytes that tell a format.
BEGIN = 16

# Files of a folder that are looked at; the largest models have some hundred.
MOST_FILES = 10_000

# Bytes of an index of tensors.
MOST_INDEX = 64 * 1024**2

_WEIGHT_MAP = re.compile(rb'"weight_map"\s*+:')

SAFE = ".safetensors"
INDEX = ".index.json"
# How llama.cpp names the files of a model in several (llama_split_path).
SPLIT = re.compile(r"^(.*)-(\d{5})-of-(\d{5})\.gguf$")

MOST_NAMED = 12
MOST_PARTS = 1000


def local_model(path: Path, kinds: Collection[str], facts: ModelsFile, trust: bool, origin: str) -> Model:
    """The model at a path, checked. Raises InputError, CheckError (damaged, cut short, pickled)."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise _not_there(path, error) from error
    if stat.S_ISDIR(mode):
        return _folder(path, kinds, facts, trust, origin)
    if not stat.S_ISREG(mode):
        raise InputError(
            f"{path} is no file",
            cause="it is a device, a pipe or a socket",
            next_step="name a file or a folder of a model",
        )
    return _file(path, kinds, facts, trust, origin)


def _not_there(path: Path, error: OSError) -> InputError:
    if not isinstance(error, FileNotFoundError):
        return InputError(
            f"{path} cannot be read",
            cause=error.strerror or type(error).__name__,
            next_step="check its permissions and those of the folders above it",
        )
    siblings = _names(path.parent)
    near = difflib.get_close_matches(path.name, siblings, 3)
    return InputError(
        f"there is no model at {path}",
        cause=f"beside it are {', '.join(map(shown, near))}" if near else "no such file or folder",
        next_step="name a file, a folder, hf:REPO/FILE or tiny",
    )


def format_of(path: Path, facts: ModelsFile) -> Format:
    """The format of a file: by its first bytes, else by its name. Raises InputError where neither tells,
    CheckError where it is empty, or what people have in its place by mistake."""
    with path.open("rb") as file:
        begin = file.read(BEGIN)
    if not begin:
        raise damaged(path, "it is empty")
    if mistaken := next((mistake for mistake in facts.mistaken if mistake.is_begun_by(begin)), None):
        raise unsuited(path, f"it is {mistaken.says}, and no model", mistaken.remedy)
    safe = looks_like_safetensors(begin)
    kind = facts.of_begin(begin) or (facts.of_name(SAFE) if safe else facts.of_name(path.name))
    if kind is None:
        raise InputError(
            f"{path.name} is of no format that rocwright knows",
            cause="neither its first bytes nor its name tell one",
            next_step=f"use one of: {', '.join(entry.says for entry in facts.format if not entry.pickled)}",
        )
    return kind


def _file(path: Path, kinds: Collection[str], facts: ModelsFile, trust: bool, origin: str) -> Model:
    kind = format_of(path, facts)
    check_kind(path.name, kind, kinds, facts)
    if kind.pickled:
        check_trust(path.name, trust, _safe_beside(path), str(path.parent))
    paths = split_files(path) if SPLIT.match(path.name) else (path,)
    heads = [head_of(part, kind, facts) for part in paths]
    return Model(
        paths=paths,
        format=kind.name,
        size=sum(part.stat().st_size for part in paths),
        sha256=None,
        origin=origin,
        head=_together(heads),
    )


def head_of(path: Path, kind: Format, facts: ModelsFile) -> Head | None:
    """What the head of a file says; None for formats that have none. Raises CheckError."""
    match kind.name:
        case "gguf":
            return read_gguf(path, facts)[0]
        case "ggml":
            return read_ggml_bin(path, facts)
        case "safetensors":
            return read_safetensors(path)
    return None


def _together(heads: Sequence[Head | None]) -> Head | None:
    """Of several files of one model: the first says what it is, all of them what it takes."""
    parts = [head for head in heads if head is not None]
    if not parts:
        return None
    weights, parameters = sum(part.weights for part in parts), sum(part.parameters for part in parts)
    quantisation = parts[0].quantisation or next(
        (part.quantisation for part in parts if part.quantisation), ""
    )
    return replace(parts[0], weights=weights, parameters=parameters, quantisation=quantisation)


def split_files(path: Path) -> tuple[Path, ...]:
    """All files of a model in several, in order. Raises CheckError where one is missing."""
    match = SPLIT.match(path.name)
    assert match is not None
    count = int(match[3])
    if not 0 < count <= MOST_PARTS:
        raise damaged(path, f"its name says that it is one of {count:,} files")
    paths = [path.with_name(f"{match[1]}-{number:05d}-of-{count:05d}.gguf") for number in range(1, count + 1)]
    _check_all_there(path.name, paths)
    return tuple(paths)


def _check_all_there(name: str, paths: Iterable[Path]) -> None:
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise CheckError(
            f"{name} is not whole: {len(missing)} of its files are missing",
            cause="missing: "
            + ", ".join(map(shown, missing[:MOST_NAMED]))
            + (" ..." if missing[MOST_NAMED:] else ""),
            next_step="bring them too, into the same folder",
            subject=name,
        )


def check_kind(name: str, kind: Format, kinds: Collection[str], facts: ModelsFile) -> None:
    """Raises InputError where a program does not take a format."""
    if kind.name not in kinds:
        accepted = [facts.named(entry).says for entry in kinds]
        raise InputError(
            f"{shown(name)} cannot be served here",
            cause=f"it is {kind.says}; this stack takes {', '.join(accepted)}",
            next_step="use a file of such a format: many models are published in several",
        )


def check_trust(name: str, trust: bool, safe: Sequence[str], place: str) -> None:
    """Raises InputError for pickled weights that nobody has said to trust."""
    if trust:
        return
    instead = f"use {shown(safe[0])} instead, which cannot; or " if safe else ""
    raise InputError(
        f"{shown(name)} has pickled weights, which can run any program when they are loaded",
        cause=f"there is safetensors in {place}: {', '.join(map(shown, safe[:MOST_NAMED]))}"
        if safe
        else f"there is no safetensors file in {place}",
        next_step=f"{instead}--trust-model, if you trust whoever made it with your machine",
        subject=name,
    )


def _safe_beside(path: Path) -> list[str]:
    """Names of safetensors files in the same folder, that of the same name first."""
    names = [name for name in _names(path.parent) if name.endswith(SAFE)]
    return sorted(names, key=lambda name: name != path.stem + SAFE)


def _names(folder: Path) -> list[str]:
    """Names in a folder, in order; none where it cannot be read."""
    try:
        return sorted(path.name for path in islice(folder.iterdir(), MOST_FILES))
    except OSError:
        return []


def _folder(path: Path, kinds: Collection[str], facts: ModelsFile, trust: bool, origin: str) -> Model:
    files = list(_walk(path))
    names = {file.relative_to(path).as_posix() for file in files}
    kind = next(
        (candidate for candidate in facts.format if candidate.marker and candidate.marker in names), None
    )
    if kind is None:
        return _only_one(path, files, kinds, facts, trust, origin)
    check_kind(path.name, kind, kinds, facts)
    safe = [file for file in files if file.name.endswith(SAFE)]
    apart = {file.parent for file in safe}
    pickled = sorted(file for file in files if facts.is_pickled(file.name) and file.parent not in apart)
    if pickled:
        check_trust(pickled[0].relative_to(path).as_posix(), trust, [], path.name)
    if not safe and not pickled:
        raise CheckError(
            f"{path.name} has no weights",
            cause=f"it has {kind.marker}, and no safetensors file",
            next_step="bring the whole repository",
            subject=str(path),
        )
    for file in files:
        if file.name.endswith(SAFE + INDEX):
            _check_all_there(path.name, (file.parent / name for name in _indexed(file)))
    head = _together([read_safetensors(file) for file in safe])
    size = sum(file.stat().st_size for file in files)
    return Model(paths=(path,), format=kind.name, size=size, sha256=None, origin=origin, head=head)


def _walk(folder: Path) -> Iterable[Path]:
    """Files of a folder and of those in it; folders that are links are not entered."""
    count = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(entry for entry in folders if not entry.startswith("."))
        for name in sorted(names):
            count += 1
            if count > MOST_FILES:
                raise InputError(
                    f"{folder} has more than {MOST_FILES:,} files",
                    cause="it is no folder of one model",
                    next_step="name the folder of the model itself",
                )
            if (Path(parent) / name).is_file():
                yield Path(parent) / name


def _only_one(
    path: Path, files: Sequence[Path], kinds: Collection[str], facts: ModelsFile, trust: bool, origin: str
) -> Model:
    """The one file of a folder that can be served."""
    served = [file for file in files if _is_first(file) and _is_taken(file, kinds, facts)]
    if len(served) == 1:
        return _file(served[0], kinds, facts, trust, origin)
    raise InputError(
        f"{path} has {'several models' if served else 'no model that can be served here'}",
        cause=", ".join(file.name for file in served[:MOST_NAMED])
        or f"this stack takes {', '.join(facts.named(kind).says for kind in kinds)}",
        next_step="name one file of it" if served else "name another folder, or a file",
    )


def _is_taken(path: Path, kinds: Collection[str], facts: ModelsFile) -> bool:
    try:
        kind = format_of(path, facts)
    except InputError:
        return False
    return kind.name in kinds and not kind.pickled


def _is_first(path: Path) -> bool:
    match = SPLIT.match(path.name)
    return match is None or int(match[2]) == 1


def _indexed(path: Path) -> set[str]:
    """Files that an index names; each lies beside it."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_INDEX + 1)
        if len(data) > MOST_INDEX:
            raise ValueError("too long")
        begin = _WEIGHT_MAP.search(data)
        if begin is None:
            raise ValueError("no map")
        written: set[bytes] = set()
        for _, name in json_pairs(data, begin.end()):
            written.add(name)
            if len(written) > MOST_FILES:
                raise ValueError("too many files")
        names = set(map(json.loads, written))
        if not all(isinstance(name, str) and name == Path(name).name for name in names):
            raise ValueError("a file elsewhere")
    except (ValueError, RecursionError) as error:
        raise damaged(path, "it is no index of tensors") from error
    return names
