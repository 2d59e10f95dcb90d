"""The limits in `docs/explanation/when-to-take-something-else.md` are those of the code."""

import re

import pytest

from asya.function.sqs import MESSAGE_BYTES, MESSAGE_MARGIN
from asya.gateway.routes.tools import WAIT_SECONDS
from asya.protocol.mesh_keys import LONGEST_TIMEOUT
from asya.protocol.mesh_table import Retention
from asya.runtime.fan_out import MAX_ITEMS
from asya_cli.tasks.selection import TASK_LIMIT
from asya_infra.mesh_file.mesh_model import GatewaySection, MeshFile
from asya_infra.mesh_file.sections import json_schema
from tests.paths import PROJECT

PAGE = (PROJECT / "docs" / "explanation" / "when-to-take-something-else.md").read_text()
ROWS = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|", PAGE.partition("\n## The limits of a mesh\n")[2], re.MULTILINE))
DAY = 86_400
KEYS = json_schema(MeshFile)["properties"]
GATEWAY = GatewaySection()


@pytest.mark.parametrize(
    ("subject", "limit"),
    [
        ("a set", f"{MAX_ITEMS:,} items"),
        ("a set", f"{KEYS['max_children']['default']:,} (`max_children`)"),
        ("a route", f"{KEYS['max_hops']['default']:,} hops (`max_hops`), at most {KEYS['max_hops']['maximum']:,}"),
        ("payload", f"{(MESSAGE_BYTES - MESSAGE_MARGIN) // 1024:,} KiB"),
        ("payload", f"{GATEWAY.max_body // 1024} KiB at the gateway"),
        ("a task", f"{Retention().tasks / DAY:.0f} days"),
        ("a task", f"{LONGEST_TIMEOUT / DAY:.0f} days at most"),
        ("a pause", f"{Retention().tasks / DAY - 1:.0f} days"),
        ("gateway", f"{WAIT_SECONDS:.0f} s for an answer"),
        ("gateway", f"{GATEWAY.long_polls} calls that wait"),
        ("lists", f"{TASK_LIMIT:,} tasks"),
    ],
)
def test_a_limit_of_the_page_is_that_of_the_code(subject: str, limit: str) -> None:
    assert limit in ROWS[subject]
