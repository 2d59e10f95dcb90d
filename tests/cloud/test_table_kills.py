"""Drivers that are killed while they write: no row is lost or there twice (`protocol §10.append-once`, `§10.replace-once`).

Each run is a driver process of the stand-in with the library's own entry point. SIGKILL ends it with its JVM. The table and the
commits are on the local S3, and the next run sees of it what the killed one left.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from asya.heavy.run_formation import encode_manifest
from asya.protocol.job_runs import Manifest, Member, manifest_key
from asya_infra.build.jobs import build_jobs, build_user_jobs
from asya_infra.build.packages import Target
from asya_local.emr.settings import ApplicationSettings, WorkerSettings
from asya_local.servers import ServerOptions
from tests.cloud import table_jobs
from tests.cloud.stand_in_cloud import BUCKET, StandIn, stand_in

if TYPE_CHECKING:
    from collections.abc import Iterator

KILLS = int(os.environ.get("ASYA_KILLS", "200" if os.environ.get("ASYA_FULL_SIZE") else "0"))
pytestmark = [
    pytest.mark.cloud,
    pytest.mark.skipif(
        not KILLS,
        reason="takes minutes (make test-full); the deaths are in tests/spark/test_append_once.py and tests/unit/asya_spark/tables",
    ),
]

DEATHS = 5
"""Of each envelope, before an attempt may live."""
LAST_STEP = 14
"""Of an append with four files; those with fewer die at their end instead."""
SLOTS = 2
CHOSEN: list[list[dict[str, Any]]] = [
    # After the commit, then between the two files that it publishes.
    [{"step": 4, "after": True}, {"step": 3, "after": True}],
    # With staged files and no commit.
    [{"step": 4, "after": False}],
]
CLIENT = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six")
READ = """
from pyspark.sql import SparkSession
from asya_spark.tables import read
spark = SparkSession.builder.getOrCreate()
for row in read(spark, "{table}").toJSON().collect():
    print(row)
"""


def all_deaths(kills: int) -> list[list[dict[str, Any]]]:
    """The deaths of each envelope: chosen ones, and in full size random ones, two of three at a step."""
    chance = random.Random(14)

    def death() -> dict[str, Any]:
        if chance.random() < 1 / 3:
            return {"seconds": round(chance.uniform(0, 4), 2)}
        return {"step": chance.randint(0, LAST_STEP), "after": chance.random() < 0.5}

    deaths = list(CHOSEN)
    while (left := kills - sum(map(len, deaths))) > 0:
        deaths.append([death() for _ in range(min(DEATHS, left))])
    return deaths


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    options = ServerOptions(
        starts_per_second=50,
        start_burst=50,
        application=ApplicationSettings(max_vcpu=64, max_memory_gb=512),
        workers=WorkerSettings(at_once=SLOTS, spares=SLOTS),
    )
    with stand_in(tmp_path_factory.mktemp("stand-in"), options) as running:
        yield running


@dataclass(frozen=True)
class Job:
    """The uploaded code of the job.

    Attributes:
        entry_point: the script that starts the library.
        parameters: of spark-submit.
    """

    cloud: StandIn
    entry_point: str
    parameters: str

    @classmethod
    def upload(cls, cloud: StandIn, folder: Path) -> Job:
        """Uploads the library as a mesh does, and `table_jobs`."""
        (folder / "jobs").mkdir()
        shutil.copy(table_jobs.__file__, folder / "jobs")
        files = build_jobs(folder / "build", Target(interpreter=Path(sys.executable)), folder / "jobs")
        jobs = build_user_jobs(folder / "build", folder / "jobs")
        zips = [_upload(cloud, content, folder) for content in (files.library, jobs)]
        client = folder / "client"
        client.mkdir()
        for name in CLIENT:
            file = Path(str(importlib.import_module(name).__file__))
            source = file.parent if file.name == "__init__.py" else file
            (client / source.name).symlink_to(source)
        environment = f"--conf spark.emr-serverless.driverEnv.PYTHONPATH={client}"
        return cls(cloud, files.entry_point.read_text(), f"--py-files {','.join(zips)} {environment}")

    def run(self, number: int, envelope: int, attempt: int, payload: dict[str, Any]) -> dict[str, Any]:
        """Runs one attempt at an envelope to its end; returns the description of GetJobRun."""
        manifest = Manifest(
            run_id=f"asya.ns.heavy.{number:010d}",
            namespace="ns",
            actor="heavy",
            number=number,
            formed_at="2026-01-01T00:00:00Z",
            job="table_jobs.write",
            members=(_member(f"e{envelope}", payload, attempt),),
            shape="payload",
            timeout=600.0,
            time_limit=15,
            client_token=str(number),
        )
        key = manifest_key("heavy", number)
        uri = self.cloud.put(key, encode_manifest(manifest).decode())
        name = f"write-{number}"
        arguments = ("--manifest", uri, "--data-uri", f"s3://{BUCKET}/data/")
        policy = {"policy": _policy("data", key.rpartition("/")[0])}
        run_id = self.cloud.start(
            self.entry_point, *arguments, name=name, parameters=self.parameters, executionIamPolicy=policy
        )
        return {**self.cloud.wait(run_id), "stdout": (self.cloud.folder.emr / run_id / "stdout").read_text()}


@pytest.fixture(scope="module")
def job(cloud: StandIn, tmp_path_factory: pytest.TempPathFactory) -> Job:
    return Job.upload(cloud, tmp_path_factory.mktemp("job"))


def _member(name: str, payload: dict[str, Any], attempt: int) -> Member:
    envelope = {"id": name, "route": {"prev": [], "curr": "heavy", "next": []}, "headers": {}, "payload": payload}
    return Member(
        id=name,
        position=0,
        attempt=attempt,
        admitted_at="2026-01-01T00:00:00Z",
        envelope=msgspec.Raw(json.dumps(envelope).encode()),
    )


def _upload(cloud: StandIn, content: Path, folder: Path) -> str:
    archive = Path(shutil.make_archive(str(folder / content.name), "zip", content))
    key = f"code/{archive.name}"
    cloud.client("s3").upload_file(str(archive), BUCKET, key)
    return f"s3://{BUCKET}/{key}"


def _policy(*folders: str) -> str:
    objects = [f"arn:aws:s3:::{BUCKET}/{folder}/*" for folder in folders]
    code = f"arn:aws:s3:::{BUCKET}/code/*"
    statements = [
        {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], "Resource": objects},
        {"Effect": "Allow", "Action": "s3:GetObject", "Resource": code},
        {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": f"arn:aws:s3:::{BUCKET}"},
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


@dataclass(frozen=True)
class Outcome:
    """What a table has after its envelopes were killed and repeated until each has ended.

    Attributes:
        killed: the killed drivers of each envelope.
        days: the (id, attempt, number) of the rows of each day.
    """

    killed: list[int]
    days: dict[str, list[tuple[str, int, int]]]

    @property
    def wrong(self) -> list[str]:
        """The days that have other rows than all those of one attempt."""
        return [
            day
            for day, rows in self.days.items()
            if sorted(rows) != [(*rows[0][:2], number) for number in range(table_jobs.rows_of(rows[0][1]))]
        ]


def written(cloud: StandIn, job: Job, way: str, deaths: list[list[dict[str, Any]]], writers: int) -> Outcome:
    """Kills the drivers of envelopes that write, and repeats them; each day has as many envelopes, which run side by side."""
    table, first = f"tables/{way}", 1000 * (list(table_jobs.WAYS).index(way) + 1)

    def until_done(envelope: int) -> int:
        """Repeats an envelope until a run succeeds; returns the number of killed ones."""
        payload = {"table": table, "deaths": deaths[envelope], "day": f"d{envelope // writers}", "way": way}
        for attempt in range(1, len(deaths[envelope]) + 2):
            run = job.run(100 * (first + envelope) + attempt, envelope, attempt, payload)
            if run["state"] == "SUCCESS":
                assert ": done, " in run["stdout"], run["stdout"]
                return attempt - 1
            assert "ExitCode: 137" in run["stateDetails"], run["stateDetails"]
        raise AssertionError(f"e{envelope} has no successful run")

    with ThreadPoolExecutor(SLOTS) as pool:
        killed = list(pool.map(until_done, range(len(deaths))))
    code = READ.format(table=f"s3://{BUCKET}/data/{table}")
    policy = {"policy": _policy("data")}
    reader = cloud.wait(cloud.start(code, name="read", parameters=job.parameters, executionIamPolicy=policy))
    assert reader["state"] == "SUCCESS", reader["stateDetails"]
    days: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
    for line in (cloud.folder.emr / reader["jobRunId"] / "stdout").read_text().splitlines():
        row = json.loads(line)
        days[row["day"]].append((row["id"], row["attempt"], row["n"]))
    assert killed == [len(each) for each in deaths]
    outcome = Outcome(killed, days)
    print(
        f"{way}: {sum(killed)} killed drivers of {len(deaths)} envelopes; {len(outcome.wrong)} of {len(days)} days are wrong"
    )
    return outcome


@pytest.mark.rule("10.append-once")
def test_10_no_row_is_lost_or_doubled_by_killed_drivers(cloud: StandIn, job: Job) -> None:
    deaths = all_deaths(KILLS)
    outcome = written(cloud, job, "append", deaths, 1)
    # The rows of an envelope are all those of one of its attempts, often of a killed one.
    assert (outcome.wrong, len(outcome.days)) == ([], len(deaths))


@pytest.mark.rule("10.replace-once")
@pytest.mark.parametrize("way", ["replace", "replace-versioned"])
def test_10_each_day_has_the_rows_of_one_of_two_writers_whose_drivers_are_killed(
    cloud: StandIn, job: Job, way: str
) -> None:
    deaths = all_deaths(KILLS)
    outcome = written(cloud, job, way, deaths, 2)
    assert (outcome.wrong, len(outcome.days)) == ([], (len(deaths) + 1) // 2)


@pytest.mark.parametrize("way", ["plain-append", "plain-overwrite"])
def test_what_spark_writes_by_itself_is_wrong_after_the_same_deaths(cloud: StandIn, job: Job, way: str) -> None:
    outcome = written(cloud, job, way, all_deaths(KILLS // 4), 2)
    assert outcome.wrong
