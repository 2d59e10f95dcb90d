"""The test kit: a mesh in the process of a test, with its handlers and jobs, on virtual time and services in memory.

from asya.testing import Mesh

def test_an_order_is_billed():
run = Mesh("mesh.yaml").send("check", {"total": 3}, then=["bill"])
assert run.result == {"total": 3, "billed": True}
"""

try:
    import greenlet  # noqa: F401
except ImportError as error:
    raise ImportError("asya.testing needs the package greenlet: pip install greenlet") from error

from asya.testing.errors import EndpointRefusedError, NotSucceededError, RefusedError, TestKitError
from asya.testing.mesh import Mesh
from asya.testing.payloads import payload_of
from asya.testing.run import Hop, Question, Run, RunError

__all__ = [
    "EndpointRefusedError",
    "Hop",
    "Mesh",
    "NotSucceededError",
    "Question",
    "RefusedError",
    "Run",
    "RunError",
    "TestKitError",
    "payload_of",
]
