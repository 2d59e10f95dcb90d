"""Reads the last exceptions of a run's logs, and copies the logs to S3."""

from __future__ import annotations

import gzip
import logging
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from pathlib import Path

    from asya_local.emr.runs import JobRun

_logger = logging.getLogger(__name__)
_TAIL_BYTES = 16_384
_EXCEPTION = re.compile(r"^(?:Caused by: )?[\w.$]+(?:Error|Exception|Interrupt)\b.*$", re.MULTILINE)


def failure_details(exit_code: int, error: str, stderr: Path) -> str:
    """Return the state details of a failed job in the format of EMR Serverless: the exit code and the last exceptions."""
    exceptions = " ".join(error.splitlines()[:1]) or " ".join(_last_exceptions(stderr))
    suffix = f" Last few exceptions: {exceptions}" if exceptions else ""
    return f"Job failed, please check complete logs in configured logging destination. ExitCode: {exit_code}.{suffix}"


def _last_exceptions(stderr: Path) -> list[str]:
    try:
        with stderr.open("rb") as file:
            file.seek(max(0, stderr.stat().st_size - _TAIL_BYTES))
            return _EXCEPTION.findall(file.read().decode(errors="replace"))[-2:]
    except FileNotFoundError:
        return []


def upload_logs(run: JobRun, folder: Path, s3: Any) -> None:
    """Copy the driver's output to the log URI of the run with the job's credentials; best effort."""
    overrides = run.request.get("configurationOverrides", {})
    uri = overrides.get("monitoringConfiguration", {}).get("s3MonitoringConfiguration", {}).get("logUri")
    if not uri:
        return
    location = urlsplit(uri)
    prefix = location.path.strip("/")
    for name in ("stdout", "stderr"):
        if not (folder / name).exists():
            continue
        key = f"{prefix}/applications/{run.application_id}/jobs/{run.run_id}/SPARK_DRIVER/{name}.gz".lstrip("/")
        try:
            s3.put_object(Bucket=location.netloc, Key=key, Body=gzip.compress((folder / name).read_bytes()))
        except (ClientError, BotoCoreError) as error:
            _logger.warning("%s: log %s not copied to %s: %s", run.run_id, name, uri, error)
