"""Calls one handler in the environment of functions."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from asya_infra.build.code_tree import handler_tree
from asya_infra.build.functions import build_layer
from asya_infra.build.packages import Target
from asya_infra.mesh_file.legacy.variables import handler_variables
from asya_infra.product.interpreters import FUNCTION_PYTHON, interpreter_for
from asya_infra.product.places import BUILD
from asya_local.environments import function_python
from asya_local.errors import LocalCloudError
from asya_local.single_calls.report import CallReport, CallRequest
from asya_local.sources import table_bytes
from asya_local.tools import find_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asya.protocol.mesh_table import Actor
    from asya_infra.mesh_file import LoadedMesh

_RUNNER = Path(__file__).with_name("handler_runner.py")


def call_handler(
    loaded: LoadedMesh, request: CallRequest, actor: Actor, variables: Mapping[str, str], data_uri: str
) -> CallReport:
    """Call a handler once. What it prints appears at once.

    Args:
        loaded: The mesh.
        request: The call.
        actor: The actor of the handler.
        variables: Its environment variables, secrets included.
        data_uri: The base of references.

    Raises:
        PackagesError: A required package cannot be installed.
        LocalCloudError: The process of the handler ended without a report, such as by `os._exit`.
    """
    cloud_python = Path(find_tools(spark=False, cdk=False).cloud_python)
    target = Target(interpreter=interpreter_for(FUNCTION_PYTHON).path)
    layer = build_layer(BUILD, target)
    tree = handler_tree(BUILD, target, loaded.code_folder, table_bytes(loaded, ""), hashed=loaded.mesh.requires_hashes)
    environment = {
        **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TZ")},
        **handler_variables(actor),
        **variables,
        "ASYA_ACTOR": request.actor,
        "ASYA_DATA_URI": data_uri,
        "LAMBDA_TASK_ROOT": str(tree.content),
        # The order of Lambda: the user's code with its packages, then the layer.
        "PYTHONPATH": os.pathsep.join([str(tree.content), str(layer / "python")]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    with tempfile.TemporaryDirectory(prefix="asya-run-") as folder:
        request_file, report_file = Path(folder, "request.json"), Path(folder, "report.json")
        request_file.write_bytes(msgspec.json.encode(request))
        # With -P the folder of the runner is not on the path: its modules have names that the user's may have too.
        command = [str(function_python(BUILD, cloud_python)), "-P", str(_RUNNER)]
        command += [str(request_file), str(report_file)]
        ended = subprocess.run(command, env=environment, cwd=tree.content, check=False)
        if not report_file.exists():
            raise LocalCloudError(
                f"The process of {request.handler} ended with code {ended.returncode} and gave nothing. On AWS its message "
                "would come again, and then be a dead letter."
            )
        return msgspec.json.decode(report_file.read_bytes(), type=CallReport).with_paths(tree.as_written)
