"""The limits of SQS. The local cloud enforces fewer of them, so the mesh checks them itself."""

import re

MESSAGE_BYTES = 1024 * 1024
# SQS counts more than the body.
MESSAGE_MARGIN = 16 * 1024
BATCH_ENTRIES = 10
BATCH_BYTES = MESSAGE_BYTES
DELAY_SECONDS = 900

_NON_XML_CHARACTER = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def is_sendable(json_text: bytes) -> bool:
    """Whether SQS accepts this JSON text. SQS refuses U+FFFE and U+FFFF; JSON cannot hold the other refused characters."""
    return json_text.isascii() or _NON_XML_CHARACTER.search(json_text.decode("utf-8")) is None


def attribute_text(text: str) -> str:
    """The text as an attribute of a message may have it: characters that XML does not allow are replaced."""
    return _NON_XML_CHARACTER.sub("\ufffd", text)


QUEUE_RETENTION_DAYS = 4
"""How long the queue of an actor keeps a message; SQS would keep it for 14 days."""
