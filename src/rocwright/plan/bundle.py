"""Puts archives that stand in for a library into the artifact that takes them in."""

from __future__ import annotations

from collections.abc import Iterable

from rocwright.catalog.model import Component

# The commands after it run in the unpacked artifact. $LICENSES is the folder for licence texts.
UNPACK = """# libraries that replace the ROCm's own go into the artifact
rm -rf /build/bundle && mkdir /build/bundle && cd /build/bundle
made=$(echo $OUT/*)
case $made in *.whl) python3 -m wheel unpack "$made" ;; *) tar -xf "$made" ;; esac
cd ./*
LICENSES=$PWD/licenses
case $made in *.whl) LICENSES=$(echo "$PWD"/*.dist-info)/licenses ;; esac"""

PACK = r"""case $made in
  *.whl) rm "$made" && python3 -m wheel pack . --dest-dir $OUT ;;
  *) tar --sort=name --mtime=@$SOURCE_DATE_EPOCH --owner=0 --group=0 --numeric-owner --format=ustar \
    -C .. -cf - "${PWD##*/}" | gzip -n -9 > "$made" ;;
esac"""


def bundled(run: tuple[str, ...], archives: Iterable[Component]) -> tuple[str, ...]:
    """Return the commands of a build, followed by those that put `archives` into its artifact."""
    commands = tuple(command for archive in archives for command in archive.bundle)
    return (*run, UNPACK, *commands, PACK) if commands else run
