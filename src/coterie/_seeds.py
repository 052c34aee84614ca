"""Randomness that belongs to a learner, not to its place in a list.

Every split and every candidate's seed derives from ``random_state`` and the learner's id, so that the
order of learners, the number of workers and who carries the messages change nothing.
"""

from __future__ import annotations

import hashlib
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from coterie._options import brief


def as_entropy(random_state: Any) -> int:
    """Return one integer for anything that scikit-learn takes as ``random_state``.

    Each learner's generator starts from it and the learner's id; see `generator_for`.
    """
    if isinstance(random_state, Integral) and int(random_state) >= 0:
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    # An object that is no seed may fail in its own way.
    except Exception:
        raise ValueError(
            "The 'random_state' option must be None, an integer of at least 0, or a numpy RandomState. "
            f"Got {brief(random_state)}."
        ) from None


def generator_for(entropy: int, learner_id: object) -> np.random.Generator:
    """Return a random generator that depends on the seed and the learner's id alone.

    The order of learners and the number of workers then change nothing. An id and its text give the same
    generator, for tables may hold either.
    """
    # Python's own hash of a text differs from process to process; surrogates stand for bytes of no text.
    digest = hashlib.blake2b(str(learner_id).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.random.default_rng([entropy, int.from_bytes(digest, "little")])


def integer_seed(generator: np.random.Generator) -> int:
    """Draw a seed of the kind that scikit-learn's estimators take."""
    return int(generator.integers(2**31 - 1))


def seed_estimator(estimator: Any, seed: int) -> Any:
    """Set every ``random_state`` that is None, also in nested estimators; a user's own seed stays."""
    if not hasattr(estimator, "get_params"):
        if getattr(estimator, "random_state", seed) is None:
            estimator.random_state = seed
        return estimator
    unset = {
        name: seed
        for name, value in sorted(estimator.get_params(deep=True).items())
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    }
    return estimator.set_params(**unset) if unset else estimator


def seeded_copy(candidate: Any, seed: int) -> Any:
    """Return an unfitted copy with a seed; a deep copy of what has no parameters to clone by."""
    return seed_estimator(clone(candidate, safe=False), seed)
