"""What a mirror takes over from S3 beside the changes of its job."""

from __future__ import annotations

import pytest

from asya_local.emr.access.policies import ReadablePrefix
from asya_local.emr.storage.changes import FileVersion, Listing, PullChanges, merge

OLD, NEW = FileVersion(1, 1, 1), FileVersion(1, 2, 1)
FETCH, REMOVE, NOTHING = PullChanges(("b/data/1",), ()), PullChanges((), ("b/data/1",)), PullChanges((), ())


@pytest.mark.parametrize(
    ("synced", "current", "known", "now", "expected"),
    [
        pytest.param(None, None, None, "e1", FETCH, id="new in S3"),
        pytest.param(OLD, OLD, "e1", "e2", FETCH, id="changed in S3"),
        pytest.param(OLD, OLD, "e1", None, REMOVE, id="deleted in S3"),
        pytest.param(OLD, OLD, "e1", "e1", NOTHING, id="the same"),
        pytest.param(None, NEW, None, "e1", NOTHING, id="new in both"),
        pytest.param(OLD, NEW, "e1", "e2", NOTHING, id="changed in both"),
        pytest.param(OLD, NEW, "e1", None, NOTHING, id="changed by the job, deleted in S3"),
        pytest.param(OLD, None, "e1", "e2", NOTHING, id="deleted by the job, changed in S3"),
        pytest.param(OLD, None, "e1", None, NOTHING, id="deleted in both"),
        pytest.param(None, NEW, None, None, NOTHING, id="new by the job"),
        pytest.param(None, None, "e1", "e1", NOTHING, id="unreadable for the job"),
    ],
)
def test_changes_of_the_job_win_until_they_are_pushed(
    synced: FileVersion | None, current: FileVersion | None, known: str | None, now: str | None, expected: PullChanges
) -> None:
    listing = Listing({"b/data/1": now} if now else {}, (ReadablePrefix("b", "data/*"),))
    files = [{"b/data/1": version} if version else {} for version in (synced, current)]
    assert merge(files[0], files[1], {"b/data/1": known} if known else {}, listing) == expected


def test_files_outside_the_listing_stay() -> None:
    files = {"b/data/1": OLD, "b/write-only/1": OLD}
    listing = Listing({}, (ReadablePrefix("b", "data/*"),))
    assert merge(files, files, dict.fromkeys(files, "e1"), listing).removed == ("b/data/1",)


def test_a_folder_is_no_file() -> None:
    listing = Listing({"b/data": "e1", "b/data/1": "e1"}, ())
    assert merge({}, {}, {}, listing).fetched == ("b/data/1",)
