"""The steps of `asya deploy` and `asya destroy` around `cdk deploy` and `cdk destroy`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from asya_infra.assembly import Assembly, Template
from asya_infra.deployment.applications import (
    ApplicationChange,
    Applications,
    BusyApplicationError,
    application_changes,
    application_tags,
    applications,
)
from asya_infra.deployment.contract_changes import Locate, by_key, contract_changes, summary
from asya_infra.deployment.deployed_templates import deployed_templates
from asya_infra.deployment.dispatcher import Dispatcher, Resumption
from asya_infra.deployment.held_work import check_held_work
from asya_infra.deployment.protection import (
    protect_tables,
    protected_stacks,
    unprotect_failed_stacks,
    unprotect_stacks,
)
from asya_infra.deployment.removed_queues import check_removed_queues, protect_all_queues, protect_queues

_STOPS = 3  # a run that starts between the last look and the stop is rare, and a second one is rarer


class DeploymentError(RuntimeError):
    """The deployment is refused or failed; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """Deploys and destroys one synthesized mesh.

    Attributes:
        session: a boto3 session in the account and region of the mesh.
        assembly: the synthesized mesh.
        cdk: runs `cdk` with these arguments and returns its exit code.
        tell: prints a line for the user.
        sleep: waits for seconds.
        asks: whether the command and `cdk` may ask the user.
        waits: whether to wait for active job runs. If not, the command names them and ends.
        dropped: removed actors whose messages may be deleted.
        locate: makes the line of a finding about the mesh file.
        confirm: asks the user a question; True for yes.
    """

    session: Any
    assembly: Assembly
    cdk: Callable[[Sequence[str]], int]
    tell: Callable[[str], None]
    sleep: Callable[[float], None]
    asks: bool
    waits: bool = True
    dropped: Sequence[str] = ()
    locate: Locate = by_key
    confirm: Callable[[str], bool] = lambda _: False

    def deploy(self) -> None:
        """Deploy the mesh. An application that changes is stopped before, and gets its tags after.

        Raises:
            DeploymentError: the deployment is refused or failed.
        """
        self._check_account()
        deployed = self._deployed_templates()
        problems = [
            *check_removed_queues(self.session, self.assembly, dropped=self.dropped),
            *check_held_work(self.session, deployed, self.assembly, dropped=self.dropped),
        ]
        if problems:
            raise DeploymentError("\n".join(map(str, problems)))
        self._check_contracts(deployed)
        unprotect_failed_stacks(self.session, self.assembly.templates)
        with self._deletable_queues():
            approval = () if self.asks else ("--require-approval", "never")
            with self._stopped(application_changes(deployed, self.assembly.templates)):
                self._cdk("deploy", "--all", *approval)
                self._delete(each for each in self.assembly.absent_stacks if each in deployed)
            match self._resume():
                case "resumed":
                    self.tell("an interrupted deployment had paused the dispatcher; it runs again")
                case "disabled":
                    self.tell(
                        "somebody disabled the event source mapping of x-dispatch, so no job run starts; it stays disabled"
                    )
        protect_tables(self.session, self.assembly.templates.values())
        self._tag(deployed.get(self.assembly.spark_stack, {}))

    def destroy(self) -> None:
        """Destroy the mesh. Its application is stopped before, and protected stacks are released if the user agrees.

        Raises:
            DeploymentError: the deletion is refused or failed.
        """
        self._check_account()
        deployed = self._deployed_templates()
        has_asked = self._unprotect()
        with self._stopped(application_changes(deployed, {})):
            self._cdk("destroy", "--all", *(("--force",) if has_asked or not self.asks else ()))
            self._delete(deployed_templates(self.session, self.assembly.absent_stacks))

    def _delete(self, stacks: Iterable[str]) -> None:
        """Delete the stacks that the mesh no longer has: `cdk` leaves them."""
        for stack in stacks:
            self.tell(f"deleting the stack {stack}")
            self._apps.delete_stack(stack)

    def _unprotect(self) -> bool:
        """Release the stacks that are protected from termination. Return whether the user was asked."""
        stacks = protected_stacks(self.session, self.assembly.templates)
        if not stacks:
            return False
        question = (
            f"{', '.join(stacks)} are protected, because the mesh keeps its data. Destroy {self.assembly.namespace}?"
        )
        if self.asks and not self.confirm(question):
            raise DeploymentError("nothing was destroyed")
        unprotect_stacks(self.session, stacks)
        return self.asks

    def _deployed_templates(self) -> dict[str, Template]:
        """Return the deployed templates of the mesh, also those of optional stacks that it no longer has."""
        return deployed_templates(self.session, sorted({*self.assembly.templates, *self.assembly.absent_stacks}))

    def _check_account(self) -> None:
        """Refuse credentials of another account before anything changes there; `cdk` would refuse them later."""
        if self.assembly.account is None:
            return
        account = self.session.client("sts").get_caller_identity()["Account"]
        if account != self.assembly.account:
            raise DeploymentError(
                f"the mesh {self.assembly.namespace} belongs to the account {self.assembly.account}, but the credentials "
                f"are of {account}; use credentials of that account, or another stage"
            )

    def _check_contracts(self, deployed: Mapping[str, Template]) -> None:
        """Tell which changes of types break something. At a terminal the user decides."""
        findings = contract_changes(deployed, self.assembly.templates)
        if findings is None:
            self.tell("what is deployed does not record its types, so their changes are not checked this time")
            return
        for finding in findings:
            self.tell(self.locate(finding.place, str(finding)))
        if findings:
            self.tell(summary(len(findings)))
            if self.asks and not self.confirm("Deploy nevertheless?"):
                raise DeploymentError("nothing was deployed")

    @contextmanager
    def _deletable_queues(self) -> Iterator[None]:
        """Let updates delete the queues that were checked, and after that no queue, whether the deployment failed or not."""
        with self._at_the_end(
            lambda: protect_all_queues(self.session, self.assembly),
            "until the next deployment, updates may still delete the removed queues",
        ):
            protect_queues(self.session, self.assembly)
            yield

    @contextmanager
    def _stopped(self, changes: Sequence[ApplicationChange]) -> Iterator[None]:
        """Keep the applications of these changes stopped, and the dispatcher paused so that no run starts one again."""
        ids = [identity for each in changes if (identity := self._apps.id_of(each.stack, each.logical_id))]
        if not ids:
            yield
            return
        for change in changes:
            self.tell(f"the deployment {change.action} the Spark application of {change.stack}; it is stopped first")
        if not self.waits:
            self._refuse_active_runs(ids)
        self.tell("the dispatcher is paused, which takes some minutes; envelopes of heavy actors wait meanwhile")
        with self._at_the_end(self._resume, "heavy actors wait, because the dispatcher is still paused"):
            try:
                self._dispatcher.pause()
                for identity in ids:
                    self._stop(identity)
                yield
            except (BusyApplicationError, TimeoutError) as error:
                raise DeploymentError(str(error)) from error

    def _stop(self, identity: str) -> None:
        """Stop an application when its job runs have ended. A run that starts meanwhile starts the application again."""
        for _ in range(_STOPS):
            if self.waits:
                self._apps.wait_for_runs(identity)
            else:
                self._refuse_active_runs([identity])
            try:
                self._apps.stop(identity)
            except BusyApplicationError:
                if not self._apps.active_runs(identity):
                    raise
            if not self._apps.active_runs(identity):
                return
        raise BusyApplicationError(
            f"job runs start on the application {identity} although the dispatcher is paused. Find out who starts them "
            "(StartJobRun in CloudTrail), then deploy again"
        )

    def _resume(self) -> Resumption:
        try:
            return self._dispatcher.resume()
        except TimeoutError as error:
            raise DeploymentError(str(error)) from error

    @contextmanager
    def _at_the_end(self, action: Callable[[], object], otherwise: str) -> Iterator[None]:
        """Run an action at the end. After a failure, an error of the action is told and does not hide the first one.

        Args:
            action: what to do at the end.
            otherwise: what holds if the action fails.
        """
        try:
            yield
        except BaseException:
            try:
                action()
            except (DeploymentError, BotoCoreError, ClientError) as error:
                self.tell(f"{otherwise}: {error}")
            raise
        action()

    def _refuse_active_runs(self, ids: Sequence[str]) -> None:
        runs = [run for identity in ids for run in self._apps.active_runs(identity)]
        if runs:
            raise DeploymentError(
                f"{len(runs)} job runs are active: {', '.join(runs)}. Deploy when they have ended, or without --no-wait"
            )

    def _tag(self, before: Template) -> None:
        after = self.assembly.templates.get(self.assembly.spark_stack, {})
        for logical_id in applications(after):
            identity = self._apps.id_of(self.assembly.spark_stack, logical_id)
            if identity is not None:
                self._apps.tag(identity, application_tags(before), application_tags(after))

    def _cdk(self, *arguments: str) -> None:
        code = self.cdk((*arguments, "--app", str(self.assembly.folder)))
        if code:
            raise DeploymentError(f"`cdk {arguments[0]}` failed (exit code {code}); see its output, then run it again")

    @cached_property
    def _apps(self) -> Applications:
        return Applications(self.session, self.tell, self.sleep)

    @cached_property
    def _dispatcher(self) -> Dispatcher:
        return Dispatcher(self.session, self.assembly.namespace, self.sleep)
