"""A hostile job may write anything: every envelope of its run ends or runs again, and the run is closed (protocol §10)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.heavy.lambdas.complete import Completion
from asya.protocol.job_runs import attempts_prefix, manifest_key
from tests.doubles.heavy import BUCKET, HeavyWorld, TimedContext, done_result, failed_result, heavy_world
from tests.fuzz.mutations import mutated, mutated_text
from tests.fuzz.sizes import examples
from tests.unit.memory_tables import memory_tables

IDS = ("a", "b", "c")
HEARTBEAT = {
    "at": "2026-01-01T00:00:00Z",
    "beat": 5,
    "at_work": [1],
    "done": 1,
    "stages": [{"stage": 3, "name": "count", "tasks": 8, "done": 5, "rows_read": 12, "rows_written": 0}],
    "executors": 2,
}
PARTIAL = {"index": 1, "sequence": 0, "at": "2026-01-01T00:00:00Z", "data": {"text": "half"}}
ERROR = {"type": "ValueError", "message": "no", "mro": ["Exception"], "traceback": "…"}


@pytest.fixture(scope="module")
def world() -> Iterator[HeavyWorld]:
    with memory_tables(), pytest.MonkeyPatch.context() as monkeypatch, heavy_world(monkeypatch) as heavy:
        yield heavy


def start_run(world: HeavyWorld) -> int:
    """Start a run of three envelopes; returns its number."""
    for envelope_id in IDS:
        world.send(f"{envelope_id}", {"n": 1})
    world.enqueue()
    world.dispatch()
    return len(world.emr.runs)


def empty(world: HeavyWorld) -> None:
    """Remove everything of earlier runs."""
    for queue in ("clean", "publish", "x-sink", "x-sump", "x-dispatch", "x-completion"):
        while world.receive(queue)["Records"]:
            pass
    for item in world.items(""):
        world.dynamodb.delete_item(TableName="asya-flights-pending", Key={key: item[key] for key in ("pk", "sk")})
    for entry in world.s3.list_objects_v2(Bucket=BUCKET).get("Contents", []):
        world.s3.delete_object(Bucket=BUCKET, Key=entry["Key"])
    world.emr.runs.clear()
    world.emr.by_token.clear()


def rewrite(world: HeavyWorld, key: str, data: st.DataObject) -> None:
    """Replace an object by a mutation of it, line by line for a part."""
    body = world.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read().decode()
    lines = [json.loads(line) for line in body.splitlines()]
    at = data.draw(st.integers(0, len(lines) - 1))
    texts = [json.dumps(line) for line in lines]
    texts[at] = data.draw(mutated_text(lines[at]))
    changed = "\n".join(texts).encode("utf-8", "surrogatepass") + b"\n"
    if data.draw(st.integers(0, 5)) == 0:
        changed = changed[: data.draw(st.integers(0, len(changed)))]
    world.s3.put_object(Bucket=BUCKET, Key=key, Body=changed)


def write_files(world: HeavyWorld, number: int, data: st.DataObject) -> None:
    """Write all files of an attempt, with one of them mutated."""
    folder = f"{attempts_prefix('clean', number)}a1/"
    results = [done_result(0, {"n": 2}, next=["publish"]), failed_result(1, {"n": 3}), done_result(2)]
    end = data.draw(st.sampled_from(("commit", "journal", None)))
    world.write_results(number, results, end=end, error=data.draw(st.none() | mutated(ERROR)))
    for name, content in (("heartbeat-0.json", HEARTBEAT), ("fly-000000.jsonl", PARTIAL), ("error.json", ERROR)):
        world.s3.put_object(Bucket=BUCKET, Key=folder + name, Body=json.dumps(content).encode())
    names = [entry["Key"] for entry in world.s3.list_objects_v2(Bucket=BUCKET, Prefix=folder)["Contents"]]
    rewrite(world, data.draw(st.sampled_from(sorted(names))), data)
    if data.draw(st.booleans()):  # the recorded sizes are those of the hostile parts
        for name in (f"{folder}commit.json", f"{folder}journal-0.json"):
            correct_sizes(world, folder, name)


def correct_sizes(world: HeavyWorld, folder: str, name: str) -> None:
    try:
        content = json.loads(world.s3.get_object(Bucket=BUCKET, Key=name)["Body"].read())
        for part in content["parts"]:
            head = world.s3.head_object(Bucket=BUCKET, Key=folder + part["file"])
            part["size"] = head["ContentLength"]
    except Exception:  # noqa: BLE001 - whatever was mutated stays as it is
        return
    world.s3.put_object(Bucket=BUCKET, Key=name, Body=json.dumps(content).encode())


def accounted(world: HeavyWorld) -> set[str]:
    """The ids of all envelopes that were sent on or are pending."""
    sent = [body for queue in ("publish", "x-sink", "x-sump", "clean") for body in world.bodies(queue)]
    pending = [item["sk"]["S"].split("#")[1] for item in world.items("PENDING#")]
    return {body["id"] for body in sent} | set(pending)


@pytest.mark.rule("10.death.unreadable")
@given(data=st.data())
@examples(8, 1000)
def test_whatever_a_job_writes_each_envelope_ends_or_runs_again(world: HeavyWorld, data: st.DataObject) -> None:
    empty(world)
    number = start_run(world)
    world.set_state("run1", "RUNNING")
    write_files(world, number, data)
    world.complete()  # the first watch reads heartbeat and partials
    world.set_state("run1", data.draw(st.sampled_from(("SUCCESS", "FAILED", "CANCELLED"))), details="killed")
    while world.complete():
        pass
    record = world.services.records.get("clean", number)
    assert record is not None
    assert record.state == "closed"
    assert accounted(world) >= set(IDS)


@pytest.mark.rule("10.event-of-a-run")
@given(data=st.data())
@examples(8, 700)
def test_any_event_is_acknowledged_and_ends_no_run_by_itself(world: HeavyWorld, data: st.DataObject) -> None:
    empty(world)
    number = start_run(world)
    world.set_state("run1", "RUNNING", event=False)
    name = world.emr.runs["run1"]["name"]
    detail = {"applicationId": "00app", "jobRunId": "run1", "jobRunName": name, "state": "FAILED"}
    watch = {
        "run_id": name,
        "job_run_id": "run1",
        "turn": 0,
        "attempt": "",
        "beat": 0,
        "partials_file": "",
        "next_member": 0,
    }
    valid: dict[str, Any] = data.draw(
        st.sampled_from(
            (
                {
                    "source": "aws.emr-serverless",
                    "detail-type": "EMR Serverless Job Run State Change",
                    "detail": detail,
                },
                {"detail-type": "asya.watch-run", "detail": watch},
                {"detail-type": "asya.task-canceled", "detail": {"taskId": "a"}},
            )
        )
    )
    world.put("x-completion", data.draw(mutated_text(valid).filter(bool)))
    world.complete()
    record = world.services.records.get("clean", number)
    assert record is not None
    assert record.state != "closed"
    assert world.bodies("x-sink") == []


@given(data=st.data())
@examples(8, 300)
def test_an_unreadable_manifest_keeps_its_own_event_only(world: HeavyWorld, data: st.DataObject) -> None:
    """Only the mesh writes manifests; another version of it may have written one that this version cannot read."""
    empty(world)
    number = start_run(world)
    world.send("d", actor="stats")
    world.enqueue("stats")
    world.dispatch()
    world.write_results(number, [done_result(0)])
    world.write_results(1, [done_result(0, {"n": 1}, next=["publish"])], actor="stats")
    rewrite(world, manifest_key("clean", number), data)
    for job_run_id in ("run1", "run2"):
        world.set_state(job_run_id, "SUCCESS")
    # The services remember manifests, so this completion is a new one.
    completion = Completion(world.services_of("x-completion"), TimedContext())
    event = world.receive("x-completion")
    kept = {item["itemIdentifier"] for item in completion.process(event)["batchItemFailures"]}
    assert kept <= {record["messageId"] for record in event["Records"] if '"run1"' in record["body"]}
    assert "d" in {body["id"] for body in world.bodies("publish")}
