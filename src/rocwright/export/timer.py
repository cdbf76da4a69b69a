"""A cycle every night by systemd: a service and its timer, for the project in any folder."""

from __future__ import annotations

from collections.abc import Iterator

from rocwright.export.model import ExportSubject, Files, lines_of

NAME, FAILED = "rocwright-cycle@", "rocwright-failed@"


def timer(_: ExportSubject) -> Files:
    """`rocwright-cycle@.service` and `.timer`, and `rocwright-failed@.service`, which tells that a cycle
    could not run: an instance is named after the folder of a project."""
    return {
        f"{NAME}.service": lines_of(_service()),
        f"{NAME}.timer": lines_of(_timer()),
        f"{FAILED}.service": lines_of(_failed()),
    }


def _service() -> Iterator[str]:
    yield "# These files go to ~/.config/systemd/user; then, in the folder of the project:"
    yield "#   systemctl --user daemon-reload"
    yield f'#   systemctl --user enable --now "{NAME}$(systemd-escape --path "$PWD").timer"'
    yield "# loginctl enable-linger lets it run while you are logged out."
    yield "[Unit]"
    yield "Description=rocwright in %f: follow upstream, build, check, promote or keep the old"
    yield "Wants=network-online.target"
    yield "After=network-online.target"
    yield f"OnFailure={FAILED}%i.service"
    yield ""
    yield "[Service]"
    yield "Type=oneshot"
    yield "# a candidate failed, or was not tried: the cycle itself tells that, once"
    yield "SuccessExitStatus=1"
    yield "WorkingDirectory=%f"
    yield "# a login shell knows where rocwright is installed"
    yield "ExecStart=/bin/sh -lc 'exec rocwright cycle'"
    yield "# whatever else the machine does goes first"
    yield "Nice=10"
    yield "IOSchedulingClass=idle"


def _failed() -> Iterator[str]:
    yield "[Unit]"
    yield "Description=rocwright in %f: tell that a cycle could not run"
    yield "Wants=network-online.target"
    yield "After=network-online.target"
    yield ""
    yield "[Service]"
    yield "Type=oneshot"
    yield "WorkingDirectory=%f"
    yield "# to whom stands in [[notify]] of config.toml"
    yield f"ExecStart=/bin/sh -lc 'exec rocwright notify failed \"$$0\"' {NAME}%i.service"


def _timer() -> Iterator[str]:
    yield "[Unit]"
    yield "Description=rocwright in %f: a cycle every night"
    yield ""
    yield "[Timer]"
    yield "OnCalendar=*-*-* 02:30:00"
    yield "# a machine that slept catches up; not all of a lab's at once"
    yield "Persistent=true"
    yield "RandomizedDelaySec=30min"
    yield ""
    yield "[Install]"
    yield "WantedBy=timers.target"
