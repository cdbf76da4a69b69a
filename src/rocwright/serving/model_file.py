"""The model that a server is given, where it takes one."""

from __future__ import annotations

from collections.abc import Callable

from rocwheel.errors import InputError
from rocwright.catalog.server import Server
from rocwright.execution.progress import Progress
from rocwright.home import Home
from rocwright.serving.models.address import SCHEME, parse_address
from rocwright.serving.models.find import find_model
from rocwright.serving.models.model import Model
from rocwright.serving.models.tiny import TINY


def model_of(
    asked: str, server: Server, home: Home, *, trust: bool, say: Callable[[str], None], progress: Progress
) -> Model | None:
    """The model that is meant, brought and checked; None for a server that takes none.

    Raises InputError, and what `find_model` raises.
    """
    if not server.models:
        if asked:
            raise InputError(
                f"it takes no model: {asked}",
                cause="this server has no option for one, and loads what its clients name",
                next_step="leave --model out",
            )
        return None
    if not asked:
        raise InputError(
            "no model named",
            cause=f"it serves one: {', '.join(server.models)}",
            next_step=f"--model FILE or hf:OWNER/NAME/FILE, or --model {TINY} for a trial without a download",
        )
    return find_model(asked, server.models, home=home, trust=trust, say=say, progress=progress)


def may_last(asked: str) -> bool:
    """Whether the words mean the same files as long as these are there: a whole repository of a hub is looked
    up each time."""
    return not asked.startswith(SCHEME) or bool(parse_address(asked).file)
