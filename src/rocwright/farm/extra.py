"""Whether what hands steps to other machines is installed: it is an extra of rocwright's package."""

from __future__ import annotations

from importlib.util import find_spec

from rocbase.errors import InputError


def check_installed() -> None:
    """Raise InputError where it is not."""
    if find_spec("distributed") is None:
        raise InputError(
            "running steps on other machines needs dask.distributed, which is not installed",
            cause="it comes with the extra `farm`",
            next_step="pip install -e '.[farm]' in a checkout of rocwright",
        )
