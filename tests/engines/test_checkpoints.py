"""Finished jobs are not run again, and files of strangers are not opened."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from coterie.engines import ThreadEngine, counted, watch
from coterie.engines.checkpoints import CheckpointEngine, sealing_key

KEY = bytes(32)
ran = []


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


class Trap:
    def __reduce__(self):
        return pytest.fail, ("a stranger's pickle was opened",)


@pytest.fixture(autouse=True)
def _nothing_ran():
    ran.clear()


def jobs(*names):
    return [Job(name, np.arange(3.0)) for name in names]


def engine(folder, key=KEY, version="1", n_jobs=None):
    return CheckpointEngine(ThreadEngine(n_jobs), folder, [total], key, version)


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


@pytest.mark.parametrize("change", ["cut", "forged", "other key", "renamed"])
def test_a_file_whose_seal_is_wrong_is_not_opened(tmp_path, change):
    engine(tmp_path).map(total, jobs("a", "b"))
    one, two = sorted(tmp_path.iterdir())
    key = KEY
    if change == "cut":
        one.write_bytes(one.read_bytes()[:-1])
    elif change == "forged":
        one.write_bytes(bytes(32) + pickle.dumps(Trap()))
    elif change == "renamed":
        one.write_bytes(two.read_bytes())
    else:
        key = bytes(31) + b"1"
    assert engine(tmp_path, key=key).map(total, jobs("a", "b")) == [3, 3]
    assert len(ran) == (4 if change == "other key" else 3)


def test_restored_jobs_count_as_done(tmp_path):
    engine(tmp_path).map(total, jobs("a", "b"))
    seen = []
    with watch(lambda stage, done, total: seen.append(done)):
        counted(engine(tmp_path), "Select").map(total, jobs("a", "b", "c"))
    assert seen == [0, 1, 2, 3, 3]
    assert ran == ["a", "b", "c"]


def test_the_key_is_made_once_and_is_the_user_s_alone(tmp_path):
    path = tmp_path / "cache" / "key"
    key = sealing_key(path)
    assert len(key) == 32
    assert sealing_key(path) == key
    assert path.stat().st_mode & 0o077 == 0
    path.write_bytes(b"short")
    assert len(sealing_key(path)) == 32
