"""Compares the deployed Spark applications with the synthesized ones, stops them and tags them.

EMR Serverless changes and deletes only a stopped application.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from botocore.exceptions import ClientError

from asya_infra.assembly import Template

_APPLICATION = "AWS::EMRServerless::Application"


@dataclass(frozen=True, order=True)
class ApplicationChange:
    """An application that a deployment changes or deletes."""

    stack: str
    logical_id: str
    action: Literal["changes", "deletes"]


def application_changes(
    deployed: Mapping[str, Template], synthesized: Mapping[str, Template]
) -> list[ApplicationChange]:
    """Return the applications that must be stopped before a deployment.

    Args:
        deployed: the templates of the deployed stacks by name.
        synthesized: the templates to deploy. A stack that they lack is to be deleted.
    """
    changes: list[ApplicationChange] = []
    for stack, template in deployed.items():
        later = applications(synthesized.get(stack, {}))
        for logical_id, resource in applications(template).items():
            if logical_id not in later:
                changes.append(ApplicationChange(stack, logical_id, "deletes"))
            elif _properties(resource) != _properties(later[logical_id]):
                changes.append(ApplicationChange(stack, logical_id, "changes"))
    return sorted(changes)


def applications(template: Template) -> dict[str, Mapping[str, Any]]:
    """Return the applications of a template by logical id."""
    return {
        logical_id: resource
        for logical_id, resource in template.get("Resources", {}).items()
        if resource["Type"] == _APPLICATION
    }


def application_tags(template: Template) -> dict[str, str]:
    """Return the tags of the application of a template: those of the parameter with its id."""
    for resource in template.get("Resources", {}).values():
        if resource["Type"] == "AWS::SSM::Parameter":
            return dict(resource["Properties"].get("Tags", {}))
    return {}


def _properties(resource: Mapping[str, Any]) -> Any:
    """Return what CloudFormation compares; the metadata of CDK changes nothing."""
    return {key: value for key, value in resource.items() if key != "Metadata"}


# The states of a job run that has not ended.
ACTIVE_RUNS = ("SUBMITTED", "PENDING", "SCHEDULED", "RUNNING", "CANCELLING", "QUEUED")
# The states of an application that CloudFormation can change and delete.
_AT_REST = frozenset({"CREATED", "STOPPED", "TERMINATED"})
_POLL_SECONDS = 15.0
_POLLS_TO_STOP = 40


class BusyApplicationError(RuntimeError):
    """An application has active job runs, or does not stop."""


@dataclass(frozen=True)
class Applications:
    """The applications in the account and region of a session.

    Attributes:
        session: a boto3 session.
        tell: prints a line for the user.
        sleep: waits for seconds.
    """

    session: Any
    tell: Callable[[str], None]
    sleep: Callable[[float], None]
    _clients: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def id_of(self, stack: str, logical_id: str) -> str | None:
        """Return the id of a deployed application; None if its creation failed, was rolled back, or never began."""
        try:
            answer = self._client("cloudformation").describe_stack_resource(
                StackName=stack, LogicalResourceId=logical_id
            )
        except ClientError as error:
            if "does not exist" not in error.response["Error"]["Message"]:
                raise
            return None
        resource = answer["StackResourceDetail"]
        if resource["ResourceStatus"] == "DELETE_COMPLETE":
            return None
        identity: str | None = resource.get("PhysicalResourceId")
        return identity

    def active_runs(self, application_id: str) -> list[str]:
        """Return the job runs that have not ended, each with its name and state; none if the application is gone."""
        pages = (
            self._client("emr-serverless")
            .get_paginator("list_job_runs")
            .paginate(applicationId=application_id, states=list(ACTIVE_RUNS))
        )
        try:
            return [f"{run.get('name') or run['id']} ({run['state']})" for page in pages for run in page["jobRuns"]]
        except ClientError:
            # ListJobRuns documents no error for an application that does not exist; GetApplication does.
            if self._state(application_id) in {None, "TERMINATED"}:
                return []
            raise

    def wait_for_runs(self, application_id: str) -> None:
        """Wait until no job run is active, for as long as it takes."""
        previous: list[str] = []
        while runs := self.active_runs(application_id):
            if runs != previous:
                self.tell(f"waiting for {len(runs)} job runs of the application {application_id}: {', '.join(runs)}")
                previous = runs
            self.sleep(_POLL_SECONDS)

    def stop(self, application_id: str) -> None:
        """Stop an application and wait until it is stopped.

        Raises:
            BusyApplicationError: it has active job runs, or does not stop.
        """
        emr = self._client("emr-serverless")
        for _ in range(_POLLS_TO_STOP):
            state = self._state(application_id)
            if state is None or state in _AT_REST:
                return
            if state == "STARTED":
                self.tell(f"stopping the application {application_id}")
                try:
                    emr.stop_application(applicationId=application_id)
                except emr.exceptions.ValidationException as error:
                    raise BusyApplicationError(
                        f"the application {application_id} cannot be stopped: {error}"
                    ) from error
            self.sleep(_POLL_SECONDS)
        raise BusyApplicationError(f"the application {application_id} does not stop; it is {state}. Try again later")

    def tag(self, application_id: str, before: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """Change the tags of an application; EMR Serverless allows it while the application is started.

        Args:
            application_id: the id of the application.
            before: the tags of the previous deployment; those that are gone are removed, and other tags stay.
            tags: the tags of this deployment.
        """
        emr = self._client("emr-serverless")
        application = emr.get_application(applicationId=application_id)["application"]
        present: dict[str, str] = application.get("tags", {})
        if missing := {key: value for key, value in tags.items() if present.get(key) != value}:
            emr.tag_resource(resourceArn=application["arn"], tags=missing)
        if removed := sorted((before.keys() - tags.keys()) & present.keys()):
            emr.untag_resource(resourceArn=application["arn"], tagKeys=removed)

    def delete_stack(self, stack: str) -> None:
        """Delete a stack and wait until it is deleted."""
        cloudformation = self._client("cloudformation")
        cloudformation.delete_stack(StackName=stack)
        cloudformation.get_waiter("stack_delete_complete").wait(StackName=stack)

    def _state(self, application_id: str) -> str | None:
        """Return the state of an application; None if it is gone."""
        emr = self._client("emr-serverless")
        try:
            state: str = emr.get_application(applicationId=application_id)["application"]["state"]
        except emr.exceptions.ResourceNotFoundException:
            return None
        return state

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self.session.client(service)
        return self._clients[service]
