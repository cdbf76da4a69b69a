"""From what the catalog knows of a server to its words and its environment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from rocbase.errors import InputError
from rocwright.catalog.environment import environment
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Component
from rocwright.catalog.server import GPU, Compute, Server
from rocwright.plan.resolve.model import Lock
from rocwright.plan.values import chosen_values, present

# The kind of components that are images of others: such a server runs on the image's own root.
IMAGE = "image"

# Where a server keeps what it compiles for a GPU, as it sees it.
CACHE = "/cache"

# Sets a variable to the key in a file: in a command all users of the machine could read it.
_WITH_KEY = 'IFS= read -r key < "$2" || [ -n "$key" ]; export "$1=$key"; unset key; shift 2; exec "$@"'


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOTHING: Mapping[str, str] = MappingProxyType({})


def _usable(env: Mapping[str, str]) -> dict[str, str]:
    """The variables of an image that can be set at all: they are its maker's words, and may be anything."""
    return {name: text for name, text in env.items() if _NAME.fullmatch(name) and "\0" not in text}


def compute_named(server: Server, name: str) -> Compute:
    """What a server is to compute on. Raises InputError for a name that it does not know."""
    choices = {
        GPU: Compute(name=GPU, summary="the GPU"),
        **{compute.name: compute for compute in server.compute},
    }
    if name not in choices:
        raise InputError(
            f"there is no {name!r} to compute on",
            cause=f"this server knows: {', '.join(choices)}",
            next_step="name one of them with --on",
        )
    return choices[name]


def check_own(server: Server, options: Sequence[str], variables: Iterable[str]) -> None:
    """Raise InputError if the user's options or variables set what rocwright sets itself.

    Programs take an option's beginning for the whole, and some an underscore for a dash.
    """
    own = {word for word in (*server.command, *server.alone, *server.parted, *server.key) if word[0] == "-"}
    own |= {*server.reserved, *server.env, *filter(None, [server.key_variable])}
    names = [word.partition("=")[0].replace("_", "-") for word in options if word.startswith("-")]
    taken = [name for name in names if name in own or (len(name) > len("--") and _begins(name, own))]
    taken += [name for name in variables if name in own]
    if taken:
        raise InputError(
            f"{taken[0]} cannot be set here",
            cause="rocwright sets it: the model, the address and the key of a server are its own options",
            next_step="leave it out: rocwright run --help has --model, --host, --port and --no-auth",
        )


def _begins(name: str, options: Iterable[str]) -> bool:
    return name.startswith("--") and any(option.startswith(name) for option in options)


def words_of(
    server: Server,
    places: Mapping[str, str],
    gpus: tuple[str, ...],
    compute: Compute,
    *,
    keyed: bool,
    companion_paths: Mapping[str, str] = _NOTHING,
) -> tuple[str, ...]:
    """The server's whole command line, with `places` filled in; `companion_paths` are the model's companions
    by name, as the server sees them."""
    flags = server.words_for(gpus) if compute.name == GPU else ()
    model = server.parted if companion_paths else server.alone
    words = (*server.command, *model, *flags, *compute.words, *(server.key if keyed else ()))
    companions = [companion for companion in server.companion if companion.name in companion_paths]
    filled = (
        *(word.format_map(places) for word in words),
        *(
            word.format(file=companion_paths[companion.name])
            for companion in companions
            for word in companion.words
        ),
    )
    if keyed and server.key_variable:
        return ("/bin/sh", "-euc", _WITH_KEY, "sh", server.key_variable, places["key_file"], *filled)
    return filled


def environment_for(component: Component, catalog: Catalog, lock: Lock, compute: Compute) -> dict[str, str]:
    """The environment of a server's programs, without its own variables: what an image of others says of
    itself, what the card wants, what the recipe says of each run, a place for caches."""
    assert component.server is not None
    image = next(
        (locked.env for locked in lock.components if locked.name == component.name and locked.env), {}
    )
    values = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"} | _usable(image)
    values |= {
        # the sandbox's own; what others made keeps what it compiles in its home, each program its own way
        "HOME": CACHE if component.kind == IMAGE else "/tmp",  # noqa: S108
        "TMPDIR": "/tmp",  # noqa: S108
        "XDG_CACHE_HOME": CACHE,
    }
    if compute.name == GPU:
        for gpu in lock.request.gpu:
            quirks = environment(catalog, catalog.target(gpu), "run")
            values |= {quirk.variable: quirk.value for quirk in quirks if quirk.need != "optional"}
    if component.serve is not None:
        values |= chosen_values(component.serve.env, present(lock))
    return values | compute.env
