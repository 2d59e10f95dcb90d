"""One chaos run: a local cloud behind the fault proxy, its load and faults, the way to rest, and the account."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import psutil
from botocore.config import Config

from asya.client.connection import read_local
from asya.client.mesh_client import MeshClient
from asya_local.cloud import UpOptions, down, up
from asya_local.emr.settings import WorkerSettings
from asya_local.errors import LocalCloudError
from asya_local.servers import LOOPBACK
from asya_local.steps import Step, Steps
from tests.chaos import memory
from tests.chaos.accounts import accounted, violations
from tests.chaos.diagnosis import diagnose
from tests.chaos.envelopes import SHARES, draw_envelopes
from tests.chaos.event_log import EventLog
from tests.chaos.evidence import read_evidence, read_records
from tests.chaos.injector import Injector
from tests.chaos.observer import Observer
from tests.chaos.page import Run
from tests.chaos.rest import Rest, ended_tasks
from tests.chaos.schedule import draw_faults
from tests.chaos.workload import Workload
from tests.cloud import callers
from tests.cloud.deployed_cloud import DeployedCloud
from tests.cloud.heavy_cloud import HeavyCloud
from tests.doubles import emr_faults
from tests.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.chaos.accounts import Evidence
    from tests.chaos.envelopes import ChaosEnvelope
    from tests.chaos.schedule import Size

MESH = Path(__file__).parent / "mesh" / "mesh.yaml"
_WARM_UP_SECONDS = 600.0
_WARM_UP_POLL_SECONDS = 3.0


@dataclass(frozen=True)
class ChaosRun:
    """The settings of a run.

    Attributes:
        seed: Determines envelopes, faults and the random numbers of the fault proxy.
        folder: All files of the run: the cloud, the plan of the proxy and the report.
        say: Prints progress.
    """

    seed: int
    size: Size
    folder: Path
    say: Callable[[str], None]

    @property
    def state(self) -> Path:
        """The state folder of the cloud."""
        return self.folder / "cloud"

    def execute(self, show: Callable[[Run], None]) -> Run:
        """Run everything and show the result while the cloud is still up; the cloud ends also after an error.

        Raises:
            LocalCloudError: The cloud does not start.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        down(self.state)  # what a killed run has left
        for file in (self._plan, self._counts):
            file.unlink(missing_ok=True)
        try:
            with self._fault_proxy() as (proxy, endpoint):
                options = UpOptions(
                    workers=WorkerSettings(at_once=2, cores=1, reuse=True),
                    starts_per_second=2,
                    faults=emr_faults.MODULE,
                    aws_proxy=endpoint,
                )
                up(MESH, self.state, options, Steps(self._say_step))
                cloud = HeavyCloud(DeployedCloud(MeshClient(read_local(self.state)), self.state))
                run = self._run_load(cloud, proxy, endpoint)
                show(run)
                return run
        finally:
            down(self.state)

    @property
    def _plan(self) -> Path:
        return self.folder / "plan.json"

    @property
    def _counts(self) -> Path:
        return self.folder / "calls.json"

    def _say_step(self, step: Step) -> None:
        self.say(f"{step.name}: {step.seconds:.0f} s")

    @contextmanager
    def _fault_proxy(self) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
        """Start the fault proxy, and end it. It also ends with this process, because its standard input closes."""
        files = [str(file) for file in (self.state, self._plan, self._counts)]
        command = [sys.executable, "-m", "tests.chaos.fault_proxy", *files]
        log = (self.folder / "fault-proxy.log").open("wb")
        with (
            log,
            subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log) as proxy,
        ):
            try:
                assert proxy.stdout is not None
                port = int(proxy.stdout.readline())
                yield proxy, f"http://{LOOPBACK}:{port}"
            finally:
                proxy.kill()

    def _run_load(self, cloud: HeavyCloud, proxy: subprocess.Popen[bytes], endpoint: str) -> Run:
        for service in ("sqs", "s3", "dynamodb", "lambda"):
            cloud.client(service)  # threads share them; creating one is not safe in several threads
        self._warm_up(cloud)
        earlier = frozenset(read_records(cloud))
        envelopes = draw_envelopes(self.seed, self.size.envelopes, self.size.load_seconds)
        faults = draw_faults(self.seed, self.size)
        log = EventLog()
        caller = callers.operator(cloud.cloud)
        workload = Workload(cloud.cloud.mesh, caller, self._proxied_sqs(endpoint), log)
        injector = Injector(cloud, self._plan, self.seed, log)
        observer = Observer(cloud, workload, caller, proxy.pid, log)
        tasks: list[Callable[[], None]] = [
            partial(workload.start_all, envelopes),
            workload.answer_pauses,
            partial(injector.run, faults, self.size.load_seconds),
            *observer.tasks(),
        ]
        with ThreadPoolExecutor(len(tasks)) as pool:
            try:
                running = [pool.submit(task) for task in tasks]
                rest = Rest(cloud, self._call_counts)
                seconds = rest.wait(self.size, observer, running, self.say)
            finally:
                for part in (workload, injector, observer):
                    part.stop()
        for each in running:
            each.result()
        self.say("reading what is left")
        return self._account(cloud, observer, envelopes, seconds, read_evidence(cloud, observer, earlier))

    def _warm_up(self, cloud: HeavyCloud) -> None:
        """Send one envelope through each flow without faults, so that the load does not begin with cold starts only."""
        envelopes = draw_envelopes(self.seed, len(SHARES), 1.0, prefix="warm")
        log = EventLog()
        workload = Workload(cloud.cloud.mesh, callers.operator(cloud.cloud), cloud.cloud.mesh.connection.sqs(), log)
        answers = threading.Thread(target=workload.answer_pauses)
        answers.start()
        try:
            workload.start_all(envelopes)
            ids = set(workload.ids.values())
            rest = Rest(cloud, self._call_counts)
            while (missing := ids - ended_tasks(cloud)) or not rest.reached():
                if log.now > _WARM_UP_SECONDS:
                    what = f"the tasks {', '.join(missing)} have not ended" if missing else "not all messages are gone"
                    raise LocalCloudError(f"Without faults, {what} within {_WARM_UP_SECONDS:.0f} s")
                time.sleep(_WARM_UP_POLL_SECONDS)
        finally:
            workload.stop()
            answers.join()
        self.say(f"warm-up: {log.now:.0f} s")

    def _proxied_sqs(self, endpoint: str) -> object:
        connection = read_local(self.state)
        keys = connection.session.get_credentials()
        assert keys is not None
        return boto3.client(
            "sqs",
            endpoint_url=endpoint,
            region_name=connection.region,
            aws_access_key_id=keys.access_key,
            aws_secret_access_key=keys.secret_key,
            config=Config(proxies={}, retries={"mode": "standard", "total_max_attempts": 3}),
        )

    def _call_counts(self) -> dict[str, int]:
        counts: dict[str, int] = json.loads(self._counts.read_text())
        return counts

    def _account(
        self,
        cloud: HeavyCloud,
        observer: Observer,
        envelopes: Sequence[ChaosEnvelope],
        seconds: float,
        evidence: Evidence,
    ) -> Run:
        growths = memory.growths(observer.memory)
        all_violations = violations(envelopes, evidence) + memory.violations(growths)
        return Run(
            seed=self.seed,
            size=self.size,
            command=f"make chaos SEED={self.seed} ENVELOPES={self.size.envelopes} OUTAGE={self.size.outage_seconds:.0f}"
            + (f" OFF={self.size.off_seconds:.0f}" if self.size.off_seconds else ""),
            commit=_commit(),
            machine=_machine(),
            envelopes=envelopes,
            evidence=evidence,
            accounted=accounted(envelopes, evidence),
            violations=all_violations,
            diagnoses=diagnose(all_violations, self.state),
            started=observer.workload.started,
            events=observer.log.events,
            seconds=seconds,
            growths=growths,
            memory=observer.memory,
            calls=self._call_counts(),
            runs=Counter(run["state"] for run in cloud.runs()),
        )


def _commit() -> str:
    command = ["git", "-C", str(PROJECT), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def _machine() -> str:
    memory_size = psutil.virtual_memory().total / 2**30
    return f"{psutil.cpu_count()} cores, {memory_size:.0f} GiB, {platform.system()}, Python {platform.python_version()}"
