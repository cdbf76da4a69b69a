"""How a model is named on a hub: hf:OWNER/NAME, with a file behind it, and a revision where it matters."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rocbase.errors import InputError
from rocwright.serving.models.refused import shown

SCHEME = "hf:"
DEFAULT_REVISION = "main"

_WORD = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}"
_PAGE = re.compile(
    r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/([^/?#]+/[^/?#]+)(?:/[a-z]+/([^/?#]+)/?([^?#]*))?.*"
)
"""The address of a repository in a browser, or of a file in it."""
_FILE = re.compile(r"[^/]*/[^/]*\.(?:gguf|safetensors|bin|pth?|ckpt)")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class ModelAddress:
    """A repository of a hub, a file of it (all of it, where empty), and a revision."""

    repository: str
    file: str
    revision: str = DEFAULT_REVISION

    @property
    def is_commit(self) -> bool:
        """Whether the revision can never name anything else."""
        return _COMMIT.fullmatch(self.revision) is not None

    def at(self, commit: str) -> str:
        """How exactly what was brought is named."""
        return f"{SCHEME}{self.repository}@{commit}" + (f"/{self.file}" if self.file else "")


def parse_address(words: str) -> ModelAddress:
    """Raises InputError for what names no repository, or a file that cannot be in one."""
    repository, _, remainder = words.removeprefix(SCHEME).strip("/").partition("/")
    name, _, file = remainder.partition("/")
    name, _, revision = name.partition("@")
    address = ModelAddress(f"{repository}/{name}", file, revision or DEFAULT_REVISION)
    words_fit = all(re.fullmatch(_WORD, part) for part in (repository, name, address.revision))
    if not words_fit or ".." in name or (file and not is_safe(file)):
        raise InputError(
            f"{shown(words)} names no model of a hub",
            cause="it is not OWNER/NAME, with a file behind it or not",
            next_step="write hf:OWNER/NAME/FILE, or hf:OWNER/NAME@REVISION/FILE",
        )
    return address


def as_address(words: str) -> str:
    """Return how a page of a hub, or OWNER/NAME as a hub shows it, is named here; "" for another text."""
    if page := _PAGE.fullmatch(words):
        repository, revision, file = page.groups(default="")
        words = repository + (f"@{revision}" if revision not in ("", DEFAULT_REVISION) else "")
        words += f"/{file}" if file else ""
    elif _FILE.fullmatch(words) or words.startswith(SCHEME):
        return ""
    try:
        parse_address(words)
    except InputError:
        return ""
    return f"{SCHEME}{words}"


def is_safe(file: str) -> bool:
    """Whether a file's name in a repository stays inside of it, here too."""
    parts = file.split("/")
    return len(file) < 1024 and file.isprintable() and "\\" not in file and not {"", ".", ".."} & set(parts)
