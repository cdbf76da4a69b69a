"""A build that asks a real Slurm for dask's workers; its machines are processes of this one."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.execution.conftest import Workshop
from tests.execution.conftest import workshop as workshop
from tests.farm.cluster import Cluster, cluster

from rocbase.errors import InputError
from rocwright.config import Farm, FarmCluster, config_file
from rocwright.execution.options import BuildOptions
from rocwright.execution.outcome import StepsOutcome
from rocwright.execution.progress import PlainProgress
from rocwright.farm.certificates import make_certificates
from rocwright.farm.dask.cluster import cluster_of
from rocwright.farm.dask.security import security_of
from rocwright.farm.executors import run_steps
from rocwright.model.steps import Plan, Step
from rocwright.plan.decide import decide

SETTINGS = """\
[farm]
certificates = "{folder}/certificates"

[farm.cluster]
make = "dask_jobqueue:SLURMCluster"
workers = 2
wait = 100

[farm.cluster.options]
cores = 1
memory = "1GB"
scheduler_options = {{ host = "127.0.0.1" }}
python = "{python}"
log_directory = "{folder}/jobs"
job_extra_directives = ["--nodes=1"]
worker_extra_args = ["--host", "127.0.0.1"]
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("slurm")) as found:
        yield found


def build(workshop: Workshop, *steps: Step) -> StepsOutcome:
    plan = Plan(steps=(workshop.root, *workshop.trees.values(), *steps), artifacts=(steps[-1].name,))
    logs = workshop.folder / "logs"
    logs.mkdir(exist_ok=True)
    options = BuildOptions(engine=workshop.engine, executor="dask")
    decisions = decide(plan, workshop.store)
    return run_steps(decisions, workshop.store, workshop.home, options, logs, {}, PlainProgress())


def test_steps_run_on_workers_that_are_jobs_of_a_cluster(
    slurm: Cluster, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(signal.SIGINT)
    sys.modules.pop("dask_jobqueue.runner", None)
    sys.modules.pop("dask_jobqueue", None)
    monkeypatch.setenv("SLURM_CONF", str(slurm.settings))
    monkeypatch.setenv("ROCWRIGHT_HOME", str(workshop.home.path))
    make_certificates(workshop.folder / "certificates")
    config_file().write_text(SETTINGS.format(folder=workshop.folder, python=sys.executable))
    job = 'test -z "${SLURM_JOB_ID-}"'  # a step knows nothing of where it runs
    first = workshop.step(job, "tr a-z A-Z < file > $OUT/result", name="first")
    last = workshop.step("cat $IN/first/result > $OUT/result", name="last", inputs={"first": first})
    outcome = build(workshop, first, last)
    assert outcome.failures == []
    record = workshop.store.record(last.key)
    assert record is not None
    assert workshop.text(record) == "TEXT\n"
    assert len([*(workshop.folder / "jobs").glob("*.err")]) == 2
    # dask_jobqueue has a handler of its own once it is imported
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        ("rocwright_none:Cluster", {}, "there is no rocwright_none:Cluster"),
        ("dask_jobqueue:NoCluster", {}, "there is no dask_jobqueue:NoCluster"),
        ("dask_jobqueue:SLURMCluster", {}, "cannot be made with these options"),
        ("dask_jobqueue:SLURMCluster", {"cores": 1, "memory": "x"}, "cannot be made with these options"),
        ("collections:OrderedDict", {}, "is no cluster of dask's"),
    ],
)
def test_a_cluster_that_cannot_be_had_is_told(
    tmp_path: Path, make: str, options: dict[str, object], said: str
) -> None:
    make_certificates(tmp_path)
    with pytest.raises(InputError) as told:
        cluster_of(FarmCluster(make=make, options=options), security_of(Farm(certificates=str(tmp_path))))
    assert said in told.value.message
    assert told.value.next_step


def test_a_cluster_without_certificates_is_refused() -> None:
    with pytest.raises(InputError) as told:
        cluster_of(FarmCluster(make="dask_jobqueue:SLURMCluster"), None)
    assert told.value.message == "dask_jobqueue:SLURMCluster needs certificates"
