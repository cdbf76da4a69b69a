"""A workflow that builds the pipeline and keeps the artifacts."""

from __future__ import annotations

from collections.abc import Iterator

from rocwright.export.model import ExportSubject, Files, lines_of
from rocwright.export.pipeline import pipeline
from rocwright.export.quote import comment, yaml

# by commit, for a tag may move; those of this repository's own workflows
CHECKOUT = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"
UPLOAD = "actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f # v7.0.0"


def github(subject: ExportSubject) -> Files:
    """`.github/workflows/NAME.yml`, and the pipeline that it runs in a folder of the stack's name."""
    files = {f"{subject.name}/{path}": file for path, file in pipeline(subject).items()}
    artifacts = " AS artifacts" in files[f"{subject.name}/Containerfile"].text
    workflow = lines_of(_lines(subject, artifacts=artifacts))
    return {f".github/workflows/{subject.name}.yml": workflow, **files}


def _lines(subject: ExportSubject, *, artifacts: bool) -> Iterator[str]:
    request = subject.lock.request
    needs = ["buildah", "mmdebstrap", "patch", "git", "zstd", "uidmap"]
    title = f"{request.stack} for {', '.join(request.gpu)} on {request.base}"
    seconds = sum(step.resources.seconds for step in subject.plan.steps)
    disk = sum(step.resources.disk for step in subject.plan.steps) / 1024**3
    yield f"# {comment(title)}: about {seconds / 3600:.1f} h on two cores and {disk:.0f} GiB of disk."
    yield "# A hosted runner may be too small or too slow for it: then name one of your own under runs-on."
    # GitHub fills in expressions even in a name
    yield f"name: {yaml(title.replace('${{', '$ {{'))}"
    yield "on:"
    yield "  workflow_dispatch:"
    yield "  push:"
    yield f"    paths: [{yaml(f'{subject.name}/**')}]"
    yield "permissions:"
    yield "  contents: read"
    yield "jobs:"
    yield "  build:"
    yield "    runs-on: ubuntu-latest"
    yield f"    timeout-minutes: {max(60, int(seconds / 60 * 3))}"
    yield "    defaults:"
    yield "      run:"
    yield f"        working-directory: {yaml(subject.name)}"
    yield "    steps:"
    yield f"      - uses: {CHECKOUT}"
    yield "        with:"
    yield "          persist-credentials: false"
    yield "      - name: tools"
    yield (
        "        run: sudo apt-get update && sudo apt-get install --yes --no-install-recommends "
        f"{' '.join(needs)}"
    )
    yield "      - name: build"
    yield "        run: sudo ENGINE=buildah OUT=out ./build_pipeline.sh"
    # an image that is pulled leaves no files
    if artifacts:
        yield f"      - uses: {UPLOAD}"
        yield "        with:"
        yield f"          name: {yaml(subject.name)}"
        yield f"          path: {yaml(f'{subject.name}/out')}"
