"""The models that learners may choose from: names, presets, and whatever the user brings.

Candidates that need scaled predictors are pipelines, and those that depend on the unit of the response
predict a standardised one, so that a change of unit changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LarsCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from coterie._options import brief, listed
from coterie.models.boosting import BoostedClasses
from coterie.models.classes import VotingForest
from coterie.models.forest import QuickForest
from coterie.models.linear import Line, QuickElasticNet, QuickLasso, QuickRidge
from coterie.models.logistic import QuickLogistic

Candidates = dict[str, BaseEstimator]


def _scaled(estimator: BaseEstimator) -> BaseEstimator:
    # For models that depend on the units of predictors.
    return make_pipeline(StandardScaler(), estimator)


def _unit_free(estimator: BaseEstimator) -> BaseEstimator:
    # For models whose penalties or tolerances depend on the unit of the response.
    return TransformedTargetRegressor(estimator, transformer=StandardScaler())


def _neural_network() -> BaseEstimator:
    """Return a small network with one hidden layer, on scaled predictors and response."""
    network = MLPRegressor(hidden_layer_sizes=(32,), solver="lbfgs", alpha=1.0, max_iter=200)
    return _unit_free(_scaled(network))


# The penalties of lasso, LARS and elastic net are chosen by half-half cross-validation, as the paper does.
KNOWN: dict[str, Callable[[], BaseEstimator]] = {
    "rf": lambda: _unit_free(QuickForest(50, min_samples_leaf=2)),
    "knn": lambda: _scaled(KNeighborsRegressor(5, weights="distance")),
    "svr": lambda: _unit_free(_scaled(SVR())),
    "nn": _neural_network,
    "gb": lambda: _unit_free(GradientBoostingRegressor()),
    "lasso": lambda: _scaled(QuickLasso(cv=2)),
    "lars": lambda: _unit_free(_scaled(LarsCV(cv=2))),
    "en": lambda: _unit_free(_scaled(QuickElasticNet(cv=2))),
    "ridge": QuickRidge,
    "lr": Line,
}

PRESETS: dict[str, tuple[str, ...]] = {
    "default": ("ridge", "rf"),
    "linear": ("lr", "ridge", "lasso"),
    "paper": ("rf", "knn", "svr", "nn", "gb", "lasso", "lars", "en", "ridge"),
}


CLASS_KNOWN: dict[str, Callable[[], BaseEstimator]] = {
    "logistic": QuickLogistic,
    "rf": lambda: VotingForest(QuickForest(50, min_samples_leaf=2)),
    "gb": lambda: BoostedClasses(max_leaf_nodes=7, min_samples_leaf=5, early_stopping=False),
    "knn": lambda: _scaled(KNeighborsClassifier(5, weights="distance")),
}

CLASS_PRESETS: dict[str, tuple[str, ...]] = {
    "default": ("logistic", "rf"),
    "linear": ("logistic",),
}


@dataclass(frozen=True)
class ForClasses:
    """A specification of candidates whose names are those of classifiers."""

    spec: Any = None


@dataclass(frozen=True)
class _Vocabulary:
    """The candidates for one kind of response, regressors or classifiers: by name, and presets of names.

    ``noun`` is what messages call a model that a user may bring.
    """

    known: Mapping[str, Callable[[], BaseEstimator]]
    presets: Mapping[str, tuple[str, ...]]
    noun: str

    def named(self, name: str) -> BaseEstimator:
        """Return a new model by its name."""
        if name not in self.known:
            raise ValueError(
                f"The candidate {name!r} is not known. Known names: {listed(self.known, most=99)}; "
                f"known presets: {listed(self.presets, most=99)}. Or pass a scikit-learn {self.noun}."
            )
        return self.known[name]()


_OF_NUMBERS = _Vocabulary(KNOWN, PRESETS, "regressor")
_OF_CLASSES = _Vocabulary(CLASS_KNOWN, CLASS_PRESETS, "classifier")


def _tags(value: Any) -> Any:
    """Return scikit-learn's tags of an estimator; None where a user's own class has none or they fail."""
    try:
        return value.__sklearn_tags__()
    except Exception:
        return None


def _is_model(value: Any, noun: str) -> bool:
    """Tell whether a value is an unfitted scikit-learn model of this kind (regressor or classifier)."""
    if isinstance(value, type) or not hasattr(value, "fit"):
        return False
    # Some of scikit-learn's, such as stacks, have no predict before they are fitted.
    return hasattr(value, "predict") or getattr(_tags(value), "estimator_type", None) == noun


def _checked(model: Any, noun: str) -> Any:
    """Return a candidate unchanged; raise where no learner could use it.

    A classifier has to give probabilities, unless it wraps other estimators and shows that only when
    fitted. A regressor has to take a response of one column.
    """
    tags, name = _tags(model), type(model).__name__
    if noun == "classifier":
        if getattr(tags, "estimator_type", "classifier") != "classifier":
            raise ValueError(
                f"The candidate {name} predicts numbers, and the response is a class: take a classifier."
            )
        wraps_estimators = hasattr(model, "estimator") or hasattr(model, "estimators")
        if not hasattr(model, "predict_proba") and not wraps_estimators:
            raise ValueError(f"The candidate {name} has no predict_proba: wrap it in CalibratedClassifierCV.")
        return model
    if tags is not None and not tags.target_tags.single_output:
        raise ValueError(
            f"The candidate {name} needs several responses, and learners have one: "
            "take a regressor for a single response instead."
        )
    return model


def _free_name(name: str, taken: Candidates) -> str:
    """Return a name that no candidate has yet: the name itself, or with a number behind it."""
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return name if name not in taken else next(free for free in numbered if free not in taken)


def _from_list(entries: Iterable[Any], vocabulary: _Vocabulary) -> Candidates:
    """Return unfitted candidates by name, from a list of names, presets and estimators.

    An estimator is named after its class, or that of the last step of a pipeline. A name that is taken
    gets a number behind it.
    """
    chosen: Candidates = {}
    names_taken: set[str] = set()
    for entry in entries:
        if isinstance(entry, str):
            # A name that a preset has brought already brings nothing new.
            for name in (
                known_name
                for known_name in vocabulary.presets.get(entry, (entry,))
                if known_name not in names_taken
            ):
                chosen[_free_name(name, chosen)] = vocabulary.named(name)
                names_taken.add(name)
        elif _is_model(entry, vocabulary.noun):
            final_step = entry.steps[-1][1] if isinstance(entry, Pipeline) else entry
            chosen[_free_name(type(final_step).__name__.lower(), chosen)] = _checked(entry, vocabulary.noun)
        else:
            raise ValueError(
                f"The 'candidates' option takes names, presets and scikit-learn {vocabulary.noun}s "
                f"(instances, not classes). Got {brief(entry)}."
            )
    if not chosen:
        raise ValueError("The 'candidates' option is empty: name at least one candidate.")
    return chosen


def make_candidates(spec: Any = None) -> Candidates:
    """Resolve one candidate set.

    Parameters
    ----------
    spec : str, estimator, list, dict, ForClasses or None, default=None
        A preset (``"default"``, ``"linear"``, ``"paper"``), a name (``"rf"``, ``"lasso"``, ...), a
        scikit-learn regressor, a list of names and regressors, or a dict of name to either. None is
        the preset ``"default"``. Inside `ForClasses`, names and presets are those of classifiers.

    Returns
    -------
    dict of str to estimator
        Unfitted candidates by name.

    Examples
    --------
    >>> from coterie.candidates import make_candidates
    >>> list(make_candidates("linear"))
    ['lr', 'ridge', 'lasso']
    """
    vocabulary = _OF_NUMBERS
    if isinstance(spec, ForClasses):
        vocabulary, spec = _OF_CLASSES, spec.spec
    if spec is None:
        spec = "default"
    if isinstance(spec, str) or _is_model(spec, vocabulary.noun):
        return _from_list([spec], vocabulary)
    if isinstance(spec, Mapping):
        resolved = {}
        for name, entry in spec.items():
            if isinstance(entry, str):
                entry = vocabulary.named(entry)
            if not _is_model(entry, vocabulary.noun):
                raise ValueError(
                    f"The candidate {name!r} must be a known name or a scikit-learn {vocabulary.noun}. "
                    f"Got {brief(entry)}."
                )
            resolved[str(name)] = _checked(entry, vocabulary.noun)
        return resolved or _from_list([], vocabulary)
    if isinstance(spec, Iterable):
        return _from_list(spec, vocabulary)
    raise ValueError(
        f"The 'candidates' option takes a preset ({listed(vocabulary.presets)}), a list, or a dict. "
        f"Got {brief(spec)}."
    )


def names_learners(spec: Any, learner_ids: Iterable[Any]) -> bool:
    """Tell whether ``spec`` maps learners to candidate sets, rather than names to candidates.

    It does if any of its keys is one of ``learner_ids``.
    """
    spec = spec.spec if isinstance(spec, ForClasses) else spec
    return isinstance(spec, Mapping) and not set(spec).isdisjoint(learner_ids)


def candidates_per_learner(spec: Any, learner_ids: Iterable[Any]) -> list[Candidates]:
    """Return the candidate set of every learner: a dict of unfitted estimators for each id, in order.

    ``spec`` is as for `make_candidates`, one set for all learners, or a mapping of every learner's id to
    any of these.
    """
    ids = list(learner_ids)
    if not names_learners(spec, ids):
        shared = make_candidates(spec)
        return [shared] * len(ids)
    if isinstance(spec, ForClasses):
        spec = {learner: ForClasses(learner_spec) for learner, learner_spec in spec.spec.items()}
    missing = [learner_id for learner_id in ids if learner_id not in spec]
    if missing:
        raise ValueError(
            f"The 'candidates' mapping names no candidates for learner {listed(missing)}: "
            "give every learner an entry, or one set for all."
        )
    return [make_candidates(spec[learner_id]) for learner_id in ids]
