"""Which model is meant: a file, a folder, one of a hub, or a small one that rocwright makes itself."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from rocbase.errors import InputError, NetworkError
from rocwright.catalog.model_files import ModelsFile, model_facts
from rocwright.execution.progress import PlainProgress, Progress
from rocwright.home import Home
from rocwright.serving.models.address import SCHEME, ModelAddress, as_address, parse_address
from rocwright.serving.models.hub import Hub
from rocwright.serving.models.local import (
    MOST_NAMED,
    SAFE,
    SPLIT,
    check_kind,
    check_trust,
    local_model,
)
from rocwright.serving.models.model import Model
from rocwright.serving.models.refused import not_here, shown
from rocwright.serving.models.tiny import is_tiny, tiny_model


def find_model(
    words: str,
    kinds: Collection[str],
    *,
    home: Home,
    tiny: str = "",
    trust: bool = False,
    bring: bool = True,
    say: Callable[[str], None],
    progress: Progress | None = None,
) -> Model:
    """The model that `words` name, brought where it is elsewhere, and checked before anything loads it.

    `words` are a path, `hf:OWNER/NAME[@REVISION][/FILE]`, `tiny` or `tiny:NAME`. `kinds` are the formats that
    the program takes, by their names in models.toml, the one it likes best first; `tiny` is the small model
    that it is given where only "tiny" is said. `trust` allows pickled weights. Without `bring` nothing is
    downloaded or made, and a model that is not here is refused. Raises InputError, CheckError (damaged, cut
    short), FetchError, NetworkError, OutOfDiskError.
    """
    facts = model_facts()
    if is_tiny(words):
        return tiny_model(words, kinds, home.models, facts, tiny, make=bring)
    if not words.startswith(SCHEME):
        path = Path(words).expanduser().absolute()
        _refuse_address(words, path)
        return local_model(path, kinds, facts, trust, f"file:{path}")
    hub = Hub(home.models / "hub", say, progress or PlainProgress())
    address = parse_address(words)
    if not bring:
        commit = hub.known_commit(address)
        path = hub.place(address, commit, address.file or ".")
        if not (commit and path.exists()):
            raise not_here(words)
        return local_model(path, kinds, facts, trust, words)
    return _of_hub(hub, address, kinds, facts, trust, say)


def _refuse_address(words: str, path: Path) -> None:
    """Raise InputError for an address, or a name of a hub, where no such file can be meant."""
    address = "" if path.parent.is_dir() else as_address(words)
    if address or "://" in words:
        raise InputError(
            f"{shown(words)} is no file or folder",
            cause="it looks like a model of a hub" if address else "only models of a hub are downloaded",
            next_step=f"--model {address}" if address else "download the file, then: --model FILE",
        )


def _of_hub(
    hub: Hub,
    address: ModelAddress,
    kinds: Collection[str],
    facts: ModelsFile,
    trust: bool,
    say: Callable[[str], None],
) -> Model:
    commit = hub.known_commit(address)
    if commit and address.file and hub.place(address, commit).is_file():
        return _single_file(hub, address, commit, kinds, facts, trust)
    try:
        commit, names = hub.files(address)
    except NetworkError as error:
        local = hub.place(address, commit, ".") if commit else None
        if address.file or local is None or not local.is_dir():
            raise
        say(f"{error.message}: what was brought of {address.at(commit)} is served")
        return local_model(local, kinds, facts, trust, address.at(commit))
    if not address.file:
        folder = next((kind for kind in facts.format if kind.marker in names and kind.name in kinds), None)
        if folder is not None and folder.takes:
            return _all(hub, address, commit, names, folder.takes, kinds, facts, trust)
        address = replace(address, file=_only(address, names, kinds, facts))
        say(f"{address.at(commit)}: the only file that can be served")
    elif address.file in names:
        _check_name(address.file, names, kinds, facts, trust, address.repository)
    model = _single_file(hub, address, commit, kinds, facts, trust)
    hub.remember(address, commit)
    return model


def _single_file(
    hub: Hub, address: ModelAddress, commit: str, kinds: Collection[str], facts: ModelsFile, trust: bool
) -> Model:
    """One file of a repository, and those that belong to it."""
    split = SPLIT.match(address.file.rpartition("/")[2])
    files = [address.file]
    if split is not None:
        folder = address.file[: -len(split[0])]
        count = min(int(split[3]), 1000)
        files = [f"{folder}{split[1]}-{number:05d}-of-{split[3]}.gguf" for number in range(1, count + 1)]
    brought = [hub.bring(address, commit, file) for file in files]
    model = local_model(brought[0].path, kinds, facts, trust, address.at(commit))
    return replace(model, sha256=brought[0].sha256 if len(brought) == 1 else None)


def _all(
    hub: Hub,
    address: ModelAddress,
    commit: str,
    names: list[str],
    takes: tuple[str, ...],
    kinds: Collection[str],
    facts: ModelsFile,
    trust: bool,
) -> Model:
    """A whole repository that is a folder of a model; pickled weights of it only where nothing else is."""
    chosen = [name for name in names if any(fnmatchcase(name, glob) for glob in takes)]
    if not any(name.endswith(SAFE) for name in chosen):
        pickled = [name for name in names if facts.is_pickled(name)]
        if pickled:
            check_trust(pickled[0], trust, [], address.repository)
        chosen += pickled
    for file in chosen:
        hub.bring(address, commit, file)
    hub.remember(address, commit)
    return local_model(hub.place(address, commit, "."), kinds, facts, trust, address.at(commit))


def _only(address: ModelAddress, names: list[str], kinds: Collection[str], facts: ModelsFile) -> str:
    """The one file of a repository that can be served. Raises InputError where there are none or several."""
    served = [
        name
        for name in names
        if any(kind.name in kinds and not kind.pickled for kind in facts.all_of_name(name))
        and (not (split := SPLIT.match(name.rpartition("/")[2])) or int(split[2]) == 1)
    ]
    if len(served) == 1:
        return served[0]
    accepted = ", ".join(facts.named(kind).says for kind in kinds)
    raise InputError(
        f"{address.repository} has {'several models' if served else 'no model that can be served here'}",
        cause=", ".join(map(shown, served[:MOST_NAMED])) + (" ..." if served[MOST_NAMED:] else "")
        if served
        else f"this stack takes {accepted}",
        next_step=f"name one: {SCHEME}{address.repository}/{shown(served[0])}"
        if served
        else "name another repository",
    )


def _check_name(
    file: str, names: list[str], kinds: Collection[str], facts: ModelsFile, trust: bool, repository: str
) -> None:
    """Refuse pickled weights before they are brought, as far as the name tells."""
    formats = facts.all_of_name(file)
    if formats and all(kind.pickled or kind.name not in kinds for kind in formats) and facts.is_pickled(file):
        check_kind(file, next(kind for kind in formats if kind.pickled), kinds, facts)
        safe = [name for name in names if name.endswith(SAFE)]
        stem = file.rpartition(".")[0] + SAFE
        check_trust(file, trust, sorted(safe, key=lambda name: name != stem), repository)
