"""The local cloud checks signatures as AWS does. botocore signs most of the requests here."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth, SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from asya_local.authentication.signatures import (
    HttpCall,
    Signature,
    SignatureError,
    check_signature,
    read_signature,
)

KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
HOST = "http://127.0.0.1:4566"


class _PlainPath(SigV4Auth):
    """Signs the path as it is sent, as curl 7.88 does."""

    def _normalize_url_path(self, path: str) -> str:
        return path


class _UnsignedBody(S3SigV4Auth):
    def payload(self, request: AWSRequest) -> str:
        return "UNSIGNED-PAYLOAD"


def http_call(request: AWSRequest) -> HttpCall:
    address = urlsplit(request.url)
    headers = {name.lower(): value for name, value in request.headers.items()}
    return HttpCall(request.method, address.path or "/", address.query, {"host": address.netloc} | headers)


def sign(
    service: str = "sqs", method: str = "POST", path: str = "/", body: bytes = b"", token: str = "", **headers: str
) -> HttpCall:
    """Return a request that botocore has signed."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    request = AWSRequest(method, HOST + path, data=body, headers=names)
    signer: type[SigV4Auth] = S3SigV4Auth if service == "s3" else SigV4Auth
    if "x-amz-content-sha256" in names:
        signer = _UnsignedBody
    signer(Credentials(KEY, SECRET, token or None), service, "us-east-1").add_auth(request)
    return http_call(request)


def presign(service: str = "s3", path: str = "/bucket/a.txt", expires: int = 3600, token: str = "") -> HttpCall:
    """Return a request that botocore has presigned."""
    request = AWSRequest("GET", HOST + path)
    signer = S3SigV4QueryAuth if service == "s3" else SigV4QueryAuth
    signer(Credentials(KEY, SECRET, token or None), service, "us-east-1", expires).add_auth(request)
    return http_call(request)


def check(call: HttpCall, body: bytes = b"", secret: str = SECRET, now: datetime | None = None) -> Signature:
    signature = read_signature(call)
    assert signature is not None
    check_signature(signature, call, secret, body, now or datetime.now(UTC))
    return signature


def calls() -> dict[str, tuple[HttpCall, bytes]]:
    """Return requests that are signed now, with their bodies: a signature holds for 15 minutes."""
    return {
        "json": (sign(body=b'{"QueueUrl": "x"}', x_amz_target="AmazonSQS.SendMessage"), b'{"QueueUrl": "x"}'),
        "query": (sign("iam", path="/?Action=ListUsers&Version=2010-05-08&Empty=&b=2&b=1&a=%2B%20%C3%A9"), b""),
        "session": (sign(token="the/token=="), b""),
        "API": (sign("execute-api", "GET", "/_aws/execute-api/0/$default/a%20b/%24/x%2Fy?cursor=a%3Db"), b""),
        "path with dots": (sign("lambda", "GET", "/a/./b/../c//d/"), b""),
        "no path": (sign("lambda", "GET", ""), b""),
        "blanks in headers": (sign(x_amz_meta_a="  two   words "), b""),
        "S3": (sign("s3", "GET", "/bucket/a%20b%2B%C3%A9//c/../d=1?prefix=a%2Fb&list-type=2"), b""),
        "S3 upload": (sign("s3", "PUT", "/bucket/a", body=b"text", x_amz_meta_name="n"), b"text"),
        "S3 without its body": (sign("s3", "PUT", "/bucket/a", x_amz_content_sha256="UNSIGNED-PAYLOAD"), b"anything"),
        "presigned for S3": (presign(), b""),
        "presigned with a session": (presign(token="the/token=="), b""),
        "presigned for STS": (presign("sts", "/?Action=GetCallerIdentity&Version=2011-06-15"), b""),
    }


@pytest.mark.parametrize("name", calls())
def test_what_botocore_signs_is_signed(name: str) -> None:
    call, body = calls()[name]
    assert check(call, body).access_key == KEY


@pytest.mark.parametrize("name", calls())
def test_a_changed_request_is_refused(name: str) -> None:
    call, body = calls()[name]
    changes = {
        "method": replace(call, method="DELETE"),
        "path": replace(call, raw_path=call.raw_path + "x"),
        "query": replace(call, query=call.query + "&more=1"),
        "host": replace(call, headers={**call.headers, "host": "localhost:4566"}),
        "AWS header": replace(call, headers={**call.headers, "x-amz-target": "AmazonSQS.PurgeQueue"}),
    }
    for change, changed in changes.items():
        with pytest.raises(SignatureError) as error:
            check(changed, body)
        assert error.value.code == "SignatureDoesNotMatch", change
    with pytest.raises(SignatureError, match="does not match"):
        check(call, body, secret=SECRET.lower())
    if name != "S3 without its body" and (call.query == "" or "Amz-Signature" not in call.query):
        with pytest.raises(SignatureError, match="does not match"):
            check(call, body + b"x")


def test_a_signature_holds_for_a_quarter_of_an_hour() -> None:
    call, now = sign(), datetime.now(UTC)
    for minutes in (-14, 0, 14):
        check(call, now=now + timedelta(minutes=minutes))
    for minutes in (-16, 16, 60 * 24):
        with pytest.raises(SignatureError) as error:
            check(call, now=now + timedelta(minutes=minutes))
        assert error.value.code == "RequestTimeTooSkewed"


def test_a_presigned_request_holds_until_it_expires_and_a_week_at_most() -> None:
    now = datetime.now(UTC)
    check(presign(expires=3600), now=now + timedelta(minutes=59))
    week = presign(expires=9_999_999)
    check(week, now=now + timedelta(days=6, hours=23))
    for call, age in ((presign(expires=3600), timedelta(minutes=61)), (week, timedelta(days=7, minutes=1))):
        with pytest.raises(SignatureError, match="not valid now"):
            check(call, now=now + age)


@pytest.mark.parametrize("moment", ["", "20260101", "20260101T000000", "29990101T000000Z", "20261399T000000Z"])
def test_a_wrong_date_is_refused(moment: str) -> None:
    call = sign()
    with pytest.raises(SignatureError):
        check(replace(call, headers={**call.headers, "x-amz-date": moment}))


def test_the_host_must_be_signed() -> None:
    call = sign()
    authorization = call.headers["authorization"].replace("SignedHeaders=host;", "SignedHeaders=")
    with pytest.raises(SignatureError, match="host must be signed"):
        check(replace(call, headers={**call.headers, "authorization": authorization}))


def test_a_request_without_a_key_has_no_signature() -> None:
    for headers in ({}, {"authorization": "Bearer abc"}, {"authorization": "Basic QVdT"}):
        assert read_signature(HttpCall("GET", "/", "Action=ListQueues&token=x", headers)) is None


SCOPE = "test/20260101/us-east-1/sqs/aws4_request"
SIGNED = f"AWS4-HMAC-SHA256 Credential={SCOPE}, SignedHeaders=host, Signature={'0' * 64}"
PRESIGNED = (
    f"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={SCOPE}&X-Amz-Date=20260101T000000Z"
    f"&X-Amz-SignedHeaders=host&X-Amz-Signature={'0' * 64}"
)


@pytest.mark.parametrize(
    ("authorization", "query"),
    [
        ("AWS test:x", ""),
        ("aws test:x", ""),
        ("AWS4-HMAC-SHA256", ""),
        (SIGNED[:-1], ""),
        (f"{SIGNED},{SIGNED}", ""),
        (SIGNED.replace("Credential=", "Credential=root/, Credential="), ""),
        (SIGNED.replace("aws4_request", "aws4_request/more"), ""),
        (SIGNED.replace("HMAC-SHA256", "ECDSA-P256-SHA256"), ""),
        (SIGNED, f"X-Amz-Credential={SCOPE}"),
        (SIGNED, "AWSAccessKeyId=test"),
        ("Bearer abc", f"X-Amz-Credential={SCOPE}"),
        ("Bearer abc", PRESIGNED),
        ("", f"X-Amz-Credential={SCOPE}"),
        ("", f"x-amz-credential={SCOPE}"),
        ("", "AWSAccessKeyId=test"),
        ("", "awsaccesskeyid=test&Signature=x&Expires=1"),
        ("", f"{PRESIGNED}&AWSAccessKeyId=test"),
        ("", f"{PRESIGNED}&X-Amz-Credential={SCOPE}"),
        ("", f"{PRESIGNED}&x-amz-date=20260101T000000Z"),
        ("", f"{PRESIGNED}&X-Amz-Expires=0"),
        ("", f"{PRESIGNED}&X-Amz-Expires=1&X-Amz-Expires=2"),
        ("", PRESIGNED.replace("test/", "test/more/")),
        ("", PRESIGNED.replace("HMAC-SHA256", "ECDSA-P256-SHA256")),
    ],
)
def test_a_request_with_another_form_or_two_keys_is_refused(authorization: str, query: str) -> None:
    headers = {"authorization": authorization} if authorization else {}
    with pytest.raises(SignatureError) as error:
        read_signature(HttpCall("GET", "/", query, headers))
    assert error.value.code == "IncompleteSignature"


# The example of the documentation of S3, "Signature calculations for the Authorization header: transferring in chunks".
CHUNK_SIGNATURES = (
    "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
    "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
    "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
)
CHUNKS = b"".join(
    f"{len(chunk):x};chunk-signature={signature}\r\n".encode() + chunk + b"\r\n"
    for chunk, signature in zip((b"a" * 65536, b"a" * 1024, b""), CHUNK_SIGNATURES, strict=True)
)
IN_CHUNKS = HttpCall(
    "PUT",
    "/examplebucket/chunkObject.txt",
    "",
    {
        "host": "s3.amazonaws.com",
        "content-encoding": "aws-chunked",
        "content-length": "66824",
        "x-amz-content-sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
        "x-amz-date": "20130524T000000Z",
        "x-amz-decoded-content-length": "66560",
        "x-amz-storage-class": "REDUCED_REDUNDANCY",
        "authorization": "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        "SignedHeaders=content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;"
        "x-amz-storage-class,Signature=4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
    },
)


@pytest.mark.parametrize(
    ("body", "is_signed"),
    [
        (CHUNKS, True),
        (CHUNKS.replace(b"aa", b"ab", 1), False),
        (CHUNKS[: CHUNKS.index(b"0;chunk")], False),
        (CHUNKS[CHUNKS.index(b"0;chunk") :], False),
        (b"", False),
        (b"a" * 66560, False),
        (CHUNKS.replace(b"10000;", b"zz;"), False),
    ],
)
def test_each_chunk_of_an_upload_is_signed(body: bytes, *, is_signed: bool) -> None:
    moment = datetime(2013, 5, 24, tzinfo=UTC)
    if is_signed:
        check(IN_CHUNKS, body, now=moment)
        return
    with pytest.raises(SignatureError, match="does not match"):
        check(IN_CHUNKS, body, now=moment)


@pytest.mark.parametrize(
    ("path", "is_signed"),
    [
        ("/_aws/execute-api/a1/$default/api/v1/mesh", True),
        ("/_aws/execute-api/a1/$default/api/v1/mesh/a%20b", False),
        ("/_aws/execute-api/a1/$other/api/v1/mesh", False),
        ("/api/v1/mesh", True),
    ],
)
def test_the_name_of_the_default_stage_may_be_signed_as_it_is_sent(path: str, *, is_signed: bool) -> None:
    request = AWSRequest("GET", HOST + path)
    _PlainPath(Credentials(KEY, SECRET), "execute-api", "us-east-1").add_auth(request)
    with nullcontext() if is_signed else pytest.raises(SignatureError, match="does not match"):
        check(http_call(request))
    assert check(sign("execute-api", "GET", path)).access_key == KEY
