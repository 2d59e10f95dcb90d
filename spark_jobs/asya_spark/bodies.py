"""Reads the envelopes of members, ahead of the calls."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from asya_spark.files import Files
from asya_spark.manifest import Envelope, Manifest, Member, load_envelope

THREADS = 32


def envelopes(
    files: Files, manifest: Manifest, members: Sequence[Member], *, exact: bool = False
) -> Iterator[Envelope]:
    """The envelopes of members, in their order.

    Large envelopes are objects of their own. A read takes S3 some 20 ms, so 32 threads read as many ahead; an envelope in the
    manifest needs no thread. `exact` says how numbers are read (`load_envelope`).

    Raises:
        FileNotFoundError: if an object is missing, when its member is due.
    """
    if all(member.inline is not None for member in members):
        yield from (load_envelope(files, manifest, member, exact=exact) for member in members)
        return
    with ThreadPoolExecutor(THREADS, thread_name_prefix="bodies") as threads:
        ahead: deque[Future[Envelope]] = deque()
        for member in members:
            ahead.append(threads.submit(load_envelope, files, manifest, member, exact=exact))
            if len(ahead) > THREADS:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
