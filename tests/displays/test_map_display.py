import numpy as np
import pytest

from coterie import CoterieRegressor, cluster_learners
from coterie.displays import MapDisplay


def test_members_lie_nearer_than_strangers(model: CoterieRegressor) -> None:
    table = MapDisplay.from_estimator(model).frame()
    places = np.column_stack([table["across"], table["up"]])
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    same = table["cluster"][:, None] == table["cluster"][None]
    assert apart[same].mean() < 0.3 * apart[~same].mean()


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_few_learners_have_a_map(count: int) -> None:
    partition = cluster_learners(np.ones((count, count)), n_clusters=1)
    display = MapDisplay.from_partition(partition)
    assert display.frame()["across"].tolist() == [0.0] * count
    display.plot().figure_.canvas.draw()


def test_points_have_names_while_there_is_room(model: CoterieRegressor) -> None:
    display = MapDisplay.from_estimator(model).plot()
    assert [text.get_text() for text in display.ax_.texts] == [
        str(learner) for learner in model.partition_.learner_ids.tolist()
    ]
    crowd = MapDisplay(np.eye(41), labels=np.zeros(41)).plot()
    assert not crowd.ax_.texts
