"""Fan-in actors and their sweep in the templates (protocol §9)."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from asya.protocol.mesh_table import FanIn, MeshTable
from asya_infra.mesh_file import load_mesh, to_table
from tests.infra.conftest import text
from tests.infra.test_permissions import resources


@pytest.mark.rule("1.crew.sweeps")
def test_only_a_mesh_with_fan_in_actors_has_x_fan_in(shop: Any, plain: Any) -> None:
    for mesh, namespace, has_sets in ((shop, "shop", True), (plain, "plain-test", False)):
        functions = {function["FunctionName"] for function in mesh.resources("AWS::Lambda::Function")}
        assert (f"asya-{namespace}-x-fan-in" in functions) is has_sets
        queues = {queue["QueueName"] for queue in mesh.resources("AWS::SQS::Queue")}
        for name in ("x-fan-in", "x-fan-in-dlq"):
            assert (f"asya-{namespace}-{name}" in queues) is has_sets


def test_the_table_of_sets_has_an_index_of_open_sets(shop: Any) -> None:
    table = shop.one("AWS::DynamoDB::Table", TableName="asya-shop-fan-in")
    (index,) = table["GlobalSecondaryIndexes"]
    assert index["IndexName"] == "open"
    assert [key["AttributeName"] for key in index["KeySchema"]] == ["open_in", "due_at"]
    assert index["Projection"] == {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["actor"]}
    indexed = {each["TableName"] for each in shop.resources("AWS::DynamoDB::Table") if "GlobalSecondaryIndexes" in each}
    assert indexed == {"asya-shop-fan-in", "asya-shop-tasks"}


def test_the_sweep_reads_the_index_only(shop: Any) -> None:
    table = "arn:<Partition>:dynamodb:<Region>:<AccountId>:table/asya-shop-fan-in"
    assert {each for each in resources(shop, "x-clock", "dynamodb:Query") if table in each} == {f"{table}/index/open"}
    assert table not in resources(shop, "x-clock", "dynamodb:GetItem")
    assert text(shop.one("AWS::Lambda::Function", FunctionName="asya-shop-gather")["MemorySize"]) == 1024


def test_large_slices_are_stored_by_fan_in_actors(shop: Any) -> None:
    bucket = "arn:<Partition>:s3:::asya-shop-<AccountId>-<Region>"
    for actor in ("x-fan-in", "gather"):
        assert f"{bucket}/slices/*" in resources(shop, actor, "s3:PutObject")
        assert f"{bucket}/slices/*" in resources(shop, actor, "s3:GetObject")


def table_of(folder: Path, content: str) -> MeshTable:
    (folder / "functions" / "handlers").mkdir(parents=True)
    (folder / "functions" / "handlers" / "shop.py").write_text("def one(payload): return payload\n")
    (folder / "mesh.yaml").write_text(dedent(content))
    return to_table(load_mesh(folder / "mesh.yaml"))


def test_the_mesh_file_overrides_the_defaults_of_x_fan_in(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    plain = table_of(
        tmp_path / "a", "namespace: shop\nactors: {d: {handler: shop.one}}\ncrew: {routable: [x-fan-in]}\n"
    )
    assert plain.actors["x-fan-in"].kind == "fan_in"
    assert plain.actors["x-fan-in"].fan_in == FanIn(timeout=None, on_failure="fail", quorum=None, ttl=7 * 86400.0)
    assert plain.actors["x-fan-in"].can_send_to is None
    changed = table_of(
        tmp_path / "b",
        """\
        namespace: shop
        actors:
          d: {handler: shop.one}
          x-fan-in: {kind: fan_in, max_receives: 9, can_send_to: [d], fan_in: {timeout: 2m, on_failure: partial, ttl: 1d}}
        """,
    )
    actor = changed.actors["x-fan-in"]
    assert actor.fan_in == FanIn(timeout=120.0, on_failure="partial", quorum=None, ttl=86400.0)
    assert (actor.max_receives, actor.can_send_to) == (9, ("d",))


@pytest.mark.parametrize(
    ("actor", "targets"),
    [
        ("split", None),  # whom it fans out to stands in its code
        ("check", ("merge", "split")),
        ("score", None),
        ("merge", None),
        ("publish", ("merge",)),
    ],
)
def test_the_targets_of_actors_around_a_fan_out(tmp_path: Path, actor: str, targets: tuple[str, ...] | None) -> None:
    table = table_of(
        tmp_path,
        """\
        namespace: shop
        actors:
          check: {handler: shop.one}
          split: {handler: shop.one}
          score: {handler: shop.one}
          merge: {kind: fan_in}
          publish: {handler: shop.one}
        tools: {t: {description: d, route: [check, split, merge, publish]}}
        """,
    )
    assert table.actors[actor].can_send_to == targets
