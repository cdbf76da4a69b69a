"""What a hub's refusal means for whoever asked, in one message that never quotes the hub, or a token."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Callable
from dataclasses import dataclass

from rocbase.errors import ExplainedError, InputError, NetworkError
from rocwright.serving.models.refused import shown

LOGIN = "log in (hf auth login), or set HF_TOKEN"


@dataclass(frozen=True, slots=True)
class HubPlace:
    """What was asked for: the hub's host, the repository, its file, the revision."""

    host: str
    repository: str
    file: str
    revision: str


def told(error: Exception, where: HubPlace, names: Callable[[], list[str]]) -> ExplainedError:
    """The error of huggingface_hub as one of ours; `names` asks for the files that the repository has."""
    from huggingface_hub import errors

    status = getattr(getattr(error, "response", None), "status_code", None)
    match error:
        case errors.GatedRepoError():
            return InputError(
                f"{where.repository} is gated: its owner must let you in",
                cause=f"{where.host} answered with status {status}: no token, or not yet one that may",
                next_step=f"ask for access on its page at {where.host}, then {LOGIN}, and run again",
            )
        case errors.RevisionNotFoundError():
            return InputError(
                f"{where.repository} has no revision {shown(where.revision)}",
                cause=f"{where.host} answered with status {status}",
                next_step="leave @REVISION out, or name a branch, a tag or a commit that it has",
            )
        case errors.RepositoryNotFoundError():
            return InputError(
                f"{where.host} has no repository {where.repository}, or does not show it to you",
                cause=f"it answered with status {status}; private ones look like those that are not there",
                next_step=f"check the name; if it is private: {LOGIN}",
            )
        case errors.EntryNotFoundError() if status is not None:
            return _no_file(where, names)
    if status in (401, 403):
        return InputError(
            f"{where.host} does not let you read {where.repository}",
            cause=f"it answered with status {status}: "
            + ("the token is not valid" if status == 401 else "the token may not read it"),
            next_step=f"make a token that may read it, then {LOGIN}",
        )
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM):
        raise error
    return NetworkError(
        f"{where.file or where.repository} cannot be brought from {where.host}",
        cause=f"it answered with status {status}" if status else _reason(error),
        next_step="try again: what came is kept and taken up; if the hub cannot be reached from here, set "
        "HF_ENDPOINT to a mirror, or bring the file yourself and name it",
    )


def _reason(error: BaseException) -> str:
    """The kind of the failure at the bottom: its words may have an address with a login in them."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"it does not answer ({type(error).__name__})"


def _no_file(place: HubPlace, names: Callable[[], list[str]]) -> ExplainedError:
    try:
        files = names()
    except Exception:  # they are only for the next step: the failure that is told is the file's
        files = []
    near = difflib.get_close_matches(place.file, files, 5, cutoff=0.4)
    return InputError(
        f"{place.repository} has no file {shown(place.file)}",
        cause=f"it has {', '.join(map(shown, near))}" if near else f"it has {len(files)} other files",
        next_step=f"name one of them, or hf:{place.repository} to see what can be served",
    )
