"""What the server's own program says that a model takes, asked in the sandbox that the server will have."""

from __future__ import annotations

from pathlib import PurePosixPath

from rocbase.errors import ExplainedError
from rocwright import sandbox
from rocwright.catalog.model_files import model_facts
from rocwright.catalog.server import Compute
from rocwright.execution.progress import Progress
from rocwright.sandbox.model import Mount, SandboxJob
from rocwright.serving.environments import ENGINE
from rocwright.serving.laid import Product, program_of, root_of
from rocwright.serving.models.fit import SECONDS, ModelNeed, arguments, parse_answer
from rocwright.serving.models.model import Model
from rocwright.serving.service import ARTIFACT, MODELS
from rocwright.serving.start import devices_for
from rocwright.serving.words import IMAGE, environment_for


def own_need(product: Product, model: Model, compute: Compute, progress: Progress) -> ModelNeed | None:
    """What a model takes on what the server computes on; None where there is no such program beside the
    server's, or it does not answer."""
    server, facts = product.component.server, model_facts()
    assert server is not None, "it was looked for by that"
    if product.component.kind == IMAGE:
        return None
    bin_folder = PurePosixPath(server.command[0].format_map({"artifact": "."})).parent
    folder = program_of(product, progress.say)
    if not (folder / bin_folder / facts.fit.program).is_file():
        return None
    flags = server.words_for(product.lock.request.gpu) if compute.name == "gpu" else ()
    path = f"{MODELS}/{model.path.name}"
    job = SandboxJob(
        root=root_of(product, progress),
        argv=(
            str(PurePosixPath(ARTIFACT) / bin_folder / facts.fit.program),
            *arguments(path, model, facts),
            *flags,
            *compute.words,
        ),
        env=environment_for(product.component, product.project.catalog, product.lock, compute),
        mounts=(
            Mount(source=folder, target=ARTIFACT),
            *(Mount(source=file.resolve(), target=f"{MODELS}/{file.name}") for file in model.paths),
        ),
        devices=devices_for(product.component, compute),
        seconds=SECONDS,
    )
    lines: list[str] = []
    try:
        ended = sandbox.run(sandbox.pick(ENGINE, product.project.home.probes), job, lines.append)
    except ExplainedError:
        return None  # the server itself will say what is wrong with its sandbox
    return parse_answer("\n".join(lines), facts) if ended.ok else None
