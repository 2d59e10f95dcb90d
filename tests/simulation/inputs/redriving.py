"""Redrives dead letters with the code of `asya dlq redrive`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from asya.client.errors import MeshError
from asya.client.mesh_client import MeshClient
from asya.testing.services.gateway import URL, event
from asya.testing.services.process import Process, ProcessCrashed, running
from asya.testing.services.queues import Queues, SqsClient
from asya_cli.dlq.letters import DeadLetters, Filter

Api = Callable[[dict[str, Any]], dict[str, Any] | None]


@dataclass(frozen=True)
class SimulatedMeshClient(MeshClient):
    """Calls the simulated gateway."""

    api: Api = lambda _: None
    arn: str = ""

    def exchange(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        answer = self.api(event(method, URL + path, body, dict(headers), user_arn=self.arn, user_id="AIDAOPERATOR"))
        if answer is None:
            return 500, b""
        return answer["statusCode"], answer["body"].encode()


def redrive_all(process: Process, queues: Queues, *, namespace: str, api: Api, arn: str) -> bool:
    """Redrive the dead letters of all queues; return whether every call succeeded.

    An unsent dead letter stays on its queue, and a task that is already reopened waits for the next redrive.
    """
    is_complete = True
    sqs = SqsClient(process, queues, "AIDAOPERATOR")
    prefix = f"asya-{namespace}-"
    with running(process):
        connection: Any = SimpleNamespace(namespace=namespace, sqs=lambda: sqs)
        dead_letters = DeadLetters(SimulatedMeshClient(connection, api=api, arn=arn))
        for name in [name for name, queue in queues.queues.items() if queue.max_receives is None and queue.messages]:
            actor = name.removeprefix(prefix).removesuffix("-dlq")
            try:
                with dead_letters.scan(actor, Filter()) as letters:
                    for letter in letters:
                        result = dead_letters.redrive(letter, force=False)
                        process.note(f"redrives {letter.id} of {actor}: {result.problem or result.generation}")
            except MeshError as error:
                process.note(f"cannot redrive the dead letters of {actor}: {error}")
                is_complete = False
            except ProcessCrashed:
                return False
    return is_complete
