"""The order of the steps around `cdk deploy` and `cdk destroy`."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from asya_infra.assembly import Assembly
from asya_infra.contracts.mesh_contracts import ACTOR, TOOLS, ActorContract, MeshContracts, actor_records, tools_record
from asya_infra.deployment import commands
from asya_infra.deployment.applications import BusyApplicationError
from asya_infra.deployment.commands import Deployment, DeploymentError
from asya_infra.deployment.dispatcher import Resumption

SPARK, STATE = "Asya-shop-spark", "Asya-shop-state"


def spark(vcpu: int = 16, **tags: str) -> dict[str, Any]:
    return {
        "Resources": {
            "Application": {"Type": "AWS::EMRServerless::Application", "Properties": {"Cpu": vcpu}},
            "ApplicationId": {"Type": "AWS::SSM::Parameter", "Properties": {"Tags": tags}},
        }
    }


class Account:
    """Records the steps of a deployment, in place of AWS and `cdk`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **deployed: dict[str, Any]) -> None:
        self.steps: list[str] = []
        self.stacks = deployed
        self.runs: list[str] = []
        self.late_runs: list[list[str]] = []
        self.code = 0
        self.is_paused = self.stays_paused = self.is_stuck = self.is_disabled = False
        self.problems: list[str] = []
        self.protected: list[str] = []
        self.protections: list[str] = []
        self.error: Exception | None = None
        monkeypatch.setattr(
            commands,
            "deployed_templates",
            lambda _, stacks: {name: self.stacks[name] for name in stacks if name in self.stacks},
        )
        monkeypatch.setattr(commands, "check_removed_queues", lambda *_, **__: self.problems)
        monkeypatch.setattr(commands, "protect_queues", lambda *_: self.steps.append("let queues go"))
        monkeypatch.setattr(commands, "protect_all_queues", self._protect)
        monkeypatch.setattr(commands, "protect_tables", lambda *_: self.protections.append("protect tables"))
        monkeypatch.setattr(commands, "unprotect_failed_stacks", lambda *_: self.protections.append("release failed"))
        monkeypatch.setattr(commands, "protected_stacks", lambda *_: self.protected)
        monkeypatch.setattr(commands, "unprotect_stacks", lambda _, names: self.steps.append(f"release {names}"))

    def deployment(self, templates: dict[str, Any], **more: Any) -> Deployment:
        made = Deployment(
            session=None,
            assembly=Assembly(Path("cdk.out"), "shop", {STATE: {}, **templates}),
            cdk=self._cdk,
            sleep=lambda _: None,
            **{"asks": False, "tell": lambda _: None, **more},
        )
        made.__dict__["_apps"] = SimpleNamespace(
            id_of=lambda stack, logical_id: f"{stack}/{logical_id}",
            active_runs=lambda _: self.late_runs.pop(0) if self.late_runs else self.runs,
            wait_for_runs=lambda identity: self.steps.append(f"wait for runs of {identity}"),
            stop=self._stop,
            tag=lambda identity, before, tags: self.steps.append(f"tag {identity} {before} {tags}"),
            delete_stack=lambda stack: self.steps.append(f"delete {stack}"),
        )
        made.__dict__["_dispatcher"] = SimpleNamespace(pause=self._pause, resume=self._resume)
        return made

    def _cdk(self, arguments: Sequence[str]) -> int:
        self.steps.append(f"cdk {' '.join(arguments)}")
        return self.code

    def _stop(self, identity: str) -> None:
        self.steps.append(f"stop {identity}")
        if self.is_stuck:
            raise BusyApplicationError("the application does not stop")
        if self.runs:
            raise BusyApplicationError("it has active job runs")

    def _protect(self, *_: object) -> None:
        if self.error:
            raise self.error
        self.steps.append("protect queues")

    def _pause(self) -> None:
        self.is_paused = True
        self.steps.append("pause")

    def _resume(self) -> Resumption:
        if self.stays_paused:
            raise TimeoutError("x-dispatch stays disabled")
        was_paused, self.is_paused = self.is_paused, False
        if was_paused:
            self.steps.append("resume")
            return "resumed"
        return "disabled" if self.is_disabled else "running"


DEPLOY = "cdk deploy --all --require-approval never --app cdk.out"
APPLICATION = f"{SPARK}/Application"


def test_a_deployment_that_leaves_the_application_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(monkeypatch, **{SPARK: spark(team="a")})
    account.deployment({SPARK: spark(team="b")}).deploy()
    assert account.steps == [
        "let queues go",
        DEPLOY,
        "protect queues",
        f"tag {APPLICATION} {{'team': 'a'}} {{'team': 'b'}}",
    ]


def test_the_first_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(monkeypatch)
    account.deployment({SPARK: spark()}).deploy()
    assert account.steps == ["let queues go", DEPLOY, "protect queues", f"tag {APPLICATION} {{}} {{}}"]


def test_an_application_that_changes_is_stopped_first(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(monkeypatch, **{SPARK: spark(16)})
    account.deployment({SPARK: spark(64)}).deploy()
    assert account.steps[1:6] == ["pause", f"wait for runs of {APPLICATION}", f"stop {APPLICATION}", DEPLOY, "resume"]


def test_without_waiting_active_runs_end_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(monkeypatch, **{SPARK: spark(16)})
    account.runs = ["asya.shop.crunch.0000000001 (RUNNING)"]
    with pytest.raises(DeploymentError, match=r"1 job runs are active: asya\.shop\.crunch\.0000000001 \(RUNNING\)"):
        account.deployment({SPARK: spark(64)}, waits=False).deploy()
    assert account.steps == ["let queues go", "protect queues"]

    account.runs = []
    account.deployment({SPARK: spark(64)}, waits=False).deploy()
    assert account.steps[3:6] == ["pause", f"stop {APPLICATION}", DEPLOY]


def test_the_dispatcher_goes_on_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(monkeypatch, **{SPARK: spark(16)})
    account.code = 1
    with pytest.raises(DeploymentError, match="`cdk deploy` failed"):
        account.deployment({SPARK: spark(64)}).deploy()
    assert account.steps[-2] == "resume"

    account.is_stuck = True
    with pytest.raises(DeploymentError, match="the application does not stop"):
        account.deployment({SPARK: spark(64)}).deploy()
    assert account.steps[-2] == "resume"


def test_a_run_that_starts_before_or_during_the_stop_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(monkeypatch, **{SPARK: spark(16)})
    account.late_runs = [["asya.shop.crunch.0000000002 (SUBMITTED)"]]
    account.deployment({SPARK: spark(64)}).deploy()
    stop = [f"wait for runs of {APPLICATION}", f"stop {APPLICATION}"]
    assert account.steps[1:8] == ["pause", *stop, *stop, DEPLOY, "resume"]


def test_without_waiting_a_run_that_starts_during_the_stop_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(monkeypatch, **{SPARK: spark(16)})
    # Before the pause, before the stop, after it, and before the next one.
    account.late_runs = [[], [], ["late (SUBMITTED)"], ["late (SUBMITTED)"]]
    with pytest.raises(DeploymentError, match=r"1 job runs are active: late \(SUBMITTED\)"):
        account.deployment({SPARK: spark(64)}, waits=False).deploy()
    assert account.steps[1:] == ["pause", f"stop {APPLICATION}", "resume", "protect queues"]


def test_runs_that_somebody_else_starts_end_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(monkeypatch, **{SPARK: spark(16)})
    account.runs = ["other (RUNNING)"]
    with pytest.raises(
        DeploymentError, match=r"job runs start on the application .* although the dispatcher is paused"
    ):
        account.deployment({SPARK: spark(64)}).deploy()
    assert account.steps.count(f"stop {APPLICATION}") == 3
    assert DEPLOY not in account.steps


def test_all_queues_are_protected_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(monkeypatch)
    account.code = 1
    with pytest.raises(DeploymentError, match="`cdk deploy` failed"):
        account.deployment({}).deploy()
    assert account.steps == ["let queues go", DEPLOY, "protect queues"]


def test_a_failed_protection_does_not_hide_why_the_deployment_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    account, told = Account(monkeypatch), list[str]()
    account.code = 1
    account.error = EndpointConnectionError(endpoint_url="https://cloudformation")
    with pytest.raises(DeploymentError, match="`cdk deploy` failed"):
        account.deployment({}, tell=told.append).deploy()
    assert "updates may still delete the removed queues: Could not connect" in told[-1]


@pytest.mark.parametrize("action", [Deployment.deploy, Deployment.destroy])
def test_a_dispatcher_that_stays_paused_does_not_hide_the_first_error(
    monkeypatch: pytest.MonkeyPatch, action: Callable[[Deployment], None]
) -> None:
    account, told = Account(monkeypatch, **{SPARK: spark(16)}), list[str]()
    account.code, account.stays_paused = 1, True
    with pytest.raises(DeploymentError, match=r"`cdk \w+` failed"):
        action(account.deployment({SPARK: spark(64)}, tell=told.append))
    assert told[-1] == "heavy actors wait, because the dispatcher is still paused: x-dispatch stays disabled"


def test_a_dispatcher_that_stays_paused_fails_the_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(monkeypatch, **{SPARK: spark(16)})
    account.stays_paused = True
    for vcpu in (16, 64):  # 16 changes nothing: the dispatcher was paused before
        with pytest.raises(DeploymentError, match="x-dispatch stays disabled"):
            account.deployment({SPARK: spark(vcpu)}).deploy()
        assert account.steps[-1] == "protect queues"


def test_a_deployment_resumes_what_a_killed_one_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(monkeypatch, **{SPARK: spark()})
    account.is_paused = True
    told: list[str] = []
    account.deployment({SPARK: spark()}, tell=told.append).deploy()
    assert account.steps[1:3] == [DEPLOY, "resume"]
    assert told == ["an interrupted deployment had paused the dispatcher; it runs again"]


def test_a_dispatcher_that_an_operator_disabled_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    account, told = Account(monkeypatch), list[str]()
    account.is_disabled = True
    account.deployment({}, tell=told.append).deploy()
    assert told == ["somebody disabled the event source mapping of x-dispatch, so no job run starts; it stays disabled"]


def test_the_stack_of_an_application_that_the_mesh_no_longer_has_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(monkeypatch, **{SPARK: spark()})
    account.deployment({}).deploy()
    assert account.steps == [
        "let queues go",
        "pause",
        f"wait for runs of {APPLICATION}",
        f"stop {APPLICATION}",
        DEPLOY,
        f"delete {SPARK}",
        "resume",
        "protect queues",
    ]


GATEWAY = "Asya-shop-gateway"


def typed(**fields: str) -> dict[str, Any]:
    """A template with the record of an actor that needs these fields."""
    schema = {"type": "object", "properties": {name: {"type": kind} for name, kind in fields.items()}}
    contracts = MeshContracts({"bill": ActorContract({**schema, "required": list(fields)})})
    metadata = {TOOLS: tools_record(contracts), ACTOR: actor_records(contracts, ["bill"])["bill"]}
    return {"Resources": {"Function": {"Type": "AWS::Lambda::Function", "Properties": {}, "Metadata": metadata}}}


TOLD = [
    "actors.bill: 'bill' needs total: float; envelopes in flight may have none; give it a default, or deploy in two "
    "steps: first what gives it, then what needs it",
    "1 change breaks envelopes in flight or callers; see docs/how-to/change-a-mesh.md",
]


def test_a_type_that_breaks_envelopes_in_flight_is_told_before_anything_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    account, told = Account(monkeypatch, **{GATEWAY: typed(id="string")}), list[str]()
    account.deployment({GATEWAY: typed(id="string", total="number")}, tell=told.append).deploy()
    assert told == TOLD
    assert account.steps == ["let queues go", DEPLOY, "protect queues"]


@pytest.mark.parametrize("answer", [True, False])
def test_at_a_terminal_the_user_decides_on_breaking_types(monkeypatch: pytest.MonkeyPatch, answer: bool) -> None:
    account, questions = Account(monkeypatch, **{GATEWAY: typed(id="string")}), list[str]()

    def confirm(question: str) -> bool:
        questions.append(question)
        return answer

    deployment = account.deployment({GATEWAY: typed(id="integer")}, asks=True, confirm=confirm)
    if answer:
        deployment.deploy()
    else:
        with pytest.raises(DeploymentError, match="nothing was deployed"):
            deployment.deploy()
    assert questions == ["Deploy nevertheless?"]
    assert bool(account.steps) == answer


def test_types_that_break_nothing_are_deployed_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    account, told = Account(monkeypatch, **{GATEWAY: typed(id="string", total="number")}), list[str]()
    account.deployment({GATEWAY: typed(id="string")}, tell=told.append, asks=True).deploy()
    assert told == []


def test_the_templates_of_an_earlier_version_record_no_types(monkeypatch: pytest.MonkeyPatch) -> None:
    function = {"Type": "AWS::Lambda::Function", "Properties": {}}
    account, told = Account(monkeypatch, **{GATEWAY: {"Resources": {"Function": function}}}), list[str]()
    account.deployment({GATEWAY: typed(id="string")}, tell=told.append, asks=True).deploy()
    assert told == ["what is deployed does not record its types, so their changes are not checked this time"]


def test_queues_with_messages_refuse_the_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(monkeypatch)
    account.problems = ["asya-shop-bill: has messages"]
    with pytest.raises(DeploymentError, match="asya-shop-bill: has messages"):
        account.deployment({}).deploy()
    assert account.steps == []


def test_destroy_stops_the_application_first(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(monkeypatch, **{SPARK: spark()})
    account.deployment({SPARK: spark()}).destroy()
    assert account.steps == [
        "pause",
        f"wait for runs of {APPLICATION}",
        f"stop {APPLICATION}",
        "cdk destroy --all --force --app cdk.out",
        "resume",
    ]


def test_destroy_deletes_the_stack_of_an_application_that_the_mesh_no_longer_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    account = Account(monkeypatch, **{SPARK: spark()})
    account.deployment({}).destroy()
    assert account.steps[3:] == ["cdk destroy --all --force --app cdk.out", f"delete {SPARK}", "resume"]


def test_at_a_terminal_cdk_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(monkeypatch)
    account.deployment({}, asks=True).deploy()
    account.deployment({}, asks=True).destroy()
    assert [step for step in account.steps if step.startswith("cdk")] == [
        "cdk deploy --all --app cdk.out",
        "cdk destroy --all --app cdk.out",
    ]


@pytest.mark.parametrize("action", [Deployment.deploy, Deployment.destroy])
def test_credentials_of_another_account_are_refused_before_anything_changes(
    monkeypatch: pytest.MonkeyPatch, action: Callable[[Deployment], None]
) -> None:
    account = Account(monkeypatch)
    made = account.deployment({})
    caller = SimpleNamespace(get_caller_identity=lambda: {"Account": "210987654321"})
    session = SimpleNamespace(client=lambda _: caller)
    there = replace(made, session=session, assembly=replace(made.assembly, account="123456789012"))
    with pytest.raises(
        DeploymentError, match=r"the mesh shop belongs to the account 123456789012, but .* 210987654321"
    ):
        action(there)
    assert account.steps == []


def test_tables_are_protected_after_a_deployment_and_stacks_that_never_were_released_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    account = Account(monkeypatch)
    account.code = 1
    with pytest.raises(DeploymentError):
        account.deployment({}).deploy()
    assert account.protections == ["release failed"]
    account.code = 0
    account.deployment({}).deploy()
    assert account.protections == ["release failed"] * 2 + ["protect tables"]


def test_destroy_releases_protected_stacks_only_after_a_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(monkeypatch)
    account.protected = [STATE]
    questions: list[str] = []

    def answer(value: bool) -> dict[str, Any]:
        return {"asks": True, "confirm": lambda question: bool(questions.append(question)) or value}

    with pytest.raises(DeploymentError, match="nothing was destroyed"):
        account.deployment({}, **answer(False)).destroy()
    assert account.steps == []
    account.deployment({}, **answer(True)).destroy()
    assert questions == [f"{STATE} are protected, because the mesh keeps its data. Destroy shop?"] * 2
    # `cdk destroy` does not ask again.
    assert account.steps == [f"release ['{STATE}']", "cdk destroy --all --force --app cdk.out"]
    account.steps.clear()
    account.deployment({}).destroy()
    assert account.steps == [f"release ['{STATE}']", "cdk destroy --all --force --app cdk.out"]


def test_destroy_of_a_mesh_without_protection_lets_the_cdk_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(monkeypatch)
    account.deployment({}, asks=True).destroy()
    assert account.steps == ["cdk destroy --all --app cdk.out"]
