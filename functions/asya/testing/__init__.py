"""The test kit: a mesh in the process of a test, with its handlers and jobs, on virtual time and services in memory.

from asya.testing import Mesh

def test_an_order_is_billed():
run = Mesh("mesh.yaml").send("check", {"total": 3}, then=["bill"])
assert run.result == {"total": 3, "billed": True}
"""

from asya.testing.errors import NotSucceededError, RefusedError, TestKitError
from asya.testing.mesh import Mesh
from asya.testing.run import Hop, Question, Run, RunError

__all__ = ["Hop", "Mesh", "NotSucceededError", "Question", "RefusedError", "Run", "RunError", "TestKitError"]
