"""Runs jobs in a folder and reads their results."""

import json
from pathlib import Path

import msgspec

from asya.heavy.run_formation import encode_manifest
from asya.protocol.job_runs import Commit, Journal, Manifest, Member, ResultFrame, ResultHead, manifest_key
from asya_spark.main import run
from asya_spark.secrets import NO_SECRETS

JOBS = "tests.spark.sample_jobs"


def member(index, payload, **changes):
    envelope = {
        "id": f"e{index}",
        "route": {"prev": ["a"], "curr": "heavy", "next": ["b"]},
        "headers": {"colour": "red"},
        "status": {"phase": "processing", "attempt": 2},
        "payload": payload,
    }
    inline = {"envelope": msgspec.Raw(json.dumps(envelope).encode())}
    return Member(
        **{"id": f"e{index}", "position": 1, "attempt": 2, "admitted_at": "2026-01-01T00:00:00Z", **inline, **changes}
    )


class Run:
    """A run in a folder, and its results."""

    def __init__(self, spark, folder, payloads, job="by_payload", secrets=NO_SECRETS, **changes):
        members = tuple(p if isinstance(p, Member) else member(i, p) for i, p in enumerate(payloads))
        # Long enough for the slowest machine; only the tests of time limits use less.
        settings = {"shape": "payload", "timeout": 600.0, "time_limit": 15, "client_token": "t", **changes}
        manifest = Manifest(
            run_id="asya.ns.heavy.0000000007",
            namespace="ns",
            actor="heavy",
            number=7,
            formed_at="2026-01-01T00:00:00Z",
            job=job if "." in job else f"{JOBS}.{job}",
            members=members,
            **settings,
        )
        path = folder / manifest_key("heavy", 7)
        path.parent.mkdir(parents=True)
        path.write_bytes(encode_manifest(manifest))
        self.attempt = run(spark, f"file://{path}", secrets=secrets).removeprefix("file://")
        with open(f"{self.attempt}commit.json", "rb") as file:
            self.commit = msgspec.json.decode(file.read(), type=Commit)
        self.heads, self.frames = {}, {}
        for part in self.commit.parts:
            with open(f"{self.attempt}{part.file}", "rb") as file:
                content = file.read()
            lines = content.splitlines()
            assert (len(lines), len(content)) == (part.lines, part.size)
            self._take(lines, part)
        if manifest.parallel == 1:
            assert list(self.heads) == sorted(self.heads)

    def _take(self, lines, part):
        while lines:
            head = msgspec.json.decode(lines.pop(0), type=ResultHead)
            assert part.first <= head.index <= part.last
            self.heads[head.index] = head
            self.frames[head.index] = [msgspec.json.decode(lines.pop(0), type=ResultFrame) for _ in range(head.frames)]

    @staticmethod
    def died(folder):
        """The last journal and the error of a run whose driver died."""
        (attempt,) = (folder / manifest_key("heavy", 7)).parent.glob("attempts/*")
        journals = [msgspec.json.decode(path.read_bytes(), type=Journal) for path in attempt.glob("journal-*.json")]
        error = json.loads((attempt / "error.json").read_text())
        return max(journals, key=lambda journal: journal.sequence), error

    def partials(self):
        """The partials: (member, sequence, message)."""
        lines = [
            line for path in sorted(Path(self.attempt).glob("fly-*.jsonl")) for line in path.read_text().splitlines()
        ]
        return [(partial["index"], partial["sequence"], partial["data"]) for partial in map(json.loads, lines)]

    def payloads(self, index):
        return [json.loads(bytes(frame.payload)) for frame in self.frames[index]]
