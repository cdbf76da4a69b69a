"""How a run stack is run by systemd: a .container unit for podman's quadlet."""

from __future__ import annotations

from collections.abc import Iterator

from rocwright.export.model import ExportSubject, Files, lines_of, slug, variable
from rocwright.export.quote import comment, one_line, unit, unit_value
from rocwright.export.run import Served, served, served_env, warnings


def quadlet(subject: ExportSubject) -> Files:
    """`COMPONENT.container` for each component that is run."""
    return {
        f"{slug(entry.component.name)}.container": lines_of(_lines(entry, subject))
        for entry in served(subject)
    }


def _lines(served: Served, subject: ExportSubject) -> Iterator[str]:
    name, serve = slug(served.component.name), served.serve
    yield (
        f"# {comment(served.component.summary)}: {comment(served.locked.version)}, for "
        f"{comment(', '.join(subject.lock.request.gpu))}"
    )
    for warning in warnings(subject):
        yield f"# {comment(warning)}"
    yield (
        f"# Goes to ~/.config/containers/systemd/{name}.container; then systemctl --user daemon-reload "
        f"and start {name}."
    )
    yield "[Unit]"
    yield f"Description={one_line(comment(served.component.summary), 'a systemd unit').replace('%', '%%')}"
    yield "After=network-online.target"
    yield ""
    yield "[Container]"
    yield f"ContainerName={name}"
    image = served.image
    if not image:
        yield (
            f"# PENDING: {comment(served.locked.pending or 'the digest of the image')}; write "
            "NAME@sha256:... here, or export again after an online lock"
        )
        image = f"localhost/pending/{slug(variable(served.component.name, 'image'))}:write-the-digest-here"
    yield f"Image={one_line(image, 'a systemd unit').replace('%', '%%')}"
    if served.program:
        yield f"PodmanArgs=--entrypoint {unit(served.program)}"
    if served.words:
        yield f"Exec={' '.join(map(unit, served.words))}"
    for device in serve.devices:
        yield f"# {comment(device)}: the GPU"
        yield f"AddDevice={_plain(device)}"
    if serve.groups:
        yield (
            f"# the groups that may open the devices ({comment(', '.join(serve.groups))}) stay those of the "
            "user who starts it"
        )
        yield "PodmanArgs=--group-add keep-groups"
    for place, label in serve.folders.items():
        yield f"# {comment(place)}: {comment(label)}"
        yield f"Volume={name}-{slug(label)}:{_plain(place)}"
    for port in serve.ports:
        yield f"# port {port}: for this machine alone; without 127.0.0.1 others reach it too"
        yield f"PublishPort=127.0.0.1:{port}:{port}"
    if serve.shared_memory:
        yield "# shared memory: the processes of one server hand tensors to each other through it"
        yield f"PodmanArgs=--shm-size {serve.shared_memory}"
    for var in served_env(subject, served.component):
        yield f"# {comment(var.why)}"
        yield f"Environment={unit_value(f'{var.name}={var.value}')}"
    yield ""
    yield "[Service]"
    yield "Restart=on-failure"
    yield "TimeoutStartSec=900"
    yield ""
    yield "[Install]"
    yield "WantedBy=default.target"


def _plain(path: str) -> str:
    """A path in a setting that is not split into words."""
    return one_line(path, "a systemd unit").replace("%", "%%")
