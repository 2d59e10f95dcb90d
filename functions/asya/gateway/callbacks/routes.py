"""Answers pauses by callbacks: `GET` and `POST /callbacks?token=…` (`protocol §11`).

The calls are open. The token names the pause, and its holder may answer once. A `GET` changes nothing, because mail scanners
follow links.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from msgspec import UNSET

from asya.capabilities.pauses.callback_tokens import Callback, CallbackTokenError, key_label, read
from asya.capabilities.pauses.resume_input import Answers, InvalidInputError, read_request
from asya.gateway.callbacks import page
from asya.gateway.callbacks.page import MEDIA_TYPE, read_form, values_of
from asya.gateway.http.router import Request, Response, TextBody
from asya.gateway.routes.resume import Resumed, ResumeRoutes
from asya.protocol.api_errors import ApiError
from asya.protocol.pause import ANSWERS_LIMIT, TaskPause
from asya.protocol.task import TaskRecord
from asya.senders.aws.token_keys import TokenKeyError, TokenKeys
from asya.tasks.aws.task_store import TaskStore, TaskStoreError

_JSON = "application/json"
_UNKNOWN = ApiError(404, "not_found", "this link is not valid, or has expired")
_OVER = ApiError(409, "not_paused", "this question was answered already, or is no longer asked")
_UNAVAILABLE = ApiError(503, "unavailable", "the question cannot be read now; try again in a minute")
_NO_PLACE = "cannot be put into the payload"
_TITLES = {404: "Unknown link", 409: "No longer asked", 413: "Too long", 503: "Try again later"}


@dataclass(frozen=True)
class CallbackRoutes:
    """Shows the question of a pause to the holder of its token, and takes the answer."""

    namespace: str
    store: TaskStore
    resumes: ResumeRoutes
    keys: TokenKeys

    def show(self, request: Request, now: datetime) -> Response:
        """`GET /callbacks`: 200 with the question, as a page or as JSON; nothing changes."""
        return self._answer(request, now, self._show)

    def resume(self, request: Request, now: datetime) -> Response:
        """`POST /callbacks`: 200, or 422 with the problem of each field; the task then stays paused."""
        return self._answer(request, now, self._resume)

    def _show(self, request: Request, now: datetime) -> Response:
        pause = self._pause(self._callback(request, now), now)
        if _wants_json(request):
            question = {"prompt": pause.prompt, "fields": pause.fields}
            shown = {"shown": pause.shown} if pause.shown is not UNSET else {}
            return Response(200, question | shown, page.HEADERS)
        return _html(200, page.form_page(pause))

    def _resume(self, request: Request, now: datetime) -> Response:
        callback = self._callback(request, now)
        limit = min(ANSWERS_LIMIT, self.resumes.mesh.gateway.max_body)
        _check_length(len(request.body), limit)
        pause = self._pause(callback, now)
        is_form = request.headers.get("content-type", "").partition(";")[0].strip().lower() == MEDIA_TYPE
        try:
            answers: Answers = read_form(request.body, pause.fields) if is_form else read_request(request.text)
            # A control character has one byte in a form, and six in JSON.
            _check_length(sum(len(bytes(answer)) for answer in answers.values()), limit)
            self.resumes.end_pause(callback.task_id, answers, now, lambda record: _check(record, callback))
        except InvalidInputError as invalid:
            return _refused(request, pause, invalid)
        if _wants_json(request):
            return Response(200, Resumed(id=callback.task_id), page.HEADERS)
        return _html(200, page.message_page("Thank you", "Your answer was taken, and the task goes on."))

    def _answer(self, request: Request, now: datetime, responder: Callable[[Request, datetime], Response]) -> Response:
        """Every answer has the headers of the page, and no error tells more than the link does."""
        try:
            return responder(request, now)
        except ApiError as error:
            # The other errors of a resume name the task, and what is wrong with its envelope.
            known = {404: _UNKNOWN, 409: _OVER}.get(error.status, error if error.status in (400, 413) else _UNAVAILABLE)
        except TaskStoreError:
            known = _UNAVAILABLE
        if _wants_json(request):
            return Response(known.status, {"error": {"code": known.code, "message": known.message}}, page.HEADERS)
        title = _TITLES.get(known.status, "Not understood")
        return _html(known.status, page.message_page(title, known.message))

    def _callback(self, request: Request, now: datetime) -> Callback:
        try:
            return read(self.keys.get(key_label(self.namespace)), request.query.get("token", ""), now)
        except CallbackTokenError:
            raise _UNKNOWN from None
        except TokenKeyError:
            raise _UNAVAILABLE from None

    def _pause(self, callback: Callback, now: datetime) -> TaskPause:
        stored = self.store.records([callback.task_id], now, consistent=True).get(callback.task_id)
        if stored is None:
            raise _OVER
        _check(stored.record, callback)
        if stored.record.pause is None:
            raise _OVER
        return stored.record.pause


def _check_length(length: int, limit: int) -> None:
    if length > limit:
        raise ApiError(413, "too_large", "the answer is too long")


def _check(record: TaskRecord, callback: Callback) -> None:
    """Check that a task is in the very pause that a token answers.

    Raises:
        ApiError: 409 if it is not.
    """
    is_asked = record.is_paused and (record.generation, record.pause_epoch) == (
        callback.generation,
        callback.epoch,
    )
    if not is_asked:
        raise _OVER


def _refused(request: Request, pause: TaskPause, invalid: InvalidInputError) -> Response:
    # The reason why an answer has no place tells about the payload.
    problems = {name: _NO_PLACE if text.startswith(_NO_PLACE) else text for name, text in invalid.fields.items()}
    if not _wants_json(request):
        return _html(422, page.form_page(pause, problems, values_of(request.body)))
    fields = [{"name": name, "message": problem} for name, problem in problems.items()]
    message = "the task stays paused: " + "; ".join(f"{name}: {problem}" for name, problem in problems.items())
    return Response(422, {"error": {"code": invalid.code, "message": message, "fields": fields}}, page.HEADERS)


def _wants_json(request: Request) -> bool:
    """Whether the caller is a program: it sends JSON, or asks for JSON and for no page."""
    headers: Mapping[str, str] = request.headers
    if headers.get("content-type", "").startswith(_JSON):
        return True
    accepted = headers.get("accept", "")
    return _JSON in accepted and "text/html" not in accepted


def _html(status: int, text: str) -> Response:
    return Response(status, TextBody("text/html; charset=utf-8", text), page.HEADERS)
