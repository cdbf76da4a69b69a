"""The environment of a wheel stack as an OCI image, and how that is run without rocwright."""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

from rocbase.files.atomic import write_atomic
from rocbase.folders.temporary import temporary_folder
from rocwright.execution.image import gzip_layer, root_layer, write_image
from rocwright.export.compose import group_numbers
from rocwright.export.quote import one_line, unit_value
from rocwright.home import Home
from rocwright.model.architecture import Architecture
from rocwright.model.steps import ImageAction
from rocwright.sandbox.model import GPU_DEVICES
from rocwright.serving.environments import INSIDE, PLACE, Environment
from rocwright.store.model import Store, verified

_OCI = {Architecture.X86_64: "amd64", Architecture.AARCH64: "arm64"}


def write(
    environment: Environment, architecture: Architecture, store: Store, home: Home, folder: Path
) -> list[Path]:
    """Write the image, a systemd unit for podman (quadlet) and a compose file to `folder`; gives the files.

    The variables of the card and of the recipes are inside; without words it starts Python.
    """
    name = environment.stack
    action = ImageAction(
        name=name,
        reference=f"rocwright/{name}:{environment.key[:12]}",
        prefix=PLACE,
        architecture=_OCI[architecture],
        env={"PATH": f"{PLACE}/bin:/usr/local/bin:/usr/bin:/bin", "VIRTUAL_ENV": PLACE, **environment.env},
        entrypoint=("/usr/bin/env",),
        labels={
            "org.opencontainers.image.title": f"{name} for {', '.join(environment.gpu)}",
            "org.opencontainers.image.base.name": environment.base,
            "rocwright.gpu": ",".join(environment.gpu),
            "rocwright.environment": environment.key,
        },
    )
    folder.mkdir(parents=True, exist_ok=True)
    image = folder / f"{name}.oci.tar"
    with temporary_folder("image", place=folder) as scratch:
        top = Path(scratch) / "top"
        _pack(environment.folder(home) / INSIDE, top)
        layers = [root_layer(verified(store, environment.root), environment.root), gzip_layer(top)]
        write_image(action, layers, Path(scratch) / image.name, Path(scratch))
        (Path(scratch) / image.name).replace(image)
    files = {f"{name}.container": quadlet(action), "compose.yaml": compose(action)}
    for file, text in files.items():
        write_atomic(folder / file, text)
    return [image, *(folder / file for file in files)]


def quadlet(action: ImageAction) -> str:
    """A systemd unit that runs a program in the image."""
    return "".join(f"{line}\n" for line in _quadlet(action))


def _quadlet(action: ImageAction) -> Iterator[str]:
    yield f"# Goes to ~/.config/containers/systemd/{action.name}.container, after podman load -i"
    yield f"# {action.name}.oci.tar; then systemctl --user daemon-reload and start {action.name}."
    yield "[Unit]"
    yield f"Description={one_line(action.labels['org.opencontainers.image.title'], 'a systemd unit')}"
    yield ""
    yield "[Container]"
    yield f"ContainerName={action.name}"
    yield f"Image=localhost/{action.reference}"
    yield "# the program; it finds what lies in the volume in its current folder"
    yield "Exec=python main.py"
    yield "WorkingDir=/work"
    yield f"Volume={action.name}-work:/work"
    for device in GPU_DEVICES:
        yield f"AddDevice=-{device}"
    yield "PodmanArgs=--group-add keep-groups"
    for name, value in action.env.items():
        yield f"Environment={unit_value(f'{name}={value}')}"


def compose(action: ImageAction) -> str:
    """A compose file (JSON, which is YAML): the program in the image, the current folder as its own."""
    service = {
        "image": f"localhost/{action.reference}",
        "command": ["python", "main.py"],
        "working_dir": "/work",
        "volumes": [".:/work"],
        "devices": [f"{device}:{device}" for device in GPU_DEVICES],
        "group_add": group_numbers(("video", "render")),
        "environment": dict(action.env),
    }
    return json.dumps({"services": {action.name: service}}, indent=2) + "\n"


def _pack(inside: Path, target: Path) -> None:
    """The environment at its place, with root as the owner; times stay, for bytecode is known by them."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        info.mtime = int(info.mtime)
        return info

    with (
        target.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as layer,
    ):
        layer.add(inside, PLACE.strip("/"), filter=plain)
