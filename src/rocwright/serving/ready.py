"""When can a server be used? When its health page says so; and if it ends before, why?"""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

from rocbase.errors import CheckError, ExplainedError, StepTimeoutError
from rocbase.units import duration
from rocwright.serving.ask import exchange
from rocwright.serving.logs import files_of, wait_until_written
from rocwright.serving.model import ServerState

_ANSWER_SECONDS = 5.0
_LEAST_PAUSE, _MOST_PAUSE = 0.02, 0.25
_TAIL = 64 * 1024

# How often is said that a server still loads: a large model takes minutes from a disk.
TELL_SECONDS = 20.0


def answers(url: str, path: str) -> bool:
    """Whether a page is there now and says that all is well (200)."""
    try:
        return exchange(url, "GET", path, _ANSWER_SECONDS, most=0)[0] == http.client.OK
    except (OSError, http.client.HTTPException):
        return False


def wait_until_ready(
    state: ServerState,
    seconds: float,
    alive: Callable[[], bool],
    log: Path,
    say: Callable[[str], None] = lambda _: None,
) -> float:
    """Wait until a server can be used; the seconds that it took. `say` hears that it still loads.

    Raises CheckError (or what its log says) where it ends before, StepTimeoutError where it takes longer.
    """
    started = time.monotonic()
    last_message = started
    while time.monotonic() - started < seconds:
        living = alive()
        if living and answers(state.url, state.health):
            return time.monotonic() - started
        if not living:
            raise died(state, log)
        # the longer it took, the less a moment more is noticed
        waited = time.monotonic() - started
        if time.monotonic() - last_message > TELL_SECONDS:
            last_message = time.monotonic()
            say(f"{state.name} loads, for {duration(waited)} so far: rocwright logs {state.name} --follow")
        time.sleep(min(_MOST_PAUSE, max(_LEAST_PAUSE, waited / 20)))
    raise StepTimeoutError(
        f"{state.name} did not answer within {seconds:.0f} s",
        cause=f"{state.url}{state.health} never said that it is ready",
        next_step="load a smaller model, or look at what it printed, above",
        detail=_last_lines(log),
    )


def died(
    state: ServerState, log: Path, when: str = "ended before it could be used", status: int | None = None
) -> ExplainedError:
    """Why a server ended, from its log, and from its exit `status` where the log has no error."""
    from rocwright.catalog.phase import Phase
    from rocwright.diagnosis.diagnose import FailurePlace, diagnose
    from rocwright.diagnosis.explain import add_known, excerpt
    from rocwright.diagnosis.read_log import open_log, pieces
    from rocwright.doctor.for_log import with_this_machine

    wait_until_written(log)
    place = FailurePlace(
        component=state.component, version=state.version, targets=state.gpu, base=state.base, phase=Phase.RUN
    )
    with ExitStack() as stack:
        files = [stack.enter_context(open_log(path)) for path in files_of(log)]
        diagnosis = diagnose(chain.from_iterable(map(pieces, files)), place, failed=True)
    diagnosis = with_this_machine(diagnosis, state.gpu)
    plain = diagnosis.last if status is None else f"its exit status is {status}; its log tells of no error"
    issue = diagnosis.cause.issue if diagnosis.cause else None
    error = CheckError(
        f"{state.name} {when}",
        cause=diagnosis.first.text if diagnosis.first else plain,
        next_step=issue.remedy if issue else "read what it printed, above",
        detail=excerpt(diagnosis, _last_lines(log).splitlines()),
    )
    add_known(error, diagnosis)
    return error


def _last_lines(log: Path, count: int = 12) -> str:
    text = b""
    for path in reversed(files_of(log)):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            text = file.read() + text
    return "\n".join(text.decode(errors="replace").splitlines()[-count:])
