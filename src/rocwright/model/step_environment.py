"""The environment that every run step has, whatever the machine; it is part of every run step's key."""

BUILD = "/build"
SOURCE = "/build/src"
OUT = "/out"
IN = "/in"

# Where the package manager of an image finds packages.
PACKAGES = "/run/packages"

# SOURCE_DATE_EPOCH of all that is built and packed (2025-01-01): the same tree gives the same bytes.
EPOCH = 1735689600

FIXED = {
    # compilers through ccache, wherever the base keeps its links
    "PATH": "/usr/lib/ccache:/usr/lib64/ccache:/usr/lib/ccache/bin:/usr/local/bin:/usr/bin:/bin",
    "HOME": f"{BUILD}/home",
    "TMPDIR": "/tmp",  # noqa: S108 - the sandbox's own
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "SHELL": "/bin/sh",
    "USER": "builder",
    "SOURCE_DATE_EPOCH": str(EPOCH),
    "PYTHONNOUSERSITE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "PIP_NO_INDEX": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "SRC": SOURCE,
    "OUT": OUT,
    "IN": IN,
}

# What lay in a tree when a shell was opened in it (execution/opened.py), beside the folders of its step.
NOTE = "opened.json"
