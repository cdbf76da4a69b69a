"""The process of one step: it leaves its record, or its error, where it is told to."""

from __future__ import annotations

import json
from pathlib import Path

from rocbase.errors import ExplainedError
from rocbase.files.atomic import write_atomic
from rocwright.execution.asked import Asked as Asked
from rocwright.execution.exec_step import execute
from rocwright.execution.killed import interrupted
from rocwright.failures import as_known
from rocwright.home import Home
from rocwright.store import open_store
from rocwright.store.model import Record


def run(request: Asked) -> int:
    """Run the step and write its report; gives the exit status."""
    assert request.report is not None
    report = Path(request.report)
    try:
        record = run_step(request)
    except (Exception, KeyboardInterrupt) as error:
        explained = interrupted() if isinstance(error, KeyboardInterrupt) else as_known(error)
        if not isinstance(error, ExplainedError | KeyboardInterrupt):
            import traceback

            print(traceback.format_exc(), flush=True)
        write_atomic(report, json.dumps({"error": explained.as_dict(), "peak_memory": explained.peak_memory}))
        return explained.failure.exit_code
    write_atomic(report, json.dumps({"record": record.model_dump(mode="json")}))
    return 0


def run_step(request: Asked) -> Record:
    """The record of the step, which is run if it must be. Raises what `execute` raises."""
    return execute(
        request.key,
        open_store(request.store),
        Home.default(),
        lambda line: print(line, flush=True),
        jobs=request.jobs,
        memory=request.memory,
        options=request.options,
        server=Path(request.server) if request.server else None,
        shards=request.shards,
    )
