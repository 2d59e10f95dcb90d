"""The memory that a driver needs for a large manifest (`protocol §10.manifest.lines`)."""

import json
import os
import subprocess
import sys

import pytest
from msgspec import Raw
from msgspec.structs import replace

from asya.heavy.run_formation import encode_manifest
from asya.protocol.job_runs import Member, manifest_key
from asya_local.tools import find_java
from tests.doubles.job_runs import MANIFEST

MEGABYTES = 64 if os.environ.get("ASYA_FULL_SIZE") else 8
BYTES = 4096  # of an envelope; larger ones are objects of their own


def members():
    text = "x" * (BYTES - 100)
    route = {"prev": [], "curr": "heavy", "next": []}
    for index in range(MEGABYTES * 1024 * 1024 // BYTES):
        body = {"id": f"e{index}", "route": route, "payload": {"text": text}}
        envelope = Raw(json.dumps(body).encode())
        yield Member(id=f"e{index}", position=0, attempt=1, admitted_at="2026-01-01T00:00:00Z", envelope=envelope)


@pytest.mark.rule("10.manifest.lines")
def test_10_a_large_manifest_takes_the_memory_of_its_text(tmp_path, record_property):
    path = tmp_path / manifest_key("heavy", 42)
    path.parent.mkdir(parents=True)
    manifest = replace(MANIFEST, members=tuple(members()))
    path.write_bytes(encode_manifest(manifest))
    environment = {**os.environ, "JAVA_HOME": find_java(), "PYSPARK_PYTHON": sys.executable}

    command = [sys.executable, "-m", "tests.spark.read_manifest", f"file://{path}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=600)

    found = json.loads(done.stdout.splitlines()[-1])
    record_property("memory", found)
    print(found)
    assert found["members"] == len(manifest.members)
    # One copy of the text, with its objects; a parsed manifest took ten times as much as its text.
    assert found["peak"] - found["before"] < 1.5 * MEGABYTES + 16
    # The heap of the default driver is 2 GB. It had held the text several times.
    assert found["java_peak"] - found["java_before"] < 256
