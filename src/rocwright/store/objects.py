"""Single compiled objects that machines share in a bucket, apart by trust domain.

`objects/DOMAIN/ab/KEY/SIGNER`: the first line is a signed envelope, which names the domain, the key, sha256
and size of the bytes that follow, and the ids of other keys whose objects may have had a part in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import Field, ValidationError

from rocwheel.errors import NetworkError, RocwrightError
from rocwheel.model import Frozen
from rocwright.store.bucket import Bucket
from rocwright.store.model import is_key
from rocwright.store.signed import RefusedError, envelope_of, word_of
from rocwright.store.trust import TrustedKey

if TYPE_CHECKING:
    from securesystemslib.signer import CryptoSigner

FOLDER = "objects"
LARGEST = 64 * 1024 * 1024
"""Bytes of an object; ccache compresses them, and the largest of PyTorch for several GPUs has some 20 MiB."""

SECONDS = 20.0
"""For one answer of the bucket, a whole object included: later, compiling is quicker."""

MOST_HEAD = 64 * 1024
MOST_SIGNERS = 100
MOST_NOTES = 20
_KEY = re.compile(r"[0-9a-v]{16,128}")

T = TypeVar("T")


def is_object_key(text: str) -> bool:
    """Whether a text is a name that ccache gives an object: digits of base 16 or 32."""
    return _KEY.fullmatch(text) is not None


def folder_of(domain: str, key: str) -> str:
    """Where the objects of that key lie, one a signer. Raises ValueError for what is no domain or no key."""
    if not (is_key(domain) and is_object_key(key)):
        raise ValueError("it is not the name of an object")
    return f"{FOLDER}/{domain}/{key[:2]}/{key}"


class _Content(Frozen):
    """What is signed of an object."""

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0, le=LARGEST)]
    others: Annotated[
        tuple[Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")], ...], Field(max_length=MOST_SIGNERS)
    ] = ()


@dataclass(frozen=True, slots=True)
class Taken:
    """An object that counts: its bytes, who signed it, and whose objects may have had a part in it."""

    data: bytes
    keyid: str
    others: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class DomainObjects:
    """The objects of one trust domain in a bucket, as this machine may take them, and puts them there.

    An object counts where a trusted key signed it and all whose objects had a part in it are trusted too.
    What was refused and why, and that the bucket does not answer, is told to `note`, each once; after that
    nothing more is asked of it.
    """

    bucket: Bucket
    domain: str
    keys: Sequence[TrustedKey]
    signer: CryptoSigner
    note: Callable[[str], None]
    silent: bool = False
    _told: set[str] = field(default_factory=set)

    @property
    def own(self) -> str:
        """The id of the key that signs here."""
        return str(self.signer.public_key.keyid)

    def get(self, key: str) -> Taken | None:
        """An object of that key, this machine's own first; None where there is none that counts."""
        folder = folder_of(self.domain, key)
        names = self._asked(lambda: list(islice(self.bucket.list(folder), MOST_SIGNERS))) or ()
        there = {one.name.rpartition("/")[2] for one in names}
        for signer in sorted(self.keys, key=lambda one: one.keyid != self.own):
            if signer.keyid in there:
                name = f"{folder}/{signer.keyid}"
                data = self._asked(partial(self.bucket.get, name, LARGEST + MOST_HEAD))
                try:
                    if data is not None:
                        return self._checked(data, key, signer)
                except RefusedError as error:
                    self.say(f"a compiled object by {signer.name} was refused: {error}")
        return None

    def put(self, key: str, data: bytes, others: Sequence[str] = ()) -> bool:
        """Put an object there, signed by this machine, unless it has put one of that key; whether it is
        there. `others` are the ids of keys whose objects may have had a part in it."""
        if len(data) > LARGEST or len(others) > MOST_SIGNERS:
            return False
        content = _Content(sha256=sha256(data).hexdigest(), size=len(data), others=tuple(sorted(others)))
        said = envelope_of("object", f"{self.domain}/{key}", content.model_dump_json(), self.signer)
        name = f"{folder_of(self.domain, key)}/{self.own}"
        # False where it is there already; None where it could not be asked
        return self._asked(partial(self.bucket.add, name, said + data)) is not None

    def _checked(self, data: bytes, key: str, signer: TrustedKey) -> Taken:
        """Raises RefusedError."""
        head, line, body = data[:MOST_HEAD].partition(b"\n")
        if not line:
            raise RefusedError("it has no signature")
        body = data[len(head) + 1 :]
        word = word_of(head, "object", f"{self.domain}/{key}", [signer.key])
        if signer.revoked and word.signed >= signer.revoked:
            raise RefusedError(f"signed {word.signed}, and the key is revoked since {signer.revoked}")
        try:
            content = _Content.model_validate(json.loads(word.content))
        except (ValueError, RecursionError, ValidationError) as error:
            raise RefusedError("what is signed has another form") from error
        if (len(body), sha256(body).hexdigest()) != (content.size, content.sha256):
            raise RefusedError("its bytes are not those that were signed: it was damaged or replaced")
        trusted = {one.keyid for one in self.keys if not one.revoked}
        if strangers := set(content.others) - trusted:
            named = ", ".join(sorted(one[:12] for one in strangers)[:4])
            raise RefusedError(f"objects of keys that are not trusted here had a part in it: {named}")
        return Taken(body, signer.keyid, content.others)

    def _asked(self, ask: Callable[[], T]) -> T | None:
        """What the bucket answers; nothing where it does not, which is said once."""
        if self.silent:
            return None
        try:
            return ask()
        except KeyError:
            return None
        except RocwrightError as error:
            # of several that were asked for at once, the first tells
            told, self.silent = self.silent, self.silent or isinstance(error, NetworkError)
            if not told:
                self.say(f"{error.message} ({error.cause})")
            return None

    def say(self, text: str) -> None:
        """Note something once, on one line: some of its words may be a stranger's."""
        text = "".join(one for one in text if one.isprintable())
        if text not in self._told and len(self._told) < MOST_NOTES:
            self._told.add(text)
            self.note(f"shared compiler cache: {text}")
