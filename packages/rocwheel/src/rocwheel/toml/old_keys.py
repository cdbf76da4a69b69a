"""Keys that had another name: files of users still read, and one line says the name of today."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ConfigDict, ValidationInfo, model_validator

from rocwheel.errors import OldKeyWarning
from rocwheel.model import Frozen


def _with_old_keys(schema: dict[str, Any], model: type[Any]) -> None:
    """Editors accept the old keys too, and show them as deprecated."""
    fields = schema.get("properties", {})
    for old, new in model.OLD_KEYS.items():
        fields[old] = {**fields[new], "deprecated": True, "description": f"called `{new}` now"}


class WithOldKeys(Frozen):
    """A model of users' files some of whose keys had other names: `OLD_KEYS` maps these to those of today.

    Where a file has both, the old one is an unknown name.
    """

    model_config = ConfigDict(json_schema_extra=_with_old_keys)

    OLD_KEYS: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _with_todays_keys(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, dict):
            return data
        found = {old: new for old, new in cls.OLD_KEYS.items() if old in data and new not in data}
        if info.context is not None:
            info.context.update(found)
        return {found.get(name, name): value for name, value in data.items()} if found else data


def tell_old_keys(path: Path, found: Mapping[str, str]) -> None:
    """Warn of the old keys of a file, in one line for each."""
    for old, new in found.items():
        warnings.warn(
            f"{path}: the key `{old}` is called `{new}` now; the old name still works: rename it",
            OldKeyWarning,
            stacklevel=2,
        )
