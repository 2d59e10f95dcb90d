"""Functions that share a log group have streams with their names, and a search by the beginning of names finds them alone."""

from types import SimpleNamespace
from typing import Any

from asya_local.ministack.log_streams import install

SHARED, OWN = "/aws/lambda/asya-shop-x-crew", "/aws/lambda/asya-shop-bill"


class FakeServices:
    """The parts of MiniStack's services that are replaced, and what they are called with."""

    def __init__(self) -> None:
        self.emitted: list[str] = []
        self.searches: list[dict[str, Any]] = []
        groups: dict[str, Any] = {SHARED: {"streams": {}}, OWN: {"streams": {}}}
        self.streams = groups[SHARED]["streams"]
        self.functions = SimpleNamespace(
            _emit_lambda_logs=lambda func, *_, **__: self.emitted.append(func["FunctionName"])
        )
        self.logs = SimpleNamespace(
            _log_groups=groups,
            _resolve_log_group_name=lambda data: data["logGroupName"],
            _filter_log_events=self.searches.append,
            _create_log_stream=lambda data: groups[data["logGroupName"]]["streams"].update({data["logStreamName"]: []}),
            _append_log_events=lambda stream, events: stream.extend(events),
        )
        install(self.functions, self.logs)  # type: ignore[arg-type]

    def call(self, name: str, group: str | None, text: str) -> None:
        config = {"FunctionName": name, "MemorySize": 512} | ({"LoggingConfig": {"LogGroup": group}} if group else {})
        self.functions._emit_lambda_logs(config, "r1", text, False, 3)

    def found(self, group: str, prefix: str | None) -> list[str] | None:
        self.logs._filter_log_events({"logGroupName": group} | ({"logStreamNamePrefix": prefix} if prefix else {}))
        names: list[str] | None = self.searches[-1].get("logStreamNames")
        return names


def test_a_shared_group_has_streams_with_the_names_of_functions() -> None:
    services = FakeServices()
    services.call("asya-shop-x-sink", SHARED, "one\ntwo")
    services.call("asya-shop-x-sump", SHARED, "")
    services.call("asya-shop-bill", OWN, "")
    services.call("asya-shop-ship", None, "")
    services.call("asya-shop-gone", "/no/such/group", "")
    assert services.emitted == ["asya-shop-bill", "asya-shop-ship", "asya-shop-gone"]
    sink, sump = services.streams
    day, named = sink[:10], sink[11:]
    assert named.startswith("asya-shop-x-sink[$LATEST][")
    assert sump[11:].startswith("asya-shop-x-sump[$LATEST][")
    assert [each["message"].partition(":")[0] for each in services.streams[sink]] == [
        "START RequestId",
        "one",
        "two",
        "END RequestId",
        "REPORT RequestId",
    ]
    assert services.found(SHARED, f"{day}/asya-shop-x-sink[") == [sink]
    assert services.found(SHARED, f"{day}/asya-shop-x-si[") == [f"{day}/asya-shop-x-si["]
    assert services.found(SHARED, None) is None
    assert services.found("/no/such/group", day) is None
