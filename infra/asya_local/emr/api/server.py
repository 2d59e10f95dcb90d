"""The HTTP server: the API of EMR Serverless, and local calls under `/_local/`."""

from __future__ import annotations

import json
import logging
import queue
import re
import socket
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.serving import BaseWSGIServer, make_server
from werkzeug.wrappers import Request, Response

from asya_local.authentication.admission import Refusal, admit, opens_page, refuse_foreign
from asya_local.authentication.signatures import HttpCall
from asya_local.emr.access.identity import IamClient, SignedRequest
from asya_local.emr.api.model import encode_response, parse_request
from asya_local.emr.api.service import MUTATING, Service
from asya_local.emr.drivers.pool import DriverPool
from asya_local.emr.errors import ServiceError, refused
from asya_local.emr.events import EventSender
from asya_local.emr.faults import load_faults
from asya_local.emr.run_registry import RunRegistry, now
from asya_local.emr.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from wsgiref.types import StartResponse, WSGIEnvironment

    from asya_local.emr.runs import StateChange
    from asya_local.emr.settings import EmrSettings

_logger = logging.getLogger(__name__)
_LARGEST_BODY = 1024 * 1024  # bytes; read before its signature can be checked
_RUN_PAGE = re.compile(r"/_local/runs/\w+", re.ASCII)


class EmrServer:
    """One stand-in: its components and its HTTP server."""

    def __init__(self, settings: EmrSettings, secret: str) -> None:
        self._settings = settings
        self._secret = secret
        self._faults = load_faults(settings)
        self._changes: queue.Queue[Sequence[StateChange]] = queue.Queue()
        self._events = EventSender(settings, self._faults)
        self._registry = RunRegistry(settings, self._changes.put)
        self._iam = IamClient(settings, secret)
        drivers = DriverPool(settings)
        self._scheduler = Scheduler(settings, self._registry, self._iam, drivers, self._faults)
        self._service = Service(settings, self._registry, self._iam, self._scheduler, self._faults, secret=secret)
        self._http: BaseWSGIServer = make_server("127.0.0.1", settings.port, self._respond, threaded=True)

    def serve(self) -> None:
        """Serve until `end` is called."""
        threading.Thread(target=self._send_events, name="events", daemon=True).start()
        self._scheduler.start()
        self._http.serve_forever(poll_interval=0.1)

    def end(self) -> None:
        """Stop the server and all drivers."""
        self._scheduler.end()
        threading.Thread(target=self._http.shutdown, daemon=True).start()

    def _send_events(self) -> None:
        while True:
            try:
                self._events.send(self._changes.get())
            except Exception:
                _logger.exception("state change events not sent")

    def _respond(self, environment: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        request = Request(environment)
        try:
            self._admit(request)
            response = self._local(request) if request.path.startswith("/_local/") else self._api(request)
        except ServiceError as error:
            response = _error(error)
        except Exception:
            _logger.exception("%s %s", request.method, request.path)
            response = _error(
                ServiceError("InternalServerException", "The local EMR Serverless failed; see its log", 500)
            )
        response.headers["x-amzn-RequestId"] = str(uuid.uuid4())
        return response(environment, start)

    def _admit(self, request: Request) -> None:
        """Refuse a request that may not enter; of a signed one, MiniStack checks the signature later.

        Raises:
            ServiceError: The request may not enter.
        """
        raw_path, _, query = _target(request).partition("?")
        call = HttpCall(request.method, raw_path, query, _headers(request))
        answer = admit(call, request.path, self._secret)
        is_page = _RUN_PAGE.fullmatch(raw_path) is not None and opens_page(call, self._secret)
        if isinstance(answer, Refusal) and (not is_page or refuse_foreign(call)):
            raise refused(answer.code, answer.message)

    def _api(self, request: Request) -> Response:
        request.max_content_length = _LARGEST_BODY
        try:
            content = request.get_data(cache=True)
        except RequestEntityTooLarge:
            raise ServiceError("ValidationException", "The request is too large", 413) from None
        signed = SignedRequest(request.method, _target(request), _headers(request), content)
        caller = self._iam.authenticate(signed)
        call = parse_request(request)
        result = self._service.execute(call, caller)
        if call.action in MUTATING and self._faults.repeats_call():
            result = self._service.execute(call, caller)
        body = encode_response(call.action, result)
        time.sleep(self._faults.response_delay())
        if call.action in MUTATING and self._faults.loses_response():
            _drop_connection(request.environ)
        return Response(body, content_type="application/json")

    def _local(self, request: Request) -> Response:
        match request.path.split("/")[2:], request.method:
            case ["health"], "GET":
                return _json({"status": "ok", "runs": len(self._registry.runs())})
            case ["runs", run_id, "kill"], "POST":
                return _json({"killed": self._scheduler.kill(run_id)})
            case ["runs", run_id], "GET":
                return Response(self._run_page(run_id), content_type="text/plain; charset=utf-8")
        raise ServiceError("ResourceNotFoundException", f"No local call {request.method} {request.path}", 404)

    def _run_page(self, run_id: str) -> str:
        """Return a page of text with the description and the output of a run."""
        run = next((run for run in self._registry.runs() if run.run_id == run_id), None)
        if run is None:
            raise ServiceError("ResourceNotFoundException", f"JobRun {run_id} does not exist.", 404)
        parts = [json.dumps(run.description(now()), indent=2, default=str)]
        for name in ("stdout", "stderr"):
            log = self._settings.folder / run_id / name
            parts.append(f"--- {name}: {log}\n{log.read_text(errors='replace') if log.exists() else ''}")
        return "\n\n".join(parts)


def _target(request: Request) -> str:
    return str(request.environ.get("RAW_URI", request.full_path))


def _headers(request: Request) -> dict[str, str]:
    return {name.lower(): value for name, value in request.headers.items()}


def _json(value: dict[str, Any]) -> Response:
    return Response(json.dumps(value), content_type="application/json")


def _error(error: ServiceError) -> Response:
    body = json.dumps({"message": error.message})
    response = Response(body, status=error.status, content_type="application/json")
    response.headers["x-amzn-ErrorType"] = error.code
    return response


def _drop_connection(environment: WSGIEnvironment) -> None:
    """Close the connection without a response."""
    connection = environment.get("werkzeug.socket")
    if isinstance(connection, socket.socket):
        connection.shutdown(socket.SHUT_RDWR)
