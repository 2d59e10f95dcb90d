"""What comes with code on the deployed mesh: the packages of `requirements.txt`, and no others, and the files beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cloud.heavy_cloud import HeavyCloud

pytestmark = [pytest.mark.cloud, pytest.mark.slow]

REQUIRED = ("msgspec._core", "boto3")
# This project has all of them installed, and a job on EMR Serverless none.
NOT_REQUIRED = ("pydantic", "pandas", "numpy", "pytest", "asya_local", "psutil")


@pytest.mark.rule("10.packages")
def test_10_a_job_imports_the_required_packages_and_no_others(heavy: HeavyCloud) -> None:
    """The driver and the executors' Python import the same files."""
    heavy.send_all({"packages-1": {"names": [*REQUIRED, *NOT_REQUIRED]}}, "packages")
    _, envelope = heavy.cloud.wait_for_result("packages-1")
    found = envelope["payload"]
    assert found["executor"] == found["driver"]
    assert [name for name, file in found["driver"].items() if file is None] == list(NOT_REQUIRED)
    folders = {found["driver"][name].partition("/msgspec/")[0].partition("/boto3/")[0] for name in REQUIRED}
    assert [folder.startswith(str(heavy.folder.temporary / "archives")) for folder in folders] == [True]


@pytest.mark.rule("6.code", "10.code")
def test_6_functions_and_job_runs_have_the_files_of_linked_folders(heavy: HeavyCloud) -> None:
    heavy.send_all({"rates-1": {}}, "read-rates", "run-rates")
    _, envelope = heavy.cloud.wait_for_result("rates-1")
    assert envelope["payload"] == {"function": ["[1.1]"] * 2, "run": ["[1.1]"] * 2}
