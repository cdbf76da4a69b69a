"""Who may do what: tokens hashed at rest, sessions, a limit on attempts, and a secret in every form."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import StringConstraints, ValidationError

from rocbase.errors import InputError
from rocbase.files.atomic import write_atomic
from rocbase.model import Frozen

Scope = Literal["read", "run", "promote"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

SESSION_SECONDS = 12 * 3600.0
MOST_SESSIONS = 1000
# Wrong tokens that one address may give in so many seconds before it is told to wait; ten times as many from
# all addresses. It slows down who tries, and nobody who has a token.
ATTEMPTS, ATTEMPT_SECONDS = 5, 60.0


class Token(Frozen):
    """A token as it is kept: whose it is, what it is good for, the sha256 of its 256 random bits."""

    name: str
    scopes: tuple[Scope, ...]
    sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
    made: str = ""


class _Tokens(Frozen):
    token: tuple[Token, ...] = ()


class Tokens:
    """The tokens in a file that only its owner reads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[tuple[int, int], tuple[Token, ...]] | None = None

    def now(self) -> tuple[Token, ...]:
        """Every token; read anew only where the file changed. Raises InputError where it is damaged."""
        try:
            stat = self.path.stat()
        except OSError:
            return ()
        mark = (stat.st_mtime_ns, stat.st_size)
        if self._seen is None or self._seen[0] != mark:
            self._seen = (mark, self.all())
        return self._seen[1]

    def all(self) -> tuple[Token, ...]:
        """Every token. Raises InputError where the file is damaged."""
        try:
            return _Tokens.model_validate_json(self.path.read_bytes()).token
        except FileNotFoundError:
            return ()
        except (ValidationError, OSError) as error:
            raise InputError(
                f"{self.path} cannot be read as a list of tokens",
                cause=str(error).splitlines()[0],
                next_step="remove the file and make new tokens: rocwright serve token add NAME",
            ) from error

    def add(self, name: str, scopes: Iterable[Scope], created: str = "") -> str:
        """Make a token and give it; it cannot be read again. Raises InputError where the name is taken."""
        tokens = self.all()
        if any(token.name == name for token in tokens):
            raise InputError(
                f"there is already a token {name}",
                cause="token names are unique",
                next_step=f"use another name, or first run: rocwright serve token remove {name}",
            )
        secret = secrets.token_urlsafe(32)
        token = Token(name=name, scopes=with_read(scopes), sha256=_hash(secret), made=created)
        self._write((*tokens, token))
        return secret

    def remove(self, name: str) -> None:
        """Forget a token. Raises InputError where there is none of that name."""
        tokens = self.all()
        if not any(token.name == name for token in tokens):
            raise InputError(
                f"there is no token {name}",
                cause="it was removed, or its name is misspelled",
                next_step="rocwright serve token list shows the names",
            )
        self._write(tuple(token for token in tokens if token.name != name))

    def _write(self, tokens: tuple[Token, ...]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(_Tokens(token=tokens).model_dump(), indent=1)
        write_atomic(self.path, f"{text}\n", mode=0o600)


def with_read(scopes: Iterable[Scope]) -> tuple[Scope, ...]:
    """The scopes in order; whoever may do anything may read."""
    granted = {*scopes, "read"}
    return tuple(scope for scope in SCOPES if scope in granted)


def _hash(secret: str) -> str:
    # 256 random bits cannot be guessed from their hash: no slow hash is needed
    return hashlib.sha256(secret.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """Somebody who gave a token: `secret` is what every form must carry. It ends with its token."""

    name: str
    scopes: tuple[Scope, ...]
    secret: str
    ends: float
    token: str


class TooManyError(Exception):
    """Too many wrong tokens; `seconds` until they are few enough again."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds


@dataclass(slots=True)
class Access:
    """The guard of a server. `open_`: anybody may read. `first` is the token of owner."""

    tokens: Tokens
    open_: bool = False
    first: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    clock: Callable[[], float] = time.monotonic
    _sessions: OrderedDict[str, SignIn] = field(default_factory=OrderedDict)
    _wrong: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)
    _all_wrong: deque[float] = field(default_factory=lambda: deque(maxlen=10 * ATTEMPTS))

    def enter(self, secret: str) -> str:
        """The id of a new session, for a token; "" for a wrong one."""
        session = self.known(secret)
        if session is None:
            return ""
        ident = secrets.token_urlsafe(32)
        self._sessions[ident] = session
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return ident

    def known(self, secret: str) -> SignIn | None:
        """Whose token it is, None for a wrong one. A right one is known whatever others tried."""
        token = self._find(secret)
        if token is None:
            return None
        return SignIn(
            name=token.name,
            scopes=token.scopes,
            secret=secrets.token_urlsafe(32),
            ends=self.clock() + SESSION_SECONDS,
            token=token.sha256,
        )

    def wrong(self, address: str) -> None:
        """Count a wrong token that was given in the form. Raises TooManyError."""
        since = self.clock() - ATTEMPT_SECONDS
        mine = self._wrong.setdefault(address, deque(maxlen=ATTEMPTS))
        while len(self._wrong) > MOST_SESSIONS:
            self._wrong.popitem(last=False)
        for attempts, limit in ((mine, ATTEMPTS), (self._all_wrong, 10 * ATTEMPTS)):
            recent = [moment for moment in attempts if moment > since]
            if len(recent) >= limit:
                raise TooManyError(recent[0] - since)
        mine.append(self.clock())
        self._all_wrong.append(self.clock())

    def _find(self, secret: str) -> Token | None:
        digest = _hash(secret)
        match = None
        for token in self._tokens_on_file():
            if hmac.compare_digest(token.sha256, digest):
                match = token
        return match

    def _tokens_on_file(self) -> tuple[Token, ...]:
        mine = Token(name="owner", scopes=SCOPES, sha256=_hash(self.first))
        return (mine, *self.tokens.now())

    def session(self, ident: str) -> SignIn | None:
        """The session of that id, if neither it nor its token has ended."""
        session = self._sessions.get(ident)
        if (
            session is None
            or session.ends <= self.clock()
            or all(session.token != token.sha256 for token in self._tokens_on_file())
        ):
            self._sessions.pop(ident, None)
            return None
        return session

    def leave(self, ident: str) -> None:
        """End a session."""
        self._sessions.pop(ident, None)

    def may(self, session: SignIn | None, scope: Scope) -> bool:
        """Whether somebody may do something."""
        if session is not None:
            return scope in session.scopes
        return self.open_ and scope == "read"
