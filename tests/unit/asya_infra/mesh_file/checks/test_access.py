"""Access entries, tags and prefixes: the messages of values that break the rules of AWS."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import light_actor_problems, mesh_problems

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (
            "access: [{read: x}]",
            "4: actors.a.access[0]: has no resource; an entry needs exactly one of bucket, table, secret and statement",
        ),
        (
            "access: [{bucket: data}]",
            "4: actors.a.access[0]: grants nothing; add read or write patterns, such as read: raw/*",
        ),
        (
            "access: [{bucket: data, read: ../x}]",
            "4: actors.a.access[0].read: should be a relative pattern such as raw/*; got '../x'",
        ),
        (
            "access: [{bucket: data, read: /x}]",
            "4: actors.a.access[0].read: should be a relative pattern such as raw/*; got '/x'",
        ),
        (
            "access: [{secret: s, read: x}]",
            "4: actors.a.access[0].read: should be true, because a secret has no parts; got 'x'",
        ),
    ],
)
def test_access_entries(keys: str, problem: str) -> None:
    assert light_actor_problems(keys) == [problem]


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (
            "sink: {prefixes: {failed: ../x}}",
            "4: sink.prefixes.failed: should be a relative prefix such as failed/; got '../x'",
        ),
        ("tags: {'aws:x': y}", "4: tags.aws:x: the prefix aws: is reserved by AWS; rename the tag"),
    ],
)
def test_tags_and_prefixes(more: str, problem: str) -> None:
    assert mesh_problems(more) == [problem]
