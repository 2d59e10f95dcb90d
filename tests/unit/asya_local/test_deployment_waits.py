"""`cdk deploy` looks at the stacks of a local cloud more often; whatever else it waits for is as it was."""

import json
import subprocess

import pytest

from asya_infra.product.app import node_path
from asya_local.deployment import SHORT_WAITS

PROGRAM = """
const { promisify } = require("util");
const { setTimeout: sleep } = require("timers/promises");
const spans = [];
const wait = (milliseconds) => new Promise((done) => { spans.push(setTimeout(done, milliseconds)); });
wait(5000); wait(4999); wait(5001); wait(undefined);
spans.push(setTimeout(() => 0, 5000));
spans.push(setTimeout(function limit() {}, 5000));
console.log(JSON.stringify(spans.map((each) => each._idleTimeout)));
spans.forEach(clearTimeout);
const given = setTimeout((...values) => console.log(JSON.stringify(values)), 1, "a", "b");
promisify(setTimeout)(1, "c").then((value) => console.log(JSON.stringify(value)));
"""


@pytest.mark.slow
def test_only_the_looks_at_stacks_are_shorter() -> None:
    command = ["node", "--require", str(SHORT_WAITS), "-e", PROGRAM]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env={"PATH": node_path()})
    spans, *others = map(json.loads, result.stdout.splitlines())
    assert spans == [100, 4999, 5001, 1, 5000, 5000]
    assert sorted(map(str, others)) == sorted(["['a', 'b']", "c"])
