"""Opens the console in the browser, without telling its secret to other users of the machine.

The arguments of a process are public: `ps` shows them to every user. So the browser gets the address of a file that only this
user can read, and the file leads to the page. The secret is in the fragment of the address, which no browser sends to a server.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_FILE = "open-console.html"
_REDIRECT = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>The Asya console</title>
<p><a href="{address}">Open the console</a></p>
</html>
"""


def page_address(port: int, secret: str) -> str:
    """Return the address of the page, with the secret in its fragment."""
    return f"http://127.0.0.1:{port}/#secret={secret}"


@contextmanager
def redirect_file(address: str) -> Iterator[Path]:
    """Write a file that leads a browser to an address. Only this user can read it, and it is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="asya-console-"))  # mode 0700
    try:
        path = folder / _FILE
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(_REDIRECT.format(address=escape(address, quote=True)))
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)
