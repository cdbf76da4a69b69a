"""The model that a server is given, where it takes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from rocbase.errors import InputError
from rocwright.catalog.model_files import model_facts
from rocwright.catalog.server import Server
from rocwright.execution.progress import Progress
from rocwright.home import Home
from rocwright.serving.models.address import SCHEME, parse_address
from rocwright.serving.models.find import find_model
from rocwright.serving.models.model import Model
from rocwright.serving.models.tiny import TINY


def model_of(
    address: str,
    server: Server,
    home: Home,
    *,
    companions: Mapping[str, str],
    trust: bool,
    bring: bool = True,
    say: Callable[[str], None],
    progress: Progress,
) -> Model | None:
    """The model that is meant, checked, with the files that `companions` names for it; None for a server that
    takes none. It is brought or made, unless `bring` is False.

    Raises InputError, and what `find_model` raises.
    """
    names = [companion.name for companion in server.companion]
    for name in companions:
        if name not in names:
            raise InputError(
                f"it takes no file that is called {name}",
                cause=f"beside a model it takes: {', '.join(names)}" if names else "it takes one file alone",
                next_step="--with NAME=FILE with one of those names" if names else "leave --with out",
            )
    if not server.models:
        if address:
            raise InputError(
                f"it takes no model: {address}",
                cause="this server has no option for one, and loads what its clients name",
                next_step="leave --model out",
            )
        return None
    if not address and not server.needs_model:
        return None
    if not address:
        takes = ", ".join(model_facts().named(accepted).says for accepted in server.models)
        trial = f", or --model {TINY} for a trial without a download" if server.tiny else ""
        only_folders = all(model_facts().named(accepted).marker for accepted in server.models)
        kind = "FOLDER or hf:OWNER/NAME" if only_folders else "FILE or hf:OWNER/NAME/FILE"
        raise InputError(
            "no model named", cause=f"it serves one: {takes}", next_step=f"--model {kind}{trial}"
        )

    def find(words: str) -> Model:
        return find_model(
            words,
            server.models,
            home=home,
            tiny=server.tiny,
            trust=trust,
            bring=bring,
            say=say,
            progress=progress,
        )

    model = find(address)
    named = {name: find(words).path for name, words in companions.items()}
    return replace(model, companions={**model.companions, **named})


def may_last(address: str) -> bool:
    """Whether the words mean the same files as long as these are there: a whole repository of a hub is looked
    up each time."""
    return not address.startswith(SCHEME) or bool(parse_address(address).file)
