"""`rocwright exec-step`: the local runner and a cluster run this same command."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import click

from rocwright.cli.common import engine_option, no_compiler_cache_option
from rocwright.errors import RocwrightError
from rocwright.home import Home


@click.command("exec-step")
@click.argument("key")
@click.option("--store", "url", required=True, help="The store's URL: file:///...")
@click.option("--jobs", default=1, type=click.IntRange(min=1), help="Processes at once.")
@click.option("--memory", type=click.IntRange(min=1), help="Most memory in bytes.")
@engine_option
@click.option(
    "--job-server",
    "server",
    type=click.Path(path_type=Path),
    help="The folder of a build's job server; its tokens say how many processes there may be.",
)
@no_compiler_cache_option
@click.option(
    "--report", type=click.Path(path_type=Path), help="Write the record, or the error, here as JSON."
)
def command(
    key: str,
    url: str,
    jobs: int,
    memory: int | None,
    engine: str | None,
    server: Path | None,
    compiler_cache: bool,
    report: Path | None,
) -> None:
    """Run one step given nothing but the store; its outputs are put there, if absent."""
    from rocwright.build.exec_step import execute
    from rocwright.build.killed import interrupted
    from rocwright.cli.tell import as_known
    from rocwright.files import write_atomic
    from rocwright.parent import die_with_parent
    from rocwright.store import open_store

    # asked to end, it leaves no sandbox and nothing half-written, as with Ctrl-C
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if report is not None:
        die_with_parent()
    try:
        record = execute(
            key,
            open_store(url),
            Home.default(),
            click.echo,
            jobs=jobs,
            memory=memory,
            engine=engine,
            server=server,
            compiler_cache=compiler_cache,
        )
    except (Exception, KeyboardInterrupt) as error:
        told = interrupted() if isinstance(error, KeyboardInterrupt) else as_known(error)
        if report is None:
            raise
        if not isinstance(error, RocwrightError | KeyboardInterrupt):
            import traceback

            click.echo(traceback.format_exc())
        write_atomic(report, json.dumps({"error": told.as_dict(), "peak_memory": told.peak_memory}))
        raise SystemExit(told.failure.exit_code) from None
    if report is not None:
        write_atomic(report, json.dumps({"record": record.model_dump(mode="json")}))
    else:
        for output in record.outputs:
            click.echo(f"{output.sha256}  {output.size}  {output.filename}")
