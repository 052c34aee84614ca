from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, RandomForestRegressor
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coterie._seeds import as_entropy, generator_for, integer_seed, seed_estimator, seeded_copy

ids = st.one_of(st.integers(), st.text(max_size=5), st.floats(allow_nan=False), st.booleans())


def draws(entropy: int, learner_id: object) -> list[float]:
    return generator_for(entropy, learner_id).random(4).tolist()


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.integers(0, 2**40), ids)
def test_the_same_id_has_the_same_stream_and_so_has_its_text(entropy: int, learner_id: object) -> None:
    assert draws(entropy, learner_id) == draws(entropy, learner_id) == draws(entropy, str(learner_id))


@pytest.mark.parametrize("learner_id", [1, "1", np.int64(1), np.int8(1), np.str_("1")])
def test_one_and_its_text_agree_whatever_their_type(learner_id: object) -> None:
    assert draws(0, learner_id) == draws(0, 1)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.integers(0, 2**40), st.lists(st.text(max_size=5), min_size=2, max_size=6, unique=True))
def test_different_ids_and_different_seeds_have_different_streams(entropy: int, names: list[str]) -> None:
    streams = [tuple(draws(entropy + more, name)) for name in names for more in (0, 1)]
    assert len(set(streams)) == len(streams)


def test_the_order_of_asking_changes_nothing() -> None:
    forth = {name: draws(3, name) for name in "abc"}
    back = {name: draws(3, name) for name in "cba"}
    assert forth == back


@pytest.mark.parametrize("seed", [0, 7, np.int64(7), 2**40])
def test_an_integer_is_its_own_entropy(seed: Any) -> None:
    assert as_entropy(seed) == int(seed)
    assert type(as_entropy(seed)) is int


def test_a_random_state_gives_an_integer_that_its_seed_decides() -> None:
    first, again, other = (as_entropy(np.random.RandomState(s)) for s in (1, 1, 2))
    assert first == again != other


def test_no_random_state_gives_new_entropy_each_time() -> None:
    assert len({as_entropy(None) for _ in range(5)}) > 1


def test_a_seed_for_scikit_learn_fits_into_31_bits() -> None:
    generator = np.random.default_rng(0)
    seeds = [integer_seed(generator) for _ in range(100)]
    assert all(type(seed) is int and 0 <= seed < 2**31 for seed in seeds)
    assert len(set(seeds)) == 100


def test_seeds_are_set_inside_pipelines_and_targets_where_they_are_none() -> None:
    nested = TransformedTargetRegressor(make_pipeline(StandardScaler(), MLPRegressor()))
    seeded = seed_estimator(nested, 5)
    assert seeded.regressor.named_steps["mlpregressor"].random_state == 5
    bagged = seed_estimator(BaggingRegressor(RandomForestRegressor()), 5)
    assert (bagged.random_state, bagged.estimator.random_state) == (5, 5)


@pytest.mark.parametrize("mine", [0, 3])
def test_a_seed_of_the_user_is_kept(mine: int) -> None:
    bagged = seed_estimator(BaggingRegressor(RandomForestRegressor(random_state=mine)), 5)
    assert (bagged.random_state, bagged.estimator.random_state) == (5, mine)


def test_an_estimator_without_randomness_is_left_as_it_is() -> None:
    plain = LinearRegression()
    assert seed_estimator(plain, 5) is plain
    assert seed_estimator(Lasso(selection="cyclic"), 5).get_params()["selection"] == "cyclic"


def test_an_id_that_is_no_proper_text_has_a_generator_too() -> None:
    assert generator_for(0, "\ud800").integers(100) == generator_for(0, "\ud800").integers(100)


class Plain:
    """A regressor without parameters."""

    def __init__(self, random_state: int | None) -> None:
        self.random_state, self.held = random_state, [1.0]


def test_what_has_no_parameters_is_copied_deeply_and_seeded_by_its_attribute() -> None:
    free, fixed = Plain(None), Plain(3)
    copied = seeded_copy(free, 11)
    assert copied.random_state == 11
    assert copied.held == free.held
    assert copied.held is not free.held
    assert free.random_state is None
    assert seeded_copy(fixed, 11).random_state == 3
    nothing = seeded_copy(object(), 11)
    assert not hasattr(nothing, "random_state")


def test_a_copy_of_an_estimator_is_unfitted() -> None:
    forest = RandomForestRegressor(2).fit(np.zeros((4, 1)), np.arange(4.0))
    copied = seeded_copy(forest, 11)
    assert copied.random_state == 11
    assert not hasattr(copied, "estimators_")


@pytest.mark.parametrize("state", [-1, 1.5, "seed", np.zeros((2, 2)), [1, 2], 10**30 * -1])
def test_what_is_no_seed_is_refused_in_one_line(state: Any) -> None:
    with pytest.raises(ValueError, match="The 'random_state' option must be None, an integer") as caught:
        as_entropy(state)
    assert "\n" not in str(caught.value)
