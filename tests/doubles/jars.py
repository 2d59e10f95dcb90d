"""Jars for tests, made without a compiler."""

import io
import struct
import zipfile


def jar_with_class(name: str) -> bytes:
    """Return a jar with one public class that has nothing, such as `own/Hello`."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as jar:
        jar.writestr(f"{name}.class", _empty_class(name))
    return content.getvalue()


def _empty_class(name: str) -> bytes:
    def text(value: str) -> bytes:
        return struct.pack(">BH", 1, len(value)) + value.encode("ascii")

    # Entries 1 and 2 are the class, 3 and 4 the class that it extends.
    constants = text(name) + struct.pack(">BH", 7, 1) + text("java/lang/Object") + struct.pack(">BH", 7, 3)
    public, java_8 = 0x0021, 52
    head = struct.pack(">IHHH", 0xCAFEBABE, 0, java_8, 5)
    # The class, the one that it extends, and no interfaces, fields, methods and attributes.
    return head + constants + struct.pack(">HHHHHHH", public, 2, 4, 0, 0, 0, 0)
