"""One component under test: each kind of check, on its artifact, in the root file system to try it in."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from rocwheel.errors import RocwrightError
from rocwheel.folders.temporary import temporary_folder
from rocwheel.wheels.canonicalize import form_of
from rocwheel.wheels.emulators import emulator_below
from rocwright import sandbox
from rocwright.catalog.model import Check, Component, EmulatedCheck
from rocwright.checks.libraries import LIBRARIES, judged, libraries_in, libraries_needed
from rocwright.checks.static import look_at, named
from rocwright.execution.runs import LogFile, log_name
from rocwright.machine.architecture import described
from rocwright.model.step_environment import EPOCH
from rocwright.plan.make import make_plan
from rocwright.project import Project
from rocwright.records.model import Finding, as_emulated, is_gpu
from rocwright.resolve.aliases import base_of
from rocwright.resolve.model import Lock
from rocwright.sandbox.engine import Engine
from rocwright.sandbox.model import Ended, Job, Mount, Outcome
from rocwright.sources.archive import unpack
from rocwright.store.model import Output, Record
from rocwright.verify.emulated import FOLDER, WORDS, Emulation
from rocwright.verify.lines import MARK, read_line
from rocwright.verify.suites import lacking, lacks_words
from rocwright.verify.tiny_gguf import write_tiny_model

GPU_DEVICES = ("/dev/kfd", "/dev/dri")

_OWN_PYTHON = """{} -m venv --system-site-packages /trial/env
export PATH=/trial/env/bin:$PATH"""
"""Makes `python3` and its pip the ones of an interpreter that has another name."""


FORM = "canonical form"
"""The name of the finding that has the sha256 of a wheel in canonical form."""
