"""What a program loads with the client."""

import subprocess
import sys

import pytest

import asya.client

PROGRAM = """
import sys
import asya.client
first = set(sys.modules)
for name in asya.client.__all__:
    getattr(asya.client, name)
print(*(name for name in sys.argv[1].split() if name in sys.modules))
print("boto3" in first)
"""
FOREIGN = (
    "aws_cdk asya.gateway asya.testing asya_cli asya_infra asya_local asya_spark aws_lambda_powertools constructs greenlet "
    "httpx jsonschema_rs pydantic pyspark rich typer werkzeug yaml"
)


@pytest.mark.slow
def test_the_client_loads_the_sdk_and_msgspec_only_and_at_its_first_use() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, FOREIGN], capture_output=True, text=True, check=True)
    assert done.stdout == "\nFalse\n"


def test_another_name_is_no_part_of_it() -> None:
    with pytest.raises(AttributeError, match=r"'asya\.client' has no attribute 'Mush'"):
        asya.client.Mush  # noqa: B018
