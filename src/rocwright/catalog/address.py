"""Files at an address of the web: the source of a release, or what its build would download by itself."""

from __future__ import annotations

from typing import Annotated, Self
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, Field, model_validator

from rocbase.http.address import checked
from rocbase.model import Frozen
from rocwright.model.edits import Range

# An address that ends in the name of a file.
Url = Annotated[str, Field(pattern=r"^https?://[^\s/]+/[^\s?#]*[^\s?#/]$"), AfterValidator(checked)]


def filename_of(url: str) -> str:
    """The name of the file at an address."""
    return unquote(urlsplit(url).path.rpartition("/")[2])


class FileAddress(Frozen):
    """A file at `url`, with the hashes that are known of it; without one, the first online lock tells."""

    url: Url
    sha256: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    sha512: Annotated[str, Field(pattern=r"^([0-9a-f]{128})?$")] = ""

    @property
    def filename(self) -> str:
        return filename_of(self.url)


class ArchivePlace(FileAddress):
    """A release that lies in an archive at an address, perhaps in a folder of it."""

    subdir: str = ""


class Download(FileAddress):
    """A file that a build wants beside its source, and would fetch by itself if it had a network.

    `for` are the versions of the component that want it, `source` tells where that is from.
    """

    versions: Range = Field(default="", alias="for")
    source: str

    @model_validator(mode="after")
    def _is_known(self) -> Self:
        if not self.sha256 and not self.sha512:
            raise ValueError(
                f"{self.filename} needs a sha256 or sha512: a build only downloads files with a known hash"
            )
        return self
