"""Declares the calls of the gateway about sets of slices (`protocol §13`)."""

from asya.api_call import ApiCall, Named
from asya.protocol import names

TASK_SET = ApiCall(
    method="GET",
    path="/api/v1/mesh/{id}/set",
    handler="asya.gateway.routes.tasks.TaskSetRoutes.of_task",
    function=names.GATEWAY_API,
    summary="Read the set of slices that a task waits for, with the slices that are missing",
    in_console=True,
    answers={200: Named("asya.capabilities.fan_in.set_view.TaskSet")},
    errors=(404,),
)

CALLS = (TASK_SET,)
