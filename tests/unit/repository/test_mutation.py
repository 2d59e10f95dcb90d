"""The sample of the mutation run, and the scores that no change may lower."""

import json
from pathlib import Path

import pytest

from tests.mutation.mutants import PACKAGES, Change, sample, survivors
from tests.mutation.scores import Score, judged, lower, read_scores, write_scores

MODULE = '''
def x_settle__mutmut_orig(lane, now=None):
    """Settle."""
    if lane.due <= now:
        raise ValueError(f"{lane} is due")
    return now

def x_settle__mutmut_1(lane, now=None):
    """Settle."""
    if lane.due < now:
        raise ValueError(f"{lane} is due")
    return now

def x_settle__mutmut_2(lane, now=None):
    """Settle."""
    if lane.due <= now:
        raise ValueError(None)
    return now

class Lane:
    def xǁLaneǁends__mutmut_orig(self):
        return 1

    def xǁLaneǁends__mutmut_1(self):
        return 2

def x_unreached__mutmut_orig():
    return 1

def x_unreached__mutmut_1():
    return 2
'''
SETTLE = Change("asya.tasks.starts.lanes.settle", "if lane.due <= now:", "if lane.due < now:")
ENDS = Change("asya.tasks.starts.lanes.Lane.ends", "return 1", "return 2")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder that mutmut writes."""
    source = tmp_path / "src"
    for package in PACKAGES:
        (source / "asya" / package).mkdir(parents=True)
        (source / "asya" / package / "empty.py").touch()
    (source / "asya" / "tasks/starts" / "lanes.py").write_text(MODULE, encoding="utf-8")
    reached = {"asya.tasks.starts.lanes.x_settle": ["test"], "asya.tasks.starts.lanes.xǁLaneǁends": ["test"]}
    statistics = {"tests_by_mangled_function_name": reached}
    (tmp_path / "mutmut-stats.json").write_text(json.dumps(statistics), encoding="utf-8")
    return source


def write_codes(root: Path, **codes: int | None) -> None:
    """The results of mutmut, by the names of mutants without their module."""
    named = {f"asya.tasks.starts.lanes.{name}": code for name, code in codes.items()}
    (root / "asya" / "tasks/starts" / "lanes.py.meta").write_text(
        json.dumps({"exit_code_by_key": named}), encoding="utf-8"
    )


def test_the_sample_has_changes_of_reached_code_without_those_of_texts(root: Path) -> None:
    chosen = sample(root, 10)
    assert {mutant.change for mutant in chosen.mutants} == {SETTLE, ENDS}
    assert (chosen.all["tasks/starts"], chosen.reached["tasks/starts"], chosen.all["capabilities/triggers"]) == (
        3,
        2,
        0,
    )
    assert [mutant.change for mutant in sample(root, 1).mutants] == [min(SETTLE, ENDS, key=lambda each: each.order)]


def test_a_change_lives_that_no_test_finds(root: Path) -> None:
    mutants = sample(root, 10).mutants
    write_codes(root, x_settle__mutmut_1=0, xǁLaneǁends__mutmut_1=1)
    assert [mutant.change for mutant in survivors(root, mutants)] == [SETTLE]
    write_codes(root, x_settle__mutmut_1=None, xǁLaneǁends__mutmut_1=1)
    with pytest.raises(RuntimeError, match="no result of 1 mutants"):
        survivors(root, mutants)


def test_a_score_falls_with_what_tests_find_or_reach(tmp_path: Path) -> None:
    kept = Score(20, 18, equivalent=1, reached=0.95)
    assert f"{kept.share:.3f}" == "0.947"
    for fallen in (Score(20, 17, 1, 0.95), Score(20, 18, 0, 0.95), Score(20, 18, 1, 0.9)):
        assert lower({"tasks/starts": kept}, {"tasks/starts": fallen, "capabilities/triggers": Score(20, 1)}) == [
            "tasks/starts"
        ]
    assert lower({"tasks/starts": kept}, {"tasks/starts": Score(20, 18, 1, 0.945)}) == []
    write_scores({"tasks/starts": kept}, tmp_path / "scores.json")
    assert read_scores(tmp_path / "scores.json") == {"tasks/starts": kept}


def test_a_verdict_has_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "judged.toml"
    entry = '[[mutant]]\nplace = "a"\nremoved = "b"\nadded = "c"\nverdict = "equivalent"\nreason = "%s"\n'
    path.write_text(entry % "it ends before", encoding="utf-8")
    assert judged(path) == {Change("a", "b", "c"): "equivalent"}
    path.write_text(entry % "", encoding="utf-8")
    with pytest.raises(ValueError, match="no reason"):
        judged(path)


def test_each_package_has_a_score() -> None:
    assert set(read_scores()) == set(PACKAGES)
    assert judged() is not None
