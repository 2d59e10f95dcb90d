"""JSON-RPC 2.0 messages (`protocol §13`)."""

import msgspec
import pytest
from msgspec import UNSET

from asya.gateway.json_rpc import Failure, RpcError, Success, read


def test_a_request_has_an_id_and_a_notification_has_none() -> None:
    request = read(b'{"jsonrpc": "2.0", "method": "tools/list", "id": "a", "params": {"cursor": "c"}, "more": 1}')
    assert (request.method, request.id, bytes(request.params)) == ("tools/list", "a", b'{"cursor": "c"}')
    assert read(b'{"jsonrpc": "2.0", "method": "ping"}').id is UNSET


@pytest.mark.rule("13.mcp.failures")
@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        (b"", -32700, "not valid JSON"),
        (b"{", -32700, "not valid JSON"),
        (b'{"jsonrpc": "2.0", "method": "\xff", "id": 1}', -32700, "not valid JSON"),
        (b'{"jsonrpc": "2.0", "method": "a", "id": "\\ud800"}', -32700, "not valid JSON"),
        (b'{"a":' * 100_000, -32700, "not valid JSON"),
        (b"[]", -32600, "batches"),
        (b' [{"jsonrpc": "2.0", "method": "ping", "id": 1}]', -32600, "batches"),
        (b"3", -32600, "not a JSON-RPC"),
        (b'{"method": "ping", "id": 1}', -32600, "jsonrpc"),
        (b'{"jsonrpc": "1.0", "method": "ping", "id": 1}', -32600, "jsonrpc"),
        (b'{"jsonrpc": "2.0", "method": "ping", "id": null}', -32600, "id"),
        (b'{"jsonrpc": "2.0", "method": "ping", "id": 1.5}', -32600, "id"),
        (b'{"jsonrpc": "2.0", "id": 1, "result": {}}', -32600, "method"),
    ],
)
def test_invalid_messages_are_rejected(body: bytes, code: int, said: str) -> None:
    with pytest.raises(RpcError, match=said) as refused:
        read(body)
    assert refused.value.fault.code == code


def test_answers() -> None:
    assert msgspec.json.encode(Success(id=1, result={})) == b'{"jsonrpc":"2.0","id":1,"result":{}}'
    failure = RpcError(-32602, "no").to_failure("a")
    assert msgspec.json.encode(failure) == b'{"jsonrpc":"2.0","id":"a","error":{"code":-32602,"message":"no"}}'
    with_data = RpcError(-32022, "no", {"supported": []}).to_failure(UNSET)
    assert msgspec.to_builtins(with_data)["error"]["data"] == {"supported": []}
    assert isinstance(with_data, Failure)
    assert with_data.id is None
