"""Finished jobs are not run again, and files that are damaged are not used."""

import json
import os
from dataclasses import dataclass

import numpy as np
import pytest

from coterie.engines import ThreadEngine, counted, watch
from coterie.engines.checkpoints import CheckpointEngine

ran = []


class Numbers:
    """Keeps results that are numbers."""

    def dump(self, result):
        return json.dumps(float(result)).encode() if result < 100 else None

    def load(self, content):
        return json.loads(content)


@dataclass(frozen=True)
class Job:
    name: str
    rows: np.ndarray


def total(job):
    ran.append(job.name)
    return job.rows.sum()


def other(job):
    ran.append(job.name)
    return 0


@pytest.fixture(autouse=True)
def _nothing_ran():
    ran.clear()


def jobs(*names):
    return [Job(name, np.arange(3.0)) for name in names]


def engine(folder, version="1", n_jobs=None, **options):
    return CheckpointEngine(ThreadEngine(n_jobs), folder, [total], Numbers(), version, **options)


def test_a_finished_job_is_not_run_again(tmp_path):
    assert engine(tmp_path).map(total, jobs("a", "b")) == [3, 3]
    later = engine(tmp_path, n_jobs=2)
    assert later.map(total, jobs("a", "b", "c")) == [3, 3, 3]
    assert sorted(ran) == ["a", "b", "c"]
    assert later.restored == 2


def test_what_finished_before_a_failure_is_kept(tmp_path):
    broken = [*jobs("a"), Job("b", None), *jobs("c")]
    with pytest.raises(AttributeError):
        engine(tmp_path).map(total, broken)
    assert engine(tmp_path).map(total, jobs("a", "c")) == [3, 3]
    assert ran == ["a", "b", "c"]


def test_other_rows_or_another_version_are_another_job(tmp_path):
    engine(tmp_path).map(total, jobs("a"))
    assert engine(tmp_path).map(total, [Job("a", np.arange(4.0))]) == [6]
    engine(tmp_path, version="2").map(total, jobs("a"))
    assert ran == ["a", "a", "a"]


def test_functions_that_were_not_named_leave_nothing(tmp_path):
    engine(tmp_path / "kept").map(other, jobs("a"))
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("change", ["cut", "empty", "swapped", "no result"])
def test_a_file_that_is_damaged_is_not_used(tmp_path, change):
    engine(tmp_path).map(total, jobs("a", "b"))
    one, two = sorted(tmp_path.iterdir())
    if change == "cut":
        one.write_bytes(one.read_bytes()[:-1])
    elif change == "swapped":
        one.write_bytes(two.read_bytes())
    elif change == "empty":
        one.write_bytes(b"")
    else:
        strange = b"{}}"
        one.write_bytes(engine(tmp_path)._checksum(one.name, strange) + strange)
    assert engine(tmp_path).map(total, jobs("a", "b")) == [3, 3]
    assert len(ran) == 3


def test_a_result_that_cannot_be_kept_is_counted_and_made_again(tmp_path):
    large = [Job("a", np.array([99.0, 1.0]))]
    first = engine(tmp_path)
    assert first.map(total, large) == engine(tmp_path).map(total, large) == [100]
    assert first.not_kept == 1
    assert ran == ["a", "a"]
    assert os.listdir(tmp_path) == []


def test_a_fresh_run_uses_nothing_and_keeps_what_it_makes(tmp_path):
    engine(tmp_path).map(total, jobs("a"))
    assert engine(tmp_path, fresh=True).map(total, jobs("a")) == [3]
    engine(tmp_path).map(total, jobs("a"))
    assert ran == ["a", "a"]


def test_restored_jobs_count_as_done(tmp_path):
    engine(tmp_path).map(total, jobs("a", "b"))
    seen = []
    with watch(lambda stage, done, total: seen.append(done)):
        counted(engine(tmp_path), "Select").map(total, jobs("a", "b", "c"))
    assert seen == [0, 1, 2, 3, 3]
    assert ran == ["a", "b", "c"]
