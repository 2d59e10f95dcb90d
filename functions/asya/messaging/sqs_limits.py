"""What AWS allows, in one place. The local cloud is kinder in places; our edges check these so that nothing passes only there."""

import re

MESSAGE_BYTES = 1024 * 1024
# Room for what SQS counts beside the body.
MESSAGE_MARGIN = 16 * 1024
BATCH_ENTRIES = 10
BATCH_BYTES = MESSAGE_BYTES
DELAY_SECONDS = 900

_NO_XML_CHARACTER = re.compile("[\ufffe\uffff]")


def is_sendable(json_text: bytes) -> bool:
    """Whether SQS takes this JSON text: XML 1.0 characters only, so not U+FFFE and U+FFFF (JSON itself bars the rest)."""
    return json_text.isascii() or _NO_XML_CHARACTER.search(json_text.decode("utf-8")) is None
