"""What the cold start of a light actor loads. `make bench` measures how long it takes."""

import subprocess
import sys

import pytest

MODULES = 131
"""The modules of the library that a light hop needs. Each costs a cold start about a third of a millisecond."""
CLASSES = 7
"""The dataclasses among them. One costs as much as twenty structs."""
PROGRAM = """
import dataclasses, gc, sys
made = []
process = dataclasses._process_class
def noted(kind, *options):
    made.append(kind.__module__)
    return process(kind, *options)
dataclasses._process_class = noted
import asya.light.lambdas.sidecar
print(sum(name.partition(".")[0] == "asya" for name in sys.modules))
print(sum(name.startswith("asya.") for name in made))
print(gc.isenabled(), gc.get_freeze_count() > 0)
"""


def loaded(environment: dict[str, str]) -> list[str]:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.split("\n")


@pytest.mark.slow
def test_a_cold_start_loads_what_a_light_hop_needs_and_collects_no_garbage() -> None:
    modules, classes, collector, _ = loaded({"AWS_LAMBDA_FUNCTION_NAME": "asya-shop-work"})
    assert int(modules) <= MODULES
    assert int(classes) <= CLASSES
    assert collector == "True True"


@pytest.mark.slow
def test_another_process_keeps_its_objects_collectable() -> None:
    *_, collector, _ = loaded({})
    assert collector == "True False"
