"""Triggers with s3 and event: what AWS would refuse, and values that their payloads do not have."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import problems_of

pytestmark = pytest.mark.usefixtures("folder")


def problems(trigger: str) -> list[str]:
    found = problems_of(
        f"""
namespace: shop
actors: {{a: {{handler: shop.one}}}}
triggers:
  t: {{route: [a], {trigger}}}
"""
    )
    return [each.partition(": ")[2] for each in found]


@pytest.mark.parametrize(
    ("trigger", "problem"),
    [
        (
            "s3: {bucket: Shop}",
            "triggers.t.s3.bucket: should be data, results or the name of a bucket; got 'Shop'",
        ),
        (
            "s3: {bucket: data, prefix: 'raw/*'}",
            "triggers.t.s3.prefix: has no wildcards: what the keys begin or end with, as it is; got 'raw/*'",
        ),
        (
            "s3: {bucket: data, suffix: '*.csv'}",
            "triggers.t.s3.suffix: has no wildcards: what the keys begin or end with, as it is; got '*.csv'",
        ),
        (
            "s3: {bucket: a..b}",
            "triggers.t.s3.bucket: should be data, results or the name of a bucket; got 'a..b'",
        ),
        (
            f"s3: {{bucket: data, prefix: {'é' * 513}}}",
            "triggers.t.s3.prefix: has 1,026 bytes; keys have 1,024 at most",
        ),
        ("s3: {bucket: data, prefix: /raw}", "triggers.t.s3.prefix: should not begin with /: keys do not; got '/raw'"),
        ("s3: {bucket: data}, input: /key", "triggers.t.input: is a key of triggers with event or webhook"),
        (
            "s3: {bucket: data}, payload: {x: '{keys}'}",
            "triggers.t.payload: there is no value {keys}; the values are {bucket}, {date}, {etag}, {key}, {name}, "
            "{occurred_at}, {size}, {stem}, {time}, {uri}, {version}",
        ),
        (
            "event: {}",
            "triggers.t.event: matches nothing; add one of source, detail-type, detail, resources, account, region",
        ),
        (
            "event: {source: [shop], bus: a bus}",
            "triggers.t.event.bus: should be the name of an event bus; got 'a bus'",
        ),
        (
            "event: {detail: {status: paid}}",
            "triggers.t.event.detail.status: should be a list of values, such as [paid]",
        ),
        (
            "event: {detail: {order: {status: []}}}",
            "triggers.t.event.detail.order.status: matches nothing; name a value, or remove it",
        ),
        (
            "event: {detail: {order: {}}}",
            "triggers.t.event.detail.order: matches nothing; name a field, or remove it",
        ),
        (
            "event: {source: [shop]}, payload: {x: '{detail}'}",
            "triggers.t.payload: there is no value {detail}; the values are {account}, {date}, {detail-type}, {id}, "
            "{occurred_at}, {source}, {time}",
        ),
    ],
)
def test_a_source_that_aws_refuses_or_that_does_nothing(trigger: str, problem: str) -> None:
    assert problems(trigger) == [problem]


@pytest.mark.parametrize(
    "trigger",
    [
        "s3: {bucket: data}",
        "s3: {bucket: partner-files, prefix: 'in coming/', suffix: .csv}, payload: {x: '{key}'}",
        "event: {source: shop}, input: /detail",
        "event: {detail: {price: [{numeric: ['>', 3]}], $or: [{a: [1]}, {b: [2]}]}, bus: shop}, payload: {x: '{id}'}",
    ],
)
def test_sources_that_aws_takes(trigger: str) -> None:
    assert problems(trigger) == []
