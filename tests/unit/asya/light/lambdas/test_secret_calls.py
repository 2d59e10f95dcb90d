"""protocol §6: an actor with secrets: its variables, its failures, and what leaves the function."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from asya.ends.lambdas.wiring import build_end_actor
from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol.mesh_table import Policy, Resiliency
from asya.runtime.load import LoadError
from asya.sidecar.aws import secrets
from asya.sidecar.lambdas import entry_point
from asya.sidecar.lambdas.entry_point import queue_entry_point
from tests.doubles.envelopes import message
from tests.doubles.light_actor import echo, never, run
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event
from tests.doubles.secret_stores import SecretStores, install_secret_stores, service_error

VALUE = "sk-4f9c81d2e6"
SECRETS = {"SHOP_KEY": "shop/key"}


@pytest.fixture(autouse=True)
def stores(monkeypatch: pytest.MonkeyPatch) -> SecretStores:
    monkeypatch.setenv("SHOP_KEY", "")
    monkeypatch.delenv("SHOP_KEY")
    stores = install_secret_stores(monkeypatch)
    stores.secrets["shop/key"] = VALUE
    return stores


def outputs(world: MeshWorld) -> str:
    """Everything that the function sent, stored and reported."""
    bodies = [message.body for queue in world.sqs.sent.values() for message in queue]
    return f"{bodies} {world.s3.objects} {world.gateway.events} {world.gateway.partials}"


@pytest.mark.rule("6.secrets")
def test_6_the_handler_finds_its_secret(world: MeshWorld) -> None:
    keys = []

    def handler(payload: Any) -> Any:
        keys.append(os.environ["SHOP_KEY"])
        return payload

    assert run(world, handler, message(), secrets=SECRETS) == []
    assert keys == [VALUE]
    assert VALUE not in outputs(world)


@pytest.mark.rule("6.secrets")
def test_6_the_module_finds_its_secret_when_it_is_imported(
    world: MeshWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reads_at_import.py").write_text(
        "import os\nKEY = os.environ['SHOP_KEY']\ndef size(_): return len(KEY)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert run(world, never, message(), name="reads_at_import.size", secrets=SECRETS) == []
    (frame,) = world.sent("post")
    assert json.loads(bytes(frame.payload)) == len(VALUE)
    sys.modules.pop("reads_at_import")


@pytest.mark.rule("6.secrets")
def test_6_a_rotated_secret_reaches_a_warm_function(world: MeshWorld, stores: SecretStores) -> None:
    world.monkeypatch.setattr(secrets, "MAX_AGE_SECONDS", 0.0)
    keys = []
    services = world.light(lambda _: keys.append(os.environ["SHOP_KEY"]), secrets=SECRETS)
    actor = build_sidecar(services)
    assert batch_failures(actor.process(sqs_event(message(id="e1")))) == []
    stores.secrets["shop/key"] = "sk-second"
    assert batch_failures(actor.process(sqs_event(message(id="e2")))) == []
    assert keys == [VALUE, "sk-second"]


@pytest.mark.rule("6.secrets.unreadable")
@pytest.mark.parametrize("kind", ["handler", "end"])
def test_6_without_its_secret_a_message_stays_on_its_queue(
    world: MeshWorld, stores: SecretStores, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a cold start, before the handler is loaded: the receives of a message outlast an outage of 45 minutes."""
    spec = {"kind": "end", "handler_mode": "envelope", "validate": False} if kind == "end" else {}
    services = world.light(echo, secrets=SECRETS, **spec)
    monkeypatch.setattr(entry_point, "services", lambda: services)
    handle = queue_entry_point(build_end_actor if kind == "end" else build_sidecar)
    stores.error = service_error("ThrottlingException")
    hidden = []
    for count in range(1, 6):
        event = sqs_event(message(id="e1"), message(id="e2"), receive_counts={0: count, 1: count})
        assert sorted(batch_failures(handle(event, None))) == ["message-0", "message-1"]
        hidden.append(set(world.sqs.visibility.values()))
    assert hidden == [{300}, {600}, {900}, {900}, {900}]
    assert world.targets == []
    stores.error = None
    assert batch_failures(handle(event, None)) == []


@pytest.mark.rule("6.secrets.unreadable")
def test_6_a_secret_that_is_revoked_later_keeps_the_message_too(world: MeshWorld, stores: SecretStores) -> None:
    world.monkeypatch.setattr(secrets, "MAX_AGE_SECONDS", 0.0)
    retried = Resiliency(policies={"default": Policy(max_attempts=3)})
    services = world.light(echo, secrets=SECRETS, resiliency=retried)
    actor = build_sidecar(services)
    stores.error = service_error("AccessDeniedException")
    assert batch_failures(actor.process(sqs_event(message()))) == ["message-0"]
    assert world.targets == []
    assert world.sqs.visibility == {"receipt-0": 300}


def raises(_: Any) -> Any:
    raise ValueError(f"401: {os.environ['SHOP_KEY']} is not valid")


def raises_late(_: Any) -> Iterator[Any]:
    yield 1
    raise ValueError(f"401: {os.environ['SHOP_KEY']} is not valid")


def exits(_: Any) -> Any:
    raise SystemExit(os.environ["SHOP_KEY"])


@pytest.mark.rule("6.secrets.redacted")
@pytest.mark.parametrize("handler", [raises, raises_late, exits])
def test_6_the_value_leaves_the_function_nowhere(
    world: MeshWorld, handler: Callable[[Any], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither in envelopes, reports, objects nor logs."""
    assert run(world, handler, message(), secrets=SECRETS) == []
    (failed,) = world.sent("x-sink") + world.sent("x-sump")
    assert failed.status is not None
    assert failed.status.error is not None
    assert "[secret SHOP_KEY]" in failed.status.error.message
    captured = capsys.readouterr()
    assert VALUE not in outputs(world) + captured.out + captured.err


def cleans_up_badly(_: Any) -> Iterator[Any]:
    try:
        yield {1, 2}
    finally:
        raise ValueError(f"401: {os.environ['SHOP_KEY']} is not valid")


async def cleans_up_badly_later(_: Any) -> AsyncIterator[Any]:
    try:
        yield {1, 2}
    finally:
        raise ValueError(f"401: {os.environ['SHOP_KEY']} is not valid")


@pytest.mark.rule("6.secrets.redacted")
@pytest.mark.parametrize("handler", [cleans_up_badly, cleans_up_badly_later])
def test_6_the_clean_up_of_an_abandoned_generator_logs_no_value(
    world: MeshWorld, handler: Callable[[Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    """It is abandoned, because its frame is not JSON."""
    assert run(world, handler, message(), secrets=SECRETS) == []
    assert "raised ValueError: 401: [secret SHOP_KEY] is not valid" in caplog.text
    assert VALUE not in caplog.text


@pytest.mark.rule("6.secrets.redacted")
def test_6_a_value_that_was_rotated_leaves_the_function_nowhere(
    world: MeshWorld,
    stores: SecretStores,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A module that reads the variable when it is imported still has the earlier value, and its errors name that one."""
    (tmp_path / "keeps_its_key.py").write_text(
        "import os\nKEY = os.environ['SHOP_KEY']\ndef run(_): raise ValueError(f'401: {KEY} is not valid')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    world.monkeypatch.setattr(secrets, "MAX_AGE_SECONDS", 0.0)
    services = world.light(never, name="keeps_its_key.run", secrets=SECRETS)
    actor = build_sidecar(services)
    stores.secrets["shop/key"] = "sk-second"
    assert batch_failures(actor.process(sqs_event(message()))) == []
    assert os.environ["SHOP_KEY"] == "sk-second"
    (failed,) = world.sent("x-sink") + world.sent("x-sump")
    assert failed.status is not None
    assert failed.status.error is not None
    assert failed.status.error.message == "401: [secret SHOP_KEY] is not valid"
    captured = capsys.readouterr()
    assert VALUE not in outputs(world) + captured.out + captured.err
    sys.modules.pop("keeps_its_key")


@pytest.mark.rule("6.secrets.redacted")
def test_6_an_end_actor_keeps_the_value_too(world: MeshWorld) -> None:
    assert run(world, raises, message(), kind="end", handler_mode="envelope", validate=False, secrets=SECRETS) == []
    assert world.targets == ["x-sump"]
    assert VALUE not in outputs(world)


def test_6_a_failed_import_keeps_the_value(world: MeshWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fails_at_import.py").write_text("import os\nraise ValueError(os.environ['SHOP_KEY'])\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(LoadError) as caught:
        run(world, never, message(), name="fails_at_import.run", secrets=SECRETS)
    assert "[secret SHOP_KEY]" in str(caught.value)
    assert VALUE not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.slow
def test_6_functions_without_secrets_do_not_import_the_providers() -> None:
    program = (
        "import sys, asya.light.lambdas.sidecar, asya.ends.lambdas.wiring\n"
        "print([name for name in sys.modules if 'powertools.utilities.parameters' in name])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
