"""A report for a bug, with names, serials, addresses, passwords and tokens taken out."""

from __future__ import annotations

import io
import ipaddress
import json
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from rocbase.errors import InputError, InternalError
from rocbase.files.atomic import write_atomic
from rocwright.diagnosis.machine.tree import Tree
from rocwright.diagnosis.masking import tells_of_tokens

# Letters of a name from which on it is taken out wherever it stands; shorter ones are common words.
SHORTEST = 3

_COMMON = frozenset(
    {"root", "localhost", "unknown", "none", "default string", "to be filled by o.e.m.", "(none)"}
)

_FILES = {
    "machine-id": ("/etc/machine-id", "/var/lib/dbus/machine-id", "/proc/sys/kernel/random/boot_id"),
    "host": ("/etc/hostname", "/proc/sys/kernel/hostname", "/proc/sys/kernel/domainname"),
    "serial": tuple(
        f"/sys/class/dmi/id/{name}"
        for name in ("product_serial", "product_uuid", "board_serial", "chassis_serial", "board_asset_tag")
    ),
}

_PATTERNS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(?<=://)[^/\s:@]+(?::[^/\s@]*)?@"), "[login]@"),
    (re.compile(r"(?i)\b(authorization[\"']?\s*[:=]\s*[\"']?)(?:[a-z]+ +)?[^\s\"',;]+"), r"\1[secret]"),
    (
        re.compile(r"(?i)((?:password|passwd|secret|token|api[_-]?key)[\"']?\s*=\s*[\"']?)([^\s\"'&,;]+)"),
        lambda match: match[0] if tells_of_tokens(match[1], match[2]) else f"{match[1]}[secret]",
    ),
    (re.compile(r"\b(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}\b"), "[mac]"),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "[uuid]"),
    (re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?!\d|\.\d)"), "[address]"),
    (re.compile(r"/(?:home|Users)/[^/\s:\"']+"), "/home/[user]"),
)

# Variables of the environment whose content nobody else may know.
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY", re.IGNORECASE
)

# Letters of such content from which on it is taken out; shorter is `true`, `yes` or a number.
_SHORTEST_SECRET = 6

_MAYBE_ADDRESS = re.compile(r"(?<!\w)[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?!\w)")
_PLACEHOLDER = re.compile(r"\[[a-z-]+\]")


def secrets(
    tree: Tree, user: str, home: str, environment: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """What must not be told of a machine, or of an environment -> the word that stands for it."""
    words = {home: "[home]"} if home not in ("", "/") else {}
    # a user without a line in passwd is called by a number, which tells nothing
    words |= {} if user.isdecimal() else {user: "[user]"}
    hidden = (text for name, text in environment.items() if _SECRET_NAME.search(name))
    words |= {text: "[secret]" for text in hidden if len(text) >= _SHORTEST_SECRET}
    for word, files in _FILES.items():
        for file in files:
            text = tree.text(file) or ""
            words |= dict.fromkeys((text, text.partition(".")[0]), f"[{word}]")
    for name in tree.names("/sys/class/net"):
        words[tree.text(f"/sys/class/net/{name}/address") or ""] = "[mac]"
    for card in tree.names("/sys/class/drm"):
        words[tree.text(f"/sys/class/drm/{card}/device/unique_id") or ""] = "[serial]"
        words[tree.text(f"/sys/class/drm/{card}/device/serial_number") or ""] = "[serial]"
    for node in tree.names("/sys/class/kfd/kfd/topology/nodes"):
        number = tree.table(f"/sys/class/kfd/kfd/topology/nodes/{node}/properties").get("unique_id", 0)
        words |= (
            {str(number): "[serial]", f"{number:016x}": "[serial]", f"{number:x}": "[serial]"}
            if number
            else {}
        )
    telling = {secret: word for secret, word in words.items() if _telling(secret)}
    return dict(sorted(telling.items(), key=lambda pair: -len(pair[0])))


def _telling(secret: str) -> bool:
    return len(secret) >= SHORTEST and secret.lower() not in _COMMON and bool(secret.strip("0:-. "))


def clean(text: str, redactions: dict[str, str]) -> str:
    """A text without the secrets of a machine, and without what looks like one."""
    for secret, word in redactions.items():
        text = _whole_word(secret).sub(word, text)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return _MAYBE_ADDRESS.sub(_address, text)


def _address(match: re.Match[str]) -> str:
    """What stands for an address of the Internet; another thing stays (a PCI address, a time, a version)."""
    try:
        ipaddress.ip_address(match[0])
    except ValueError:
        return match[0]
    return "[address]"


def _whole_word(secret: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9]){re.escape(secret)}(?![A-Za-z0-9])", re.IGNORECASE)


def clean_data(data: object, redactions: dict[str, str]) -> object:
    """The same for data: every text in it, names of fields too."""
    match data:
        case str():
            return clean(data, redactions)
        case dict():
            return {
                clean(str(name), redactions): clean_data(value, redactions) for name, value in data.items()
            }
        case list() | tuple():
            return [clean_data(entry, redactions) for entry in data]
        case _:
            return data


def write_bundle(path: Path, files: Mapping[str, object], redactions: dict[str, str]) -> None:
    """The files as .zip or .tar.gz, by the name's ending: a text as it is, other data as JSON.

    Raises InputError for another ending, InternalError where a secret would be left in.
    """
    texts = {name: _cleaned(content, redactions) for name, content in files.items()}
    leaks = sorted(set(_remaining_secrets(texts.values(), redactions)))
    if leaks:
        raise InternalError(
            f"the report would still contain {', '.join(leaks)}",
            cause="a fault of rocwright: its redaction of reports missed this",
            next_step="report this as a bug of rocwright, without attaching the report",
        )
    packed = {name: content.encode() for name, content in texts.items()}
    if path.name.endswith(".zip"):
        write_atomic(path, _zip(packed))
    elif path.name.endswith((".tar.gz", ".tgz")):
        write_atomic(path, _tar(packed))
    else:
        raise InputError(
            f"{path.name} is not a valid name for a bundle",
            cause="its ending chooses the format",
            next_step="use a name that ends in .tar.gz or .zip: doctor.tar.gz",
        )


def _cleaned(content: object, redactions: dict[str, str]) -> str:
    if isinstance(content, str):
        return clean(content, redactions) + "\n"
    return json.dumps(clean_data(content, redactions), indent=2, ensure_ascii=False) + "\n"


def _remaining_secrets(texts: Iterable[str], redactions: dict[str, str]) -> Iterator[str]:
    for text in (_PLACEHOLDER.sub(" ", text) for text in texts):
        yield from (word for secret, word in redactions.items() if _whole_word(secret).search(text))


def _zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(f"doctor/{name}"), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _tar(files: dict[str, bytes]) -> bytes:
    """Owners and times are left at zero: they are this machine's."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"doctor/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
