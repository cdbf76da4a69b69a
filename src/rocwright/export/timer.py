"""A cycle every night by systemd: a service and its timer, as units of the user who exports them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from rocwright.export.model import Files, Subject, lines_of
from rocwright.export.quote import one_line, unit

NAME = "rocwright-cycle"


def timer(_: Subject) -> Files:
    """`rocwright-cycle.service` and `.timer`, for the project in the folder where they are exported."""
    return {
        f"{NAME}.service": lines_of(_service(Path.cwd(), Path(sys.executable))),
        f"{NAME}.timer": lines_of(_timer()),
    }


def _service(folder: Path, python: Path) -> Iterator[str]:
    yield "# Goes to ~/.config/systemd/user/ with its timer; then systemctl --user daemon-reload"
    yield f"# and systemctl --user enable --now {NAME}.timer (loginctl enable-linger: also while logged out)."
    yield "[Unit]"
    yield "Description=rocwright: follow upstream, build, check, promote or keep the old"
    yield "Wants=network-online.target"
    yield "After=network-online.target"
    yield ""
    yield "[Service]"
    yield "Type=oneshot"
    yield f"WorkingDirectory={one_line(str(folder), 'a systemd unit').replace('%', '%%')}"
    yield f"ExecStart={unit(str(python))} -m rocwright cycle"
    yield "# whatever else the machine does goes first"
    yield "Nice=10"
    yield "IOSchedulingClass=idle"


def _timer() -> Iterator[str]:
    yield "[Unit]"
    yield "Description=rocwright: a cycle every night"
    yield ""
    yield "[Timer]"
    yield "OnCalendar=*-*-* 02:30:00"
    yield "# a machine that slept catches up; not all of a lab's at once"
    yield "Persistent=true"
    yield "RandomizedDelaySec=30min"
    yield ""
    yield "[Install]"
    yield "WantedBy=timers.target"
