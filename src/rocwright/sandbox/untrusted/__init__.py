"""What a sandbox could write, opened by the host: the one way to read, list or take out of such a folder.

Each part of a path is opened by itself, below the one before it, and no symbolic link is followed. Only
regular files are opened, of a bounded size, without setuid or setgid bit; nothing waits for a FIFO or wakes a
device. It holds while the step still runs and exchanges what lies there.
"""

from __future__ import annotations

from rocwright.sandbox.untrusted.folder import MOST_ENTRIES, MOST_OUTPUT, MOST_TEXT, Untrusted

__all__ = ["MOST_ENTRIES", "MOST_OUTPUT", "MOST_TEXT", "Untrusted"]
