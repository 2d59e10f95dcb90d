"""A mesh of a given size. A fifth of its actors is heavy, and every actor needs much of what AWS limits."""

import json
from pathlib import Path
from typing import Any

_HANDLER = "def keep(payload):\n    return payload\n"
_PRIVATE: dict[str, Any] = {
    "storage": {"kms_key": "arn:aws-us-gov:kms:us-gov-west-1:111122223333:key/mrk-1234abcd12ab34cd56ef1234567890ab"},
    "vpc": {
        "subnets": [f"subnet-0123456789abcde{number:02x}" for number in range(16)],
        "security_groups": [f"sg-0123456789abcde{number:02x}" for number in range(5)],
    },
}
_JOB = "def one(spark, payload):\n    return payload\n"


def write_sized_mesh(folder: Path, actors: int, *, private: bool = False, triggers: int = 0) -> Path:
    """Write the mesh and its code to a folder; return the path of the mesh file.

    Args:
        private: whether the mesh has a customer managed key and the largest network.
        triggers: the number of triggers: a third of them on events, on the mesh's own bucket, and on another one.
    """
    for name, source in (("handlers/work.py", _HANDLER), ("jobs/heavy.py", _JOB)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source)
    file = folder / "mesh.yaml"
    names = [f"actor-with-a-long-name-{number:03}" for number in range(actors)]
    mesh = {
        "namespace": f"sized-{actors}",
        "code": "handlers",
        "jobs": "jobs",
        "notify": {"email": "ops@example.org"},
        "telemetry": {"dashboards": True},
        "shards": 1 if actors < 50 else 8,  # each light actor may send to all
        "actors": {name: _actor(number) for number, name in enumerate(names)},
        "tools": {"all": {"route": names[:20], "input_schema": {"type": "object"}}},
    }
    if triggers:
        mesh["triggers"] = {
            f"trigger-with-a-long-name-{number:03}": _trigger(number, names) for number in range(triggers)
        }
    file.write_text(json.dumps(mesh | (_PRIVATE if private else {})))  # JSON is YAML
    return file


def _trigger(number: int, names: list[str]) -> dict[str, Any]:
    sources = (
        {"event": {"source": [f"shop-{number}"], "detail": {"order": {"status": ["paid", "sent"]}}, "bus": "shop"}},
        {"s3": {"bucket": "data", "prefix": f"landed-{number}/", "suffix": ".csv.gz"}},
        {"s3": {"bucket": "partner-files", "prefix": f"incoming/{number}/", "suffix": ".csv.gz"}},
    )
    return {"route": [names[number % len(names)]], **sources[number % len(sources)]}


def _actor(number: int) -> dict[str, Any]:
    access = [
        {"bucket": "data", "read": ["raw/*", f"in-{number}/*"], "write": f"out-{number}/*"},
        {"bucket": "partner-files", "read": f"incoming/{number}/*"},
        {"secret": f"partner-key-{number}", "read": True},
    ]
    if number % 5 == 0:
        # A window, because messages reappear while Lambda gathers a batch unless their timeout includes it.
        return {
            "spark": {"job": "heavy.one"},
            "timeout": "10m",
            "batch": {"size": 100, "window": "30s"},
            "access": access,
        }
    light: dict[str, Any] = {"handler": "work.keep", "access": access, "can_send_to": "*"}
    if number % 5 == 1:
        light |= {"timeout": "1s", "batch": {"size": 50, "window": "2m"}, "concurrency": 2}
    if number % 5 == 2:
        light |= {"env": {"MODEL": "m" * 500, "REGION_OF_MODEL": "eu-central-1"}, "concurrency": 1000}
    return light
