"""A store that machines share: what lies where in its bucket, and which of its records count.

`format.json`, `keys.json`, `blobs/ab/SHA` (`store.blobs`), `records/ab/KEY/SIGNER`, and likewise `steps` (the
definitions of steps), `locks`, `wanted` (what is to be verified on a machine with a card) and `evidence`
(what was found there).
Files are named by their sha256; all else is signed, each signer's under the id of the key. Nothing is written
over but a signer's own definition, lock, wish and evidence by a newer one, and the list of keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from pydantic import ValidationError

from rocbase.errors import ExplainedError, NetworkError
from rocwright.model.steps import Step
from rocwright.store.blobs import Blobs
from rocwright.store.bucket import ASKED_AT_ONCE, Bucket
from rocwright.store.model import Origin, Output, Record, Store, is_key
from rocwright.store.seal import DamagedRecordError, UnknownRecordError, unseal
from rocwright.store.signed import LARGEST, NewerError, RefusedError, What, Word, word_of
from rocwright.store.trust import TrustedKey

FORMAT = "format.json"
KEYS = "keys.json"
SCHEMA = 1
FOLDERS: dict[What, str] = {
    "record": "records",
    "step": "steps",
    "lock": "locks",
    "wanted": "wanted",
    "evidence": "evidence",
}
MOST_NOTES = 50


# A record, and the word of its signer that it is from.
Signed = tuple[Word, Record]


def word_name(kind: What, name: str, keyid: str) -> str:
    """Where the word of a signer lies."""
    return f"{FOLDERS[kind]}/{name[:2]}/{name}/{keyid}"


@dataclass(slots=True, kw_only=True)
class SharedStore:
    """What trusted keys signed in a bucket.

    `agree` of them must have signed the same outputs, each without what another has compiled. What was
    refused and why, and that the bucket does not answer, is told to `note`, each once; after that nothing
    more is asked of a bucket that does not answer.
    """

    name: str
    bucket: Bucket
    keys: Sequence[TrustedKey]
    note: Callable[[str], None]
    agree: int = 1
    silent: bool = False
    _told: set[str] = field(default_factory=set)

    def record(self, key: str) -> Record | None:
        """The record of a key that enough trusted signers agree on, with where it is from; else None."""
        accepted: list[Signed] = []
        for signer, word, record in self._records(key):
            if self.agree > 1 and (compilers := record.compiled_by_others(word.keyid)):
                whose = ", ".join(compiler[:12] for compiler in compilers[:4])
                self.say(
                    f"{self.name}: the record of {key[:12]} by {signer.name} does not count for {self.agree} "
                    f"that agree: a part of it was compiled by another signer ({whose})"
                )
                continue
            accepted.append((word, record))
        groups = _alike(accepted)
        if len(groups) > 1:
            self.say(f"{self.name}: {key[:12]} is not reproducible: {len(groups)} different outputs")
        enough = [best for group in groups if (best := _agreed(group, self.agree)) is not None]
        if len(enough) != 1:
            if accepted and not enough:
                self.say(f"{self.name}: {key[:12]} was refused: fewer than {self.agree} signers agree on it")
            return None
        word, record = enough[0]
        by = next((key.name for key in self.keys if key.keyid == word.keyid), word.keyid[:12])
        origin = Origin(store=self.name, keyid=word.keyid, by=by, signed=word.signed)
        return record.model_copy(update={"origin": origin})

    def signers(self, record: Record) -> frozenset[str]:
        """The ids of the trusted keys that say the same of that step, each without what another compiled."""
        return frozenset(
            word.keyid
            for _, word, peer in self._records(record.key)
            if peer.gave_same(record) and not peer.compiled_by_others(word.keyid)
        )

    def _records(self, key: str) -> Iterator[tuple[TrustedKey, Word, Record]]:
        """What trusted signers say that a key gave; what cannot be read is told."""
        for signer, word in self.words("record", key):
            try:
                record = unseal(word.content.encode(), key)
            except (DamagedRecordError, UnknownRecordError) as error:
                self.say(f"{self.name}: the record of {key[:12]} by {signer.name} was refused: {error}")
                continue
            if all(is_key(output.sha256) and output.size >= 0 for output in record.outputs):
                yield signer, word, record
            else:
                self.say(
                    f"{self.name}: the record of {key[:12]} by {signer.name} was refused: it names no files"
                )

    def lock(self, name: str) -> Word | None:
        """The newest lock of that name that a trusted key signed."""
        words = [word for _, word in self.words("lock", name)]
        return max(words, key=lambda word: word.signed, default=None)

    def fetch(self, output: Output, begin: int) -> Iterator[bytes]:
        """The bytes of a file from one on, unchecked. Raises KeyError, NetworkError, InputError."""
        return Blobs(self.bucket).chunks(output.sha256, output.size, begin)

    def is_whole(self, record: Record) -> bool:
        """Whether the files that a record names lie there, each of its size; so too where nobody answers."""
        try:
            with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
                blobs = Blobs(self.bucket)
                return all(pool.map(lambda output: blobs.has(output.sha256, output.size), record.outputs))
        except ExplainedError:
            return True

    def step(self, key: str) -> bytes | None:
        """Return the definition of a step by a trusted key; None also for one that does not give its key.

        It says what a step's key does not cover, such as its trust domain, hence the signature.
        """
        definitions = (word.content for _, word in self.words("step", key) if defines(word, key))
        return next((content.encode() for content in definitions), None)

    def words(self, kind: What, name: str) -> Iterator[tuple[TrustedKey, Word]]:
        """The words of all trusted signers that count."""
        for signer, _, word in self.envelopes(kind, name):
            yield signer, word

    def envelopes(self, kind: What, name: str) -> Iterator[tuple[TrustedKey, bytes, Word]]:
        """The same with the envelope of each, as it lies there."""
        for signer in self.keys:
            path = word_name(kind, name, signer.keyid)
            data = self._answer(partial(self.bucket.get, path, LARGEST))
            if data is None:
                continue
            try:
                word = word_of(data, kind, name, [signer.key])
            except NewerError as error:
                self.say(f"{self.name}: the {kind} {name[:12]} by {signer.name} is passed over: {error}")
                continue
            except RefusedError as error:
                self.say(f"{self.name}: the {kind} {name[:12]} by {signer.name} was refused: {error}")
                continue
            if signer.revoked and word.signed >= signer.revoked:
                since = f"signed {word.signed}, and the key is revoked since {signer.revoked}"
                self.say(f"{self.name}: the {kind} {name[:12]} by {signer.name} was refused: {since}")
                continue
            yield signer, data, word

    def names(self, kind: What) -> list[str]:
        """The names of which somebody said this, whoever it was. Raises NetworkError, InputError."""
        paths = (entry.name.split("/") for entry in self.bucket.list(FOLDERS[kind]))
        return sorted({parts[2] for parts in paths if len(parts) == 4 and is_key(parts[2])})

    def _answer(self, ask: Callable[[], bytes | None]) -> bytes | None:
        """What the bucket answers; nothing where it does not, which is said once."""
        if self.silent:
            return None
        try:
            return ask()
        except ExplainedError as error:
            # of several that were asked for at once, the first tells
            silent, self.silent = self.silent, self.silent or isinstance(error, NetworkError)
            if not silent:
                self.say(f"{self.name}: {error.message} ({error.cause})")
            return None

    def say(self, text: str) -> None:
        """Note something once, on one line: some of its words may be a stranger's."""
        text = "".join(char for char in text if char.isprintable())
        if text not in self._told and len(self._told) < MOST_NOTES:
            self._told.add(text)
            self.note(text)


def signers(store: Store, record: Record) -> frozenset[str]:
    """The ids of the keys of those who made the same of that step, as far as they are trusted, without what
    another compiled; "" where it ran on this machine, which signs nothing in its own folder."""
    ran_by = record.ran_by or (record.origin.keyid if record.origin is not None else "")
    here = frozenset[str]() if record.compiled_by_others() else frozenset([ran_by])
    return here.union(*(peer.signers(record) for peer in store.shared))


def published_lock(store: Store, name: str) -> tuple[str, Word] | None:
    """The lock that somebody trusted has published under that name, a sha256, and in which store."""
    locks = ((peer.name, peer.lock(name)) for peer in store.shared)
    return next(((peer, word) for peer, word in locks if word is not None), None)


def defines(word: Word, key: str) -> bool:
    """Return whether a word is the definition of the step with that key."""
    try:
        return Step.model_validate_json(word.content).key == key
    except ValidationError:
        return False


def _alike(signed: Sequence[Signed]) -> list[list[Signed]]:
    """Those that gave the same, together, also where only a third, which says its content, is like both."""
    groups: list[list[Signed]] = []
    for pair in signed:
        like = [group for group in groups if any(pair[1].gave_same(record) for _, record in group)]
        groups = [group for group in groups if group not in like]
        groups.append([*chain.from_iterable(like), pair])
    return groups


def _agreed(group: Sequence[Signed], quorum: int) -> Signed | None:
    """The one of a group that most of it gave, and so many at least."""
    votes = [(sum(pair[1].gave_same(record) for _, record in group), pair) for pair in group]
    count, best = max(votes, key=lambda vote: vote[0])
    return best if count >= quorum else None
