"""One question, asked upstream: an answer, or an error that says why there is none."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import assert_never

from rocwright.follow.watch.question import (
    Image,
    ImageDay,
    ImageTags,
    Listing,
    PackageLists,
    PackageSet,
    Project,
    Question,
    Refs,
    RemoteFile,
    SourcePackage,
    TagDay,
)
from rocwright.home import Home
from rocwright.model.steps import FilePin
from rocwright.sources import git, index, web
from rocwright.sources.bases.tools import Tools
from rocwright.sources.debian import DebianArchive
from rocwright.sources.image import Reference, find_created, find_digest, find_tags
from rocwright.sources.listing import listed
from rocwright.sources.package_lists import newest
from rocwright.sources.patience import Patience, bounded, current, with_patience

Answer = (
    Mapping[str, str]
    | Mapping[str, datetime | None]
    | Sequence[index.Published]
    | Sequence[FilePin]
    | Sequence[str]
    | str
    | datetime
    | web.Standing
    | None
)

# Seconds that an answer holds for those who look again and again.
FRESH = 300.0


class Upstream:
    """Asks for real. Each question may take `seconds`; package lists of an archive are refreshed once."""

    def __init__(self, home: Home, seconds: float, patience: Patience | None = None) -> None:
        self.home, self.seconds = home, seconds
        self.patience = patience or current() or bounded(seconds)
        self._archives: dict[tuple[str, str, str], DebianArchive] = {}
        self._apt = threading.Lock()
        # pip is asked where its index is: beside the first questions, not before them
        self._index = ThreadPoolExecutor(1).submit(index.the_index)

    def ask(self, question: Question) -> Answer:
        """Raises NetworkError, FetchError, InputError."""
        with with_patience(self.patience):
            return self._ask(question)

    def _ask(self, question: Question) -> Answer:
        match question:
            case Refs():
                return git.remote_refs(question.url, self.seconds)
            case TagDay():
                return git.release_day(question.url, question.ref, self.seconds)
            case Project():
                endpoint = index.at(question.index) if question.index else self._index.result()
                return index.published(question.name, endpoint, self.seconds)
            case Image():
                return find_digest(
                    Reference.parse(question.reference),
                    self._folder(),
                    question.architecture,
                    seconds=self.seconds,
                )
            case ImageDay():
                image = Reference(Reference.parse(question.reference).name, digest=question.digest)
                return find_created(image, self._folder(), question.architecture, self.seconds)
            case ImageTags():
                return find_tags(Reference.parse(question.reference), self._folder(), self.seconds)
            case PackageSet():
                archive = self._archive(question.suite, question.architecture, question.over, question.takes)
                return archive.resolve(question.wanted)
            case PackageLists():
                return newest(question.form, question.addresses, question.architecture, self.seconds)
            case SourcePackage():
                archive = self._archive(question.suite, question.architecture)
                return archive.source(question.name).version
            case RemoteFile():
                return web.look(question.url, self.seconds)
            case Listing():
                return listed(web.read_page(question.url, self.seconds))
            case _:
                assert_never(question)

    def _folder(self) -> Path:
        self.home.work.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="watch-", dir=self.home.work))

    def _archive(
        self, suite: str, architecture: str, over: str = "", takes: tuple[str, ...] = ()
    ) -> DebianArchive:
        with self._apt:
            if (suite, over, architecture) not in self._archives:
                archive = DebianArchive(Tools(self.home), suite, architecture, over=over, takes=takes)
                archive.refresh()
                self._archives[suite, over, architecture] = archive
            return self._archives[suite, over, architecture]


class Shared:
    """Upstream for one look after another: what was answered just now is not asked again."""

    def __init__(self, home: Home, seconds: float, fresh: float = FRESH) -> None:
        self.home, self.seconds, self.fresh = home, seconds, fresh
        self.patience = bounded(seconds)
        self._lock = threading.Lock()
        self._begun = -fresh
        self._upstream: Upstream | None = None
        self._answers: dict[Question, Answer] = {}

    def ask(self, question: Question) -> Answer:
        """As Upstream's; an error is no answer, and asked for again."""
        with self._lock:
            if self._upstream is None or time.monotonic() - self._begun > self.fresh:
                self._upstream, self._answers = Upstream(self.home, self.seconds, self.patience), {}
                self._begun = time.monotonic()
            upstream, answers = self._upstream, self._answers
        if question not in answers:
            answers[question] = upstream.ask(question)
        return answers[question]
