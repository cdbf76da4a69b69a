"""`python -m rocwright.execution exec-step KEY OPTIONS`: what a build starts for each step.

It is `rocwright exec-step` with its options as JSON: to load what reads those of people takes as long as a
part of a small step.
"""

from __future__ import annotations

import signal
import sys

from rocbase.processes import startup
from rocbase.processes.parent import die_with_parent


def main(words: list[str]) -> int:
    """Run the step; its exit status."""
    # before anything that takes time: who started it may end, or ask it to end, at any moment
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    die_with_parent()
    startup.settle()
    try:
        from rocwright.execution.step_process import Asked, run

        _, key, options = words
        return run(Asked.read(key, options))
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
