"""The backlog of a heavy actor, on an emulated DynamoDB."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import boto3
import pytest

from asya.heavy.aws.pending import Pending
from asya.heavy.aws.run_records import RunRecords
from asya.protocol.job_runs import Manifest, Member
from asya_infra.deployment.removed_queues import HeavyBacklog, heavy_backlog
from tests.doubles.emulated_aws import emulated_aws

REGION, TABLE = "eu-central-1", "asya-shop-pending"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ADMITTED = "2026-01-01T00:00:00.000Z"


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[boto3.Session]:
    with emulated_aws(monkeypatch, REGION):
        session = boto3.Session(region_name=REGION)
        create_table(session)
        yield session


def create_table(session: boto3.Session) -> None:
    session.client("dynamodb").create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        BillingMode="PAY_PER_REQUEST",
    )


def add_pending(session: boto3.Session, actor: str, number: int) -> None:
    pending = Pending(session.client("dynamodb"), session.client("s3"), table=TABLE, bucket="bucket")
    members = [
        pending.store(actor, Member(id=f"{actor}-{index}", position=0, attempt=1, admitted_at=ADMITTED), b"{}")
        for index in range(number)
    ]
    assert pending.enqueue(actor, members, now=NOW) == [True] * number


def records(session: boto3.Session) -> RunRecords:
    return RunRecords(session.client("dynamodb"), table=TABLE, retention=timedelta(days=14))


def open_run(session: boto3.Session, actor: str, number: int) -> None:
    manifest = Manifest(
        run_id="",
        namespace="shop",
        actor=actor,
        number=number,
        formed_at=ADMITTED,
        job="jobs.crunch",
        shape="payload",
        timeout=60,
        time_limit=60,
        client_token="token",
        members=(),
    )
    records(session).open(manifest, now=NOW, digest="0f" * 32)


def test_pending_envelopes_and_open_runs_of_the_actor_count(session: boto3.Session) -> None:
    add_pending(session, "crunch", 20)  # more than shards
    open_run(session, "crunch", 7)
    open_run(session, "crunch", 8)
    records(session).close("crunch", 7)
    add_pending(session, "other", 1)
    open_run(session, "other", 1)
    backlog = heavy_backlog(session, "shop", "crunch")
    assert backlog == HeavyBacklog(20, ("asya.shop.crunch.0000000008",))
    assert str(backlog) == "20 pending envelopes and 1 open job run (asya.shop.crunch.0000000008)"


def test_a_light_actor_and_an_idle_one_have_none(session: boto3.Session) -> None:
    open_run(session, "crunch", 1)
    records(session).close("crunch", 1)
    assert not heavy_backlog(session, "shop", "crunch")
    assert not heavy_backlog(session, "shop", "bill")


def test_a_run_whose_record_expired_does_not_block_for_ever(session: boto3.Session) -> None:
    open_run(session, "crunch", 1)
    session.client("dynamodb").delete_item(TableName=TABLE, Key={"pk": {"S": "RUN#crunch"}, "sk": {"S": "0000000001"}})
    assert not heavy_backlog(session, "shop", "crunch")


def test_a_mesh_without_the_table_has_none(session: boto3.Session) -> None:
    assert not heavy_backlog(session, "other-stage", "crunch")


@pytest.mark.parametrize(
    ("backlog", "text"),
    [
        (HeavyBacklog(1), "1 pending envelope and 0 open job runs"),
        (HeavyBacklog(0, ("a", "b")), "0 pending envelopes and 2 open job runs (a, b)"),
    ],
)
def test_the_text(backlog: HeavyBacklog, text: str) -> None:
    assert str(backlog) == text
