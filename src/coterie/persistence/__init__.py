"""Models as files: a zip of JSON, arrays and skops, never pickle.

``manifest.json`` has the versions, the parameters, who is in which cluster, and the checksum of every other
member; ``arrays.npz`` the numbers; ``models/*.skops`` one fitted model each. Loading a file runs none of its
code: types are built only by the rules of one table (`allowed`), or where the user names them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.utils.validation import check_is_fitted

import coterie
from coterie.classifier import CoterieClassifier
from coterie.estimator import CoterieEstimator
from coterie.fit.record import Fit
from coterie.kernels.affine import AffineLosses, affine_matrix
from coterie.kernels.losses import DenseTiles
from coterie.kernels.similarities import ExchangeSimilarity
from coterie.method.landmarks import LandmarkTiles
from coterie.persistence import archive
from coterie.persistence.archive import Budget, PersistenceError, clean, read_archive, unfit
from coterie.persistence.arrays import pack_arrays, unpack_arrays
from coterie.persistence.checks import PARTS, Attributes, check_fit, checked_parameters, n_predictors
from coterie.persistence.codec import Decoder, Encoder, check_ids
from coterie.persistence.models import dump_model, load_model
from coterie.records import Exchange, Selection
from coterie.regressor import CoterieRegressor
from coterie.rows.learners import Learners

__all__ = ["PersistenceError", "load", "save"]

_ARRAYS = "arrays.npz"
# What a file may hold, by the name that the manifest gives.
KINDS: dict[str, type[CoterieEstimator]] = {
    "CoterieRegressor": CoterieRegressor,
    "CoterieClassifier": CoterieClassifier,
}


def _without_rows(learners: Learners) -> Learners:
    """Return learners with tables of no rows, for a file that must not hold any (rows may be private)."""
    no_weights = np.empty(0)
    return replace(
        learners,
        X=np.empty((0, learners.n_features)),
        y=np.empty((0, learners.y.shape[1])),
        rows=np.empty(0, dtype=int),
        weights=None if learners.weights is None else no_weights,
    )


def _state_of(fit: Fit, rows: bool) -> dict[str, Any]:
    """Return the parts of a fit to save, by name.

    Left out are the models of the folds, and what `load` can compute again: losses of affine models (a line
    and an intercept) from the rows, and similarities from the losses; None stands for these. Without
    ``rows``, losses are stored as a matrix, except between landmarks (the few learners that all others are
    compared to).
    """
    state = {name: getattr(fit, name) for name in PARTS}
    selection, exchange = fit.selection, fit.exchange
    n_models = len(selection.models)
    selection = replace(selection, fold_models=((),) * n_models)
    if not rows:
        selection = replace(selection, candidate_losses=({},) * n_models)
    state["selection"] = selection
    losses_are_remade = rows and isinstance(exchange.source, AffineLosses)
    source: Any = exchange.source
    if not isinstance(source, LandmarkTiles):
        source = None if losses_are_remade else DenseTiles(exchange.losses)
    state["exchange"] = replace(exchange, source=source)
    similarity = fit.partition.similarity
    if not isinstance(similarity, np.ndarray):
        # With very many learners it is made from the exchange whenever it is needed.
        is_remade = losses_are_remade or isinstance(source, LandmarkTiles)
        stored_similarity: Any = None if is_remade else np.asarray(similarity)
        state["partition"] = replace(fit.partition, similarity=stored_similarity)
    if not rows:
        state["learners"] = _without_rows(fit.learners)
    return state


def _affine_tiles(exchange: Exchange, selection: Selection, shaping: Learners) -> AffineLosses:
    """Return the losses of affine models on the rows of all learners, computed again as `Exchange` did.

    A file with rows does not hold them. ``shaping`` are the learners with their rows; the result is in the
    order of the learners of ``exchange``, the losses of everybody's model on everybody's rows.
    """
    models = selection.aligned_to(shaping.ids).models
    vectors, affine = affine_matrix(models, shaping.n_features)
    if not affine.all():
        raise unfit("holds no losses, and a model without coefficients to compute them from")
    position_of_learner = {learner: j for j, learner in enumerate(shaping.ids.tolist())}
    positions = np.array([position_of_learner[i] for i in exchange.learner_ids.tolist()], dtype=int)
    return AffineLosses(vectors, shaping).take(positions)


def save(model: CoterieEstimator, path: str | os.PathLike[str], *, rows: bool = True) -> None:
    """Save a fitted model as a file that can be loaded without pickle.

    The file appears at once or not at all: a failure leaves the old file as it was.

    Parameters
    ----------
    model : CoterieRegressor or CoterieClassifier
        A fitted model.
    path : str or path-like
        The file, by convention ``*.coterie``. An old file is replaced.
    rows : bool, default=True
        Keep the rows of ``fit``, which ``admit`` needs. Without them the file still holds what models
        remember of them (k-NN, SVR and Gaussian processes keep rows), and each row's residuals.

    Notes
    -----
    Left out are the models behind the residuals (``selection_.fold_models`` becomes a tuple of empty
    tuples), an ``engine`` that is an object (it becomes None), and requests for metadata
    (``set_fit_request``). A pipeline's cache folder (``memory``) and ``verbose`` are not restored. Equal
    models give equal files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from coterie import CoterieRegressor
    >>> from coterie.datasets import make_linear_learners
    >>> from coterie.persistence import load, save
    >>> data = make_linear_learners(n_learners=6, n_truths=2, random_state=0)
    >>> model = CoterieRegressor(candidates="linear").fit(data.X, data.y, groups=data.groups)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, Path(folder) / "model.coterie")
    ...     again = load(Path(folder) / "model.coterie")
    >>> bool((again.predict(data.X, data.groups) == model.predict(data.X, data.groups)).all())
    True
    """
    if type(model) not in KINDS.values():
        raise TypeError(f"coterie.save takes a {' or a '.join(KINDS)}. Got {type(model).__name__}.")
    kind = type(model).__name__
    check_is_fitted(model, "record_", msg=f"This {kind} is not fitted yet: call fit before coterie.save.")
    check_ids(model.learner_ids_)
    # A model that was loaded without rows has none to save.
    fit = model.record_
    rows = bool(rows and fit.has_rows)
    state = _state_of(fit, rows)
    parameters = model.get_params(deep=False)
    # What was set after the fit says nothing of it.
    parameters |= {name: value for name, value in vars(fit.options).items() if name in parameters}
    estimator_attributes = {
        name: value for name, value in vars(model).items() if name in Attributes.__annotations__
    }
    if not isinstance(parameters["engine"], (str, type(None))):
        parameters["engine"] = None
    target = archive.check_target(Path(path))
    members: dict[str, bytes] = {}
    encoder = Encoder(lambda member, part: members.update({member: dump_model(part)}))
    manifest = {
        "coterie": coterie.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "rows": rows,
        "estimator kind": kind,
        "parameters": {name: encoder.encode(value) for name, value in parameters.items()},
        "learners": {"ids": encoder.readable(fit.learner_ids), "labels": encoder.readable(fit.labels)},
        "estimator": {name: encoder.encode(value) for name, value in estimator_attributes.items()},
        "fit": {name: encoder.encode(value) for name, value in state.items()},
    }
    archive.write_archive(target, manifest, {**members, _ARRAYS: pack_arrays(encoder.arrays)})


def _restored(
    manifest: dict[str, Any], members: dict[str, bytes], trusted: list[str | type], budget: Budget
) -> CoterieEstimator:
    """Return the fitted estimator of a manifest and its members; refuse parts that do not make one.

    ``trusted`` are types of the user's, ``budget`` limits what values may expand to. Everything is checked
    before the estimator gets its attributes, and losses or similarities that were left out are made again.
    """
    match manifest:
        case {
            "parameters": dict(parameters),
            "learners": {"ids": _, "labels": _},
            "estimator": dict(attributes),
            "fit": dict(parts),
            "rows": bool(rows),
            "estimator kind": str(kind),
        } if kind in KINDS:
            pass
        case _:
            raise unfit("has a manifest whose fields are missing or of the wrong type")
    parameter_names = set(KINDS[kind]().get_params(deep=False))
    if (
        set(parameters) - parameter_names
        or set(attributes) - set(Attributes.__annotations__)
        or set(parts) != set(PARTS)
    ):
        raise unfit(f"names parameters or parts that a {kind} does not have")
    arrays = unpack_arrays(members[_ARRAYS])
    decoder = Decoder(arrays, lambda member: load_model(members[member], trusted, budget), budget)
    parameter_values = {name: decoder.decode(value) for name, value in parameters.items()}
    estimator_attributes = {name: decoder.decode(value) for name, value in attributes.items()}
    model = KINDS[kind](**checked_parameters(parameter_values, n_predictors(estimator_attributes)))
    state = {name: decoder.decode(value) for name, value in parts.items()}
    ids_in_order, labels = (decoder.decode(manifest["learners"][name]) for name in ("ids", "labels"))
    if (kind == "CoterieClassifier") != ("classes_" in estimator_attributes):
        raise unfit(f"holds classes that do not fit a {kind}")
    check_fit(state, estimator_attributes, ids_in_order, labels, rows)
    if state["exchange"].source is None:
        source = _affine_tiles(state["exchange"], state["selection"], state["learners"])
        state["exchange"] = replace(state["exchange"], source=source)
    if state["partition"].similarity is None:
        similarity_on_demand = ExchangeSimilarity(state["exchange"], state["partition"].scale)
        state["partition"] = replace(state["partition"], similarity=similarity_on_demand)
    model.__dict__.update(estimator_attributes)
    model.record_ = Fit(options=model.check_options(), **state)
    return model


def load(path: str | os.PathLike[str], *, trusted: Iterable[str | type] = ()) -> Any:
    """Load a model that `save` wrote.

    No code from the file is run: types are built only where their names are in our table or in your list,
    and the rules of the table say what they may be made of. Whether the model is a good one, no check tells.

    Parameters
    ----------
    path : str or path-like
        The file.
    trusted : iterable of str or type, default=()
        Types to build beside those of the table: your own candidates, by ``"module.Name"`` or as the class
        itself. What their objects hold is not checked.

    Returns
    -------
    CoterieRegressor or CoterieClassifier
        The fitted model.
    """
    manifest, members = read_archive(Path(path))
    names: list[str | type] = [trusted] if isinstance(trusted, (str, type)) else list(trusted)
    try:
        model = _restored(manifest, members, names, Budget(Path(path).stat().st_size))
    except PersistenceError:
        raise
    # What is read by now is whole but may be anything, and so may be what goes wrong with it.
    except Exception as error:
        raise PersistenceError(
            f"The file {str(path)!r} cannot be made into a model ({type(error).__name__}: {clean(error)}): "
            "save the model again with this version of coterie."
        ) from error
    version_in_file = clean(manifest.get("scikit-learn"), 20)
    if version_in_file != sklearn.__version__:
        warnings.warn(
            f"The model was saved with scikit-learn {version_in_file} and is loaded with "
            f"{sklearn.__version__}, so its predictions may differ: fit it again to be sure.",
            UserWarning,
            stacklevel=2,
        )
    return model
