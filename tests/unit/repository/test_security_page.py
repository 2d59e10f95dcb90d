"""The page of who is trusted with what names what exists, and every call that is open to strangers."""

import re
from pathlib import Path

import pytest

from asya.gateway.call_table import CALLS
from asya.protocol import names
from tests.paths import PROJECT

PAGE = (PROJECT / "docs" / "security.md").read_text()
PROTOCOL = (PROJECT / "docs" / "protocol.md").read_text()
OPEN = sorted({f"{call.method} {call.path}" for call in CALLS if call.is_public})


@pytest.mark.parametrize("call", OPEN)
def test_each_open_call_is_on_the_page(call: str) -> None:
    assert f"`{call}`" in PAGE


@pytest.mark.parametrize("rule", sorted(set(re.findall(r"§(\d+\.[\w.-]+\w)", PAGE))))
def test_each_rule_of_the_page_is_one_of_the_protocol(rule: str) -> None:
    assert f"**§{rule}**" in PROTOCOL


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(x-[a-z-]+)`", PAGE))))
def test_each_function_and_queue_of_the_page_exists(name: str) -> None:
    known = {value for value in vars(names).values() if isinstance(value, str)}
    assert name in known or name.startswith("x-asya-")


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:functions|infra|asya_cli)/[\w/.]+)`", PAGE))))
def test_each_file_of_the_page_exists(path: str) -> None:
    assert Path(PROJECT, path).exists()
