"""Reads from Lambda which queues of a mesh have a function that reads them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from asya.capabilities.operations.queue_readers import FunctionState, Mapping, Unread, unread
from asya.protocol import names

_KEPT_SECONDS = 10.0
"""One call lists the mappings of the whole account, so several lookers share it."""


@dataclass
class QueueReaders:
    """The readers of the queues of one mesh. What Lambda answers is kept for 10 s.

    Attributes:
        client: the client of Lambda.
        monotonic: the seconds of a clock.
        warn: logs why the state of a function is unknown.

    Raises:
        ClientError, BotoCoreError: from every method, if the mappings cannot be listed.
    """

    client: Any
    namespace: str
    monotonic: Callable[[], float]
    warn: Callable[[str], None]
    _mappings: dict[str, Mapping] = field(default_factory=dict)
    _functions: dict[str, FunctionState] = field(default_factory=dict)
    _read_at: float | None = None

    def unread(self, actors: Collection[str], waiting: Collection[str]) -> dict[str, Unread]:
        """Return why queues are not read, by actor.

        Args:
            actors: the actors whose mappings count.
            waiting: those with messages that wait: of these alone the functions are read, with one call each.
        """
        now = self.monotonic()
        if self._read_at is None or now - self._read_at >= _KEPT_SECONDS:
            self._mappings, self._functions, self._read_at = self._read_mappings(), {}, now
        found = {}
        for actor in actors:
            name = names.function_name(self.namespace, actor)
            mapping = self._mappings.get(names.queue_name(self.namespace, actor))
            problem = unread(mapping, FunctionState(), name)
            if problem is None and actor in waiting:
                problem = unread(mapping, self._function(name), name)
            if problem is not None:
                found[actor] = problem
        return found

    def _read_mappings(self) -> dict[str, Mapping]:
        pages = self.client.get_paginator("list_event_source_mappings").paginate()
        return {
            str(each["EventSourceArn"]).rpartition(":")[2]: Mapping(each["UUID"], each["State"])
            for page in pages
            for each in page["EventSourceMappings"]
            if "EventSourceArn" in each
        }

    def _function(self, name: str) -> FunctionState:
        if name not in self._functions:
            self._functions[name] = self._read_function(name)
        return self._functions[name]

    def _read_function(self, name: str) -> FunctionState:
        try:
            answer = self.client.get_function_concurrency(FunctionName=name)
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceNotFoundException":
                return FunctionState(exists=False)
            self.warn(f"the reserved concurrency of {name} is unknown: {error}")
            return FunctionState()
        return FunctionState(reserved=answer.get("ReservedConcurrentExecutions"))
