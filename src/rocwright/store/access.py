"""What somebody must be allowed to do with the objects of a shared store, as a policy of its cloud.

Sources: S3, "Actions, resources, and condition keys" (service authorization reference), where a star in a
resource stands for any characters; Google Cloud Storage, "IAM Conditions" and "IAM roles" (objectCreator
cannot write over what is there); Azure, "Example role assignment conditions for Blob Storage".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rocbase.errors import InputError
from rocwright.store.bucket import checked_url
from rocwright.store.shared import FOLDERS, FORMAT, KEYS

Role = Literal["reader", "builder", "keeper"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """Patterns of names below the store's folder, where a star stands for anything: what may be added, what
    also written over, and what also removed. Everything may be read and listed."""

    add: tuple[str, ...] = ()
    replace: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


def rights(role: Role, keyid: str) -> Rights:
    """What a role needs; `keyid` is that of the key that signs, a star for any."""
    if role == "reader":
        return Rights()
    if role == "keeper":
        return Rights(remove=("*",))
    words = {kind: f"{folder}/*/{keyid}" for kind, folder in FOLDERS.items()}
    return Rights(
        add=("blobs/*", words.pop("record"), f"keys/{keyid}", FORMAT),
        replace=(*words.values(), KEYS),
        remove=("leases/*", "probe/*"),
    )


def policy(url: str, role: Role, keyid: str = "*") -> Any:
    """The policy that gives a role what it needs in the store at a URL, as JSON has it.

    Raises InputError for a place that has no such policies.
    """
    parts = checked_url(url)
    make = _MAKERS.get(parts.scheme)
    if make is None:
        raise InputError(
            f"{parts.scheme}:// has no policies that rocwright knows",
            cause="they are written for s3://, gs:// and az://",
            next_step="a folder has the permissions of its file system; a web server gives read access",
        )
    return make(parts.netloc, parts.path.strip("/"), rights(role, keyid))


def _prefixed(prefix: str, patterns: Sequence[str]) -> list[str]:
    return [f"{prefix}/{pattern}" if prefix else pattern for pattern in patterns]


def _s3(bucket: str, prefix: str, granted: Rights) -> Any:
    arn = f"arn:aws:s3:::{bucket}"

    def statement(name: str, actions: list[str], patterns: Sequence[str]) -> dict[str, Any]:
        resources = [f"{arn}/{pattern}" for pattern in _prefixed(prefix, patterns)]
        return {"Sid": name, "Effect": "Allow", "Action": actions, "Resource": resources}

    # without the right to list, what is missing is answered with 403 and not with 404; that request has no
    # prefix, hence IfExists
    listing: dict[str, Any] = {"Sid": "List", "Effect": "Allow", "Action": ["s3:ListBucket"]}
    listing |= {"Resource": [arn]}
    if prefix:
        listing |= {"Condition": {"StringLikeIfExists": {"s3:prefix": [f"{prefix}/*"]}}}
    put = ["s3:PutObject", "s3:AbortMultipartUpload"]
    rows = [listing, statement("Read", ["s3:GetObject"], ["*"])]
    rows += [statement("Add", put, granted.add)] if granted.add else []
    rows += [statement("Replace", put, granted.replace)] if granted.replace else []
    rows += [statement("Remove", [*put, "s3:DeleteObject"], granted.remove)] if granted.remove else []
    return {"Version": "2012-10-17", "Statement": rows}


def _gs(bucket: str, prefix: str, granted: Rights) -> Any:
    root = f"projects/_/buckets/{bucket}"

    def one_of(patterns: Sequence[str]) -> str:
        terms = []
        for pattern in _prefixed(prefix, patterns):
            begin, _, end = pattern.partition("*")
            last = end.rpartition("*")[2]
            head = f'resource.name.startsWith("{root}/objects/{begin}")'
            terms.append(f'({head} && resource.name.endsWith("{last}"))' if last else head)
        return " || ".join(terms)

    def binding(name: str, role: str, expression: str) -> dict[str, Any]:
        condition = {"title": f"rocwright-{name}", "expression": expression}
        return {"role": f"roles/storage.{role}", "members": ["MEMBER"], "condition": condition}

    # a list is asked of the bucket, not of an object
    readable = f'resource.type == "storage.googleapis.com/Bucket" || {one_of(["*"])}'
    rows = [binding("read", "objectViewer", readable)]
    rows += [binding("add", "objectCreator", one_of(granted.add))] if granted.add else []
    written = (*granted.replace, *granted.remove)
    rows += [binding("replace", "objectUser", one_of(written))] if written else []
    return {"version": 3, "bindings": rows}


def _az(container: str, prefix: str, granted: Rights) -> Any:
    scope = (
        "/subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/Microsoft.Storage/storageAccounts/ACCOUNT"
        f"/blobServices/default/containers/{container}"
    )
    blobs = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"

    def only(actions: Sequence[str], patterns: Sequence[str]) -> str:
        these = " AND ".join(f"!(ActionMatches{{'{blobs}/{action}'}})" for action in actions)
        names = ", ".join(f"'{pattern}'" for pattern in _prefixed(prefix, patterns))
        return f"(({these}) OR (@Resource[{blobs}:path] ForAnyOfAnyValues:StringLike {{{names}}}))"

    rows: list[dict[str, Any]] = [{"role": "Storage Blob Data Reader", "scope": scope}]
    if granted.add or granted.remove:
        written = (*granted.add, *granted.replace, *granted.remove)
        may = f"{only(['write', 'add/action'], written)} AND {only(['delete'], granted.remove)}"
        rows.append(
            {
                "role": "Storage Blob Data Contributor",
                "scope": scope,
                "conditionVersion": "2.0",
                "condition": may,
            }
        )
    return rows


_MAKERS: dict[str, Callable[[str, str, Rights], Any]] = {"s3": _s3, "gs": _gs, "az": _az}
