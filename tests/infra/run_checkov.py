"""Runs checkov over CloudFormation templates, and prints its findings as JSON.

Runs in `.venv-checkov`, started by `tests.infra.checkov_findings`. It imports nothing of this project. It calls checkov's runner of
CloudFormation, because the command imports the runners of all languages and looks for a newer version on the internet.
"""

import gc
import json
import os
import sys
from typing import Any

_NETWORK_EVENTS = frozenset({"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"})


def refuse_network(event: str, arguments: tuple[Any, ...]) -> None:
    """End the process on a use of the network: checkov catches the errors of its calls."""
    if event in _NETWORK_EVENTS:
        sys.stderr.write(f"checkov uses the network: {event}{arguments}\n")
        os._exit(3)


def main(templates: list[str]) -> None:
    """Print the findings in templates, and the templates that checkov cannot read."""
    sys.addaudithook(refuse_network)
    gc.disable()  # a third of the time: the process is short, and nearly all that it creates lives to its end

    from checkov.cloudformation.runner import Runner
    from checkov.runner_filter import RunnerFilter

    report = Runner().run(root_folder=None, files=templates, runner_filter=RunnerFilter(framework=["cloudformation"]))
    findings = [
        {"template": each.file_abs_path, "resource": each.resource, "check": each.check_id, "name": each.check_name}
        for each in report.failed_checks
    ]
    json.dump({"findings": findings, "unreadable": report.parsing_errors}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
