import pickle
import threading

from coterie import CoterieRegressor
from coterie.datasets import make_linear_learners
from coterie.engines import ThreadEngine, counted, report, watch
from coterie.engines.progress import CountedCalls


def test_whoever_watches_is_told_of_every_job_and_of_the_end():
    seen = []
    with watch(lambda *step: seen.append(step)):
        assert counted(ThreadEngine(), "Select").map(abs, [-1, -2]) == [1, 2]
    assert seen == [("Select", 0, 2), ("Select", 1, 2), ("Select", 2, 2), ("Select", 2, 2)]


def test_without_a_watcher_the_engine_is_itself():
    engine = ThreadEngine()
    assert counted(engine, "Select") is engine
    report("Select", 1, 2)


def test_threads_report_one_at_a_time():
    seen, inside = [], threading.Lock()

    def listener(stage, done, total):
        assert inside.acquire(blocking=False)
        seen.append(done)
        inside.release()

    with watch(listener):
        counted(ThreadEngine(4), "Select").map(abs, range(50))
    assert seen == [*range(51), 50]


def test_sent_elsewhere_a_counted_function_is_the_plain_one():
    assert pickle.loads(pickle.dumps(CountedCalls(abs, "Select", 1, print))) is abs


def test_a_fit_tells_how_far_each_stage_is():
    data = make_linear_learners(n_learners=6, n_truths=2, n_rows=20, n_features=2, random_state=0)
    last = {}
    with watch(lambda stage, done, total: last.update({stage: (done, total)})):
        CoterieRegressor(candidates=["lr", "knn"]).fit(data.X, data.y, groups=data.groups)
    assert last["Select"] == (6, 6)
    assert {"Select", "Cluster", "Collaborate"} <= set(last)
    assert all(done == total for done, total in last.values())
