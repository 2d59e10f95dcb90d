"""User code finds the packages that it finds on AWS, and no others."""

import json
import subprocess
from pathlib import Path

import pytest

from asya_local.tools import function_python
from tests.paths import PROJECT

CLOUD_PYTHON = PROJECT / ".venv-cloud" / "bin" / "python"
PROGRAM = """
import importlib.util, json, sys
print(json.dumps([name for name in sys.argv[1:] if importlib.util.find_spec(name)]))
"""
RUNTIME = ["boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3"]
ABSENT = ["ministack", "jwt", "cryptography", "yaml", "hypercorn", "asya", "asya_local", "pydantic", "pandas", "pip"]


@pytest.mark.slow
def test_functions_find_the_packages_of_the_runtime(tmp_path: Path) -> None:
    python = function_python(tmp_path, CLOUD_PYTHON)
    command = [str(python), "-P", "-c", PROGRAM, *RUNTIME, *ABSENT]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env={}).stdout
    assert json.loads(found) == RUNTIME
    assert function_python(tmp_path, CLOUD_PYTHON) == python  # made once
    subprocess.run([str(python), "-c", "import boto3; boto3.client('sqs', 'eu-west-1')"], check=True, env={})
