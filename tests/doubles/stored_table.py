"""A table of folders in memory: its files and its commits."""

from collections.abc import Callable

from asya_spark.files import is_hidden


class Store(dict[str, str]):
    """URI → content, with the rules of `HadoopFiles` and of S3."""

    def below(self, folder: str) -> list[str]:
        return sorted(uri.removeprefix(f"{folder}/") for uri in self if uri.startswith(f"{folder}/"))


class StoredFiles:
    def __init__(self, store: Store) -> None:
        self._store = store

    def tree(self, folder: str) -> list[str]:
        return [name for name in self._store.below(folder) if not any(map(is_hidden, name.split("/")))]

    def exists(self, uri: str) -> bool:
        return uri in self._store or bool(self._store.below(uri))

    def rename(self, uri: str, target: str) -> bool:
        return all(part() for part in self.parts_of_rename(uri, target))

    def parts_of_rename(self, uri: str, target: str) -> tuple[Callable[[], bool], ...]:
        """The requests of a rename on S3, where it is none: anything may happen between them. One that fails ends it."""

        def look() -> bool:
            return uri in self._store and target not in self._store

        def copy() -> bool:
            if uri not in self._store:
                return False
            self._store[target] = self._store[uri]
            return True

        def remove() -> bool:
            self._store.pop(uri, None)
            return True

        return look, copy, remove

    def remove_folder(self, uri: str) -> None:
        for name in self._store.below(uri):
            del self._store[f"{uri}/{name}"]

    def folders(self, folder: str) -> list[str]:
        return sorted({name.partition("/")[0] for name in self._store.below(folder) if "/" in name})


class StoredCommits:
    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self, uri: str) -> bytes | None:
        content = self._store.get(uri)
        return None if content is None else content.encode()

    def create(self, uri: str, content: bytes) -> bool:
        return self._store.setdefault(uri, content.decode()) == content.decode()

    def names(self, folder: str, beginning: str = "") -> list[str]:
        return [name for name in self._store.below(folder) if "/" not in name and name.startswith(beginning)]
