"""All problems of a mesh file are collected, each with its line."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import problems_of

pytestmark = pytest.mark.usefixtures("folder")


def test_the_smallest_mesh() -> None:
    assert problems_of("namespace: shop\nactors:\n  a: {handler: shop.one}\n") == []


def test_mistakes_in_defaults_are_reported_once_at_their_line() -> None:
    text = """
    namespace: shop
    defaults: {timeot: 3s, timeout: 2m}
    actors:
      a: {handler: shop.one}
      b: {handler: shop.one}
    """
    assert [line.split(": ")[:2] for line in problems_of(text)] == [["2", "defaults.timeot"], ["2", "defaults.timeout"]]


def test_all_mistakes_are_reported_in_the_order_of_the_file() -> None:
    text = """
    namespace: shop
    actors:
      a:
        handler: shop.on
        timeot: 3s
        concurrency: 1
      b: {}
    tools:
      t: {route: [c]}
    """
    assert [line.split(": ")[:2] for line in problems_of(text)] == [
        ["4", "actors.a.handler"],
        ["5", "actors.a.timeot"],
        ["6", "actors.a.concurrency"],
        ["7", "actors.b"],
        ["9", "tools.t.route[0]"],
    ]
