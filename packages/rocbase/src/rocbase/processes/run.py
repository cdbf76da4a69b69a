"""The one way to start a process: argument lists only, output captured or streamed line by line."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Thread, Timer
from typing import IO

from rocbase import errors
from rocbase.errors import InputError
from rocbase.files.atomic import CHUNK

LINE_LIMIT = 64 * 1024
"""Longest line kept from a process, in bytes; a longer one is cut into pieces of this size."""

_PIDFD_BATCH = 200
"""Processes held by a descriptor at once."""

_LAST_WORDS = 5.0
"""Seconds in which the errors of a process that has ended are waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a process ended: its exit status (negative for a signal), output, and wall time in seconds."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    seconds: float
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        return self.returncode == 0


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    timeout: float | None = None,
) -> Finished:
    """Run to the end and capture both outputs as text.

    Raises InputError where the program is not installed; never raises for a non-zero exit or a time-out.
    """
    words = tuple(str(word) for word in argv)
    started = time.monotonic()
    try:
        with subprocess.Popen(
            words,
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            timed_out = False
            try:
                out, err = process.communicate(stdin, timeout=timeout)
            except subprocess.TimeoutExpired:
                timed_out = True
                kill_group(process)
                out, err = process.communicate()
            except BaseException:
                kill_group(process)
                raise
    except FileNotFoundError as error:
        raise not_installed(words[0]) from error
    return Finished(
        argv=words,
        returncode=process.returncode,
        stdout=out.decode(errors="replace"),
        stderr=err.decode(errors="replace"),
        seconds=time.monotonic() - started,
        timed_out=timed_out,
    )


def stream(
    argv: Sequence[str | Path],
    on_line: Callable[[str], None],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    on_start: Callable[[subprocess.Popen[bytes]], None] | None = None,
    on_error: Callable[[str], None] | None = None,
) -> Finished:
    """Run to the end, both outputs merged and handed to `on_line` as each line (or part ended by CR) comes.

    With `on_error`, lines of the standard error go there instead, in a thread of their own.
    Raises InputError where the program is not installed; never raises for a non-zero exit or a time-out.
    """
    words = tuple(str(word) for word in argv)
    started = time.monotonic()
    expired: list[bool] = []
    try:
        process = subprocess.Popen(
            words,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if on_error is None else subprocess.PIPE,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise not_installed(words[0]) from error

    def expire() -> None:
        expired.append(True)
        kill_group(process)

    timer = Timer(timeout, expire) if timeout is not None else None
    reader = _read_errors(process, on_error) if on_error is not None else None
    with process:
        try:
            if timer is not None:
                timer.daemon = True
                timer.start()
            if on_start is not None:
                on_start(process)
            assert process.stdout is not None
            for line in split_lines(process.stdout.fileno()):
                on_line(line)
            process.wait()
            if reader is not None:
                reader.join(_LAST_WORDS)
        except BaseException:
            kill_group(process)
            raise
        finally:
            if timer is not None:
                timer.cancel()
    return Finished(
        argv=words,
        returncode=process.returncode,
        stdout="",
        stderr="",
        seconds=time.monotonic() - started,
        timed_out=bool(expired),
    )


def _read_errors(process: subprocess.Popen[bytes], on_error: Callable[[str], None]) -> Thread:
    """A thread that hands on the process's errors; it waits for nobody who keeps them open for longer."""
    assert process.stderr is not None
    descriptor = os.dup(process.stderr.fileno())

    def tell() -> None:
        try:
            _tell(descriptor, on_error)
        finally:
            os.close(descriptor)

    thread = Thread(target=tell, daemon=True)
    thread.start()
    return thread


def pipe(
    argv: Sequence[str | Path],
    write: Callable[[bytes], object],
    on_line: Callable[[str], None],
    *,
    env: Mapping[str, str] | None = None,
) -> int:
    """Run to the end: standard output goes to `write` in chunks, each line of the errors to `on_line`.

    Gives the exit status (negative for a signal). Raises InputError where the program is not installed.
    """
    words = tuple(str(word) for word in argv)
    try:
        running = subprocess.Popen(
            words,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise not_installed(words[0]) from error
    with running, ThreadPoolExecutor(1) as pool:
        try:
            assert running.stdout is not None
            assert running.stderr is not None
            reader = pool.submit(_tell, running.stderr.fileno(), on_line)
            while chunk := running.stdout.read(CHUNK):
                write(chunk)
            reader.result()
            return running.wait()
        except BaseException:
            kill_group(running)
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A running process whose standard output is read as a file, as much as is wanted."""

    argv: tuple[str, ...]
    output: IO[bytes]
    _process: subprocess.Popen[bytes]
    _errors: IO[bytes]
    _started: float

    def finish(self) -> Finished:
        """How it ended, once the output was read to its end; `stdout` is empty, it went to the reader."""
        returncode = self._process.wait()
        self._errors.seek(0)
        return Finished(
            argv=self.argv,
            returncode=returncode,
            stdout="",
            stderr=self._errors.read(LINE_LIMIT).decode(errors="replace"),
            seconds=time.monotonic() - self._started,
        )


@contextlib.contextmanager
def reading(argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None) -> Iterator[Reading]:
    """Start a process whose output the caller reads at its own pace; it is ended when the caller leaves.

    Raises InputError where the program is not installed.
    """
    words = tuple(str(word) for word in argv)
    with tempfile.TemporaryFile() as errors:
        try:
            running = subprocess.Popen(
                words,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise not_installed(words[0]) from error
        with running:
            assert running.stdout is not None
            try:
                yield Reading(
                    argv=words,
                    output=running.stdout,
                    _process=running,
                    _errors=errors,
                    _started=time.monotonic(),
                )
            finally:
                if running.poll() is None:
                    kill_group(running)


def _tell(descriptor: int, on_line: Callable[[str], None]) -> None:
    for line in split_lines(descriptor):
        on_line(line)


def split_lines(descriptor: int) -> Iterator[str]:
    """Lines from a file descriptor as they come; a carriage return ends a line too (ninja, pip)."""
    buffer = b""
    while chunk := os.read(descriptor, 65536):
        buffer += chunk
        *lines, buffer = buffer.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")
        while len(buffer) > LINE_LIMIT:
            yield buffer[:LINE_LIMIT].decode(errors="replace")
            buffer = buffer[LINE_LIMIT:]
    if buffer:
        yield buffer.decode(errors="replace")


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL the process and all that it started in its session; nothing once its end was noted: from then
    on its number may be another's."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        process.kill()


def send(number: signal.Signals, pids: Iterable[int], still: Callable[[], Container[int]]) -> None:
    """Send a signal to processes, and never to later ones that have their numbers by now.

    `still` says, once each is held by a descriptor, which numbers still stand for those that are meant.
    """
    waiting = iter(pids)
    while some := tuple(itertools.islice(waiting, _PIDFD_BATCH)):
        with contextlib.ExitStack() as stack:
            descriptors = {}
            for pid in some:
                with contextlib.suppress(OSError):
                    descriptors[pid] = os.pidfd_open(pid)
                    stack.callback(os.close, descriptors[pid])
            current = still() if descriptors else ()
            for pid, descriptor in descriptors.items():
                if pid in current:
                    with contextlib.suppress(OSError):
                        signal.pidfd_send_signal(descriptor, number)


def not_installed(program: str) -> InputError:
    return InputError(
        f"{program} is not installed",
        cause=f"the command {program!r} was not found on PATH",
        next_step=f"{errors.how_to_install(Path(program).name)}; then try again",
    )


def attach(
    argv: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> int:
    """Run to the end on the caller's own terminal; the exit status (negative for a signal).

    Raises InputError where the program is not installed.
    """
    words = tuple(str(word) for word in argv)
    try:
        return subprocess.run(words, cwd=cwd, env=env, check=False).returncode
    except FileNotFoundError as error:
        raise not_installed(words[0]) from error


def detach(argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a companion process that outlives the caller, without input or output.

    Raises InputError where the program is not installed.
    """
    return _companion(argv, env, subprocess.DEVNULL)


def talk(argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a companion that is asked on its standard input and answers on its standard output.

    Raises InputError where the program is not installed.
    """
    return _companion(argv, env, subprocess.PIPE)


def _companion(
    argv: Sequence[str | Path], env: Mapping[str, str] | None, streams: int
) -> subprocess.Popen[bytes]:
    words = tuple(str(word) for word in argv)
    try:
        return subprocess.Popen(
            words,
            env=env,
            stdin=streams,
            stdout=streams,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise not_installed(words[0]) from error
