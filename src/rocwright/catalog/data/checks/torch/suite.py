"""Tries a torch and what stands on it, on a device: `python3 suite.py torch vision --device cuda`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from smoke.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
