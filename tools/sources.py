"""A hook of hatchling for wheels that are built in a checkout: rocbase and rocwheel come from there, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.builders.wheel import WheelBuilder, WheelBuilderConfig


class CheckoutHook(BuildHookInterface[WheelBuilderConfig]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Replace the packages in the dependencies: by their folders, or by what they need themselves.

        An editable install needs no more, because `dev-mode-dirs` has their sources; of a folder, pip would
        install a copy that later changes of the checkout do not reach. An sdist keeps their names.
        """
        if Path(self.root, "PKG-INFO").exists():
            return
        dependencies = self.metadata.core.dependencies
        for package in sorted(Path(self.root, "packages").iterdir()):
            if version == "editable":
                dependencies += WheelBuilder(str(package)).metadata.core.dependencies
            else:
                dependencies.append(f"{package.name} @ {package.as_uri()}")
        dependencies[:] = {line for line in dependencies if not line.startswith(("rocbase<", "rocwheel<"))}
        dependencies.sort()
