"""A look in a process of its own, which goes on whatever becomes of the command that asked for it."""

from __future__ import annotations

import sys

from rocbase.errors import ExplainedError
from rocwright.config import config
from rocwright.follow.notify.look import LookOrder, look
from rocwright.home import Home


def main(order: str) -> bool:
    """Look once, as the order (JSON) says; False where that could not be done."""
    try:
        look(Home.default(), config(), LookOrder.model_validate_json(order))
    except (ExplainedError, OSError):
        return False
    return True


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1]) else 1)
