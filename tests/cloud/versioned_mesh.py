"""A mesh with two versions: its code and its mesh file are copied, changed and deployed again."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asya.protocol import names

if TYPE_CHECKING:
    from tests.cloud.heavy_cloud import HeavyCloud

_SOURCE = Path(__file__).parent / "meshes" / "deploys"
_CODE = ("handlers/versioned_handlers.py", "jobs/versioned_jobs.py")
_MESH_CHANGES = {
    "actors:\n": "actors:\n  extra: {handler: versioned_handlers.extra}\n",
    "timeout: 10s": "timeout: 20s",
    "timeout: 30s": "timeout: 45s",
    "max_attempts: 2, backoff: constant, initial_delay: 1s": "max_attempts: 4, backoff: linear, initial_delay: 2s",
    "n INT, entered INT": "n BIGINT, entered INT",
    "window: 1s": "window: 2s",
}
"""Another actor, limits, retries, and settings of the job."""


@dataclass(frozen=True)
class VersionedMesh:
    """A copy of the mesh `deploys` in a folder of its own."""

    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "mesh.yaml"

    @property
    def gate(self) -> Path:
        """While this file exists, job runs wait, except the first ones."""
        return self.folder / "gate"

    def write_first_version(self, run_size: int) -> None:
        """Writes the files of the first version, and closes the gate; `run_size` is the limit of envelopes in a run."""
        shutil.copytree(_SOURCE, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        self.gate.touch()
        _replace(self.file, {"GATE: /gate": f"GATE: {self.gate}", "size: 20": f"size: {run_size}"})

    def write_second_version(self) -> None:
        """Changes the light actors, the job and the mesh file."""
        for code in _CODE:
            _replace(self.folder / code, {"VERSION = 1": "VERSION = 2"})
        _replace(self.file, _MESH_CHANGES)

    def open_gate(self) -> None:
        """Lets the waiting job runs go on."""
        self.gate.unlink()


def expected_payload(payload: dict[str, Any]) -> dict[str, Any]:
    """The payload that the actors make of `n`, in the versions that the payload names."""
    n, squared, left = payload["n"], payload["squared"], payload["left"]
    versions = {"entered": payload["entered"], "squared": squared, "left": left, "run": payload["run"]}
    return {"n": n, "result": n ** (2 * squared), **versions, **({"extra": 2} if left == 2 else {})}


def results(mesh: HeavyCloud) -> dict[str, dict[str, Any]]:
    """The payloads of all succeeded envelopes, by id."""
    place = mesh.cloud.mesh.connection.results
    s3 = mesh.client("s3")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=f"{place.prefix}succeeded/")
    keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]

    def payload(key: str) -> dict[str, Any]:
        envelope: dict[str, Any] = json.loads(s3.get_object(Bucket=place.bucket, Key=key)["Body"].read())
        value: dict[str, Any] = envelope["payload"]
        return value

    with ThreadPoolExecutor(4) as pool:
        return {Path(key).stem: value for key, value in zip(keys, pool.map(payload, keys), strict=True)}


def task_states(mesh: HeavyCloud) -> dict[str, tuple[str, int]]:
    """Status and generation of all tasks, by id."""
    table = names.table_name(mesh.namespace, "tasks")
    pages = mesh.client("dynamodb").get_paginator("scan").paginate(TableName=table)
    records = [item for page in pages for item in page["Items"] if item["sk"]["S"] == "record"]
    return {item["pk"]["S"]: (item["status"]["S"], int(item["generation"]["N"])) for item in records}


def message_counts(mesh: HeavyCloud) -> dict[str, int]:
    """The messages on all queues, delayed and dead ones included; empty queues are left out."""
    sqs = mesh.client("sqs")
    counts: Counter[str] = Counter()
    for url in sqs.list_queues(QueueNamePrefix=names.queue_name(mesh.namespace, ""))["QueueUrls"]:
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        numbers = [int(value) for name, value in attributes.items() if name.startswith("ApproximateNumberOf")]
        counts[url.rpartition("/")[2]] = sum(numbers)
    return dict(+counts)


def _replace(file: Path, changes: dict[str, str]) -> None:
    text = file.read_text()
    for old, new in changes.items():
        assert text.count(old) == 1, (file, old)
        text = text.replace(old, new)
    file.write_text(text)
