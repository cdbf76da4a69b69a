"""The command, run as a user does."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

Command = Callable[..., "subprocess.CompletedProcess[str]"]
