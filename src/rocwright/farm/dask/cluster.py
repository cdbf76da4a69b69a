"""Where a build's own coordinator and workers are: on this machine, or in a cluster that dask knows."""

from __future__ import annotations

import importlib
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from distributed import LocalCluster
from distributed.deploy.cluster import Cluster

from rocbase.errors import InputError, NetworkError
from rocbase.processes.python import safe_children
from rocwright.config import FarmCluster
from rocwright.farm.dask import worker

if TYPE_CHECKING:
    from distributed.security import Security


@contextmanager
def local_cluster(security: Security) -> Iterator[Any]:
    """Run a coordinator and one worker on this machine, for one build of this user."""
    with (
        safe_children(),
        LocalCluster(
            n_workers=1,
            threads_per_worker=worker.THREADS,
            resources={worker.CORES: os.cpu_count() or 1},
            memory_limit=0,
            dashboard_address=None,
            silence_logs=50,
            protocol="tls",
            security=security,
        ) as cluster,
    ):
        yield cluster


def cluster_of(settings: FarmCluster, security: Security | None) -> AbstractContextManager[Any]:
    """The cluster that is set, asked for its workers; they end with it.

    Its coordinator listens on the network. Raises InputError where there are no certificates, where the class
    is not installed or not to be made so; NetworkError where the cluster refuses.
    """
    if security is None:
        raise InputError(
            f"{settings.make} needs certificates",
            cause="others can reach its coordinator, and could run any program on all of its workers",
            next_step="rocwright farm init FOLDER makes them; name the folder as certificates in [farm] of "
            "config.toml, and have it at the same path on every machine",
        )
    module, _, name = settings.make.partition(":")
    package = module.partition(".")[0].replace("_", "-")
    try:
        with _interruptible():
            factory = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"there is no {settings.make}",
            cause=str(error),
            next_step=f"install {package} beside rocwright, or mend make in [farm.cluster] of config.toml",
        ) from error
    try:
        cluster: Any = factory(**settings.options, security=security)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{settings.make} cannot be made with these options",
            cause=str(error),
            next_step="mend options in [farm.cluster] of config.toml; where the class takes no certificates, "
            "run `rocwright farm worker` on its machines instead",
        ) from error
    except (OSError, RuntimeError) as error:
        raise NetworkError(
            f"{settings.make} did not begin",
            cause=str(error),
            next_step="see what the cluster says; [farm.cluster] in config.toml has how it is asked",
        ) from error
    if not isinstance(cluster, Cluster):
        raise InputError(
            f"{settings.make} is no cluster of dask's",
            cause="make in [farm.cluster] of config.toml names a class of another kind",
            next_step="a class like dask_jobqueue:SLURMCluster is wanted",
        )
    cluster.scale(settings.workers)
    ready: AbstractContextManager[Any] = cluster
    return ready


@contextmanager
def _interruptible() -> Iterator[None]:
    """What handles Ctrl-C stays: dask_jobqueue has the program exit by it once it is imported (0.9.0)."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)
