"""How one speaks with a coordinator."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from distributed import Client

from rocbase.errors import NetworkError

if TYPE_CHECKING:
    from distributed.security import Security


def connect(address: str, security: Security | None, seconds: float) -> Client:
    """A client of the coordinator at an address, to be closed. Raises NetworkError where nobody answers."""
    try:
        return Client(address, security=security, timeout=seconds, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise NetworkError(
            f"no coordinator answers at {address}",
            cause=f"{type(error).__name__}: it is not running, or certificates differ",
            next_step="rocwright farm up starts one; config.toml names it: [farm] scheduler",
        ) from error


def quiet() -> None:
    """Have the library say only what is wrong: what goes on, people are told in our words."""
    logging.getLogger("distributed").setLevel(logging.WARNING)
