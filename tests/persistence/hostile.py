"""Models that were made to do harm: each is a skops file, from a true one."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
)
from sklearn.feature_selection import RFE
from sklearn.linear_model import Lasso, LassoCV, RANSACRegressor, Ridge, TheilSenRegressor
from sklearn.model_selection import GridSearchCV, LeavePOut, RandomizedSearchCV, ShuffleSplit
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from coterie.persistence.models import dump_model

from .zoo import X, y

Schema = dict[str, Any]
Files = dict[str, bytes]


def unpacked(dumped: bytes) -> tuple[Schema, Files]:
    """Take a skops file apart."""
    with zipfile.ZipFile(io.BytesIO(dumped)) as zipped:
        files = {name: zipped.read(name) for name in zipped.namelist()}
    return json.loads(files.pop("schema.json")), files


def packed(schema: Schema, files: Files) -> bytes:
    """Put a skops file together."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as zipped:
        for name, part in {**files, "schema.json": json.dumps(schema).encode()}.items():
            zipped.writestr(zipfile.ZipInfo(name), part)
    return content.getvalue()


def npy(values: Any) -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array(content, np.asarray(values), allow_pickle=False)
    return content.getvalue()


def nodes_of(schema: Any, name: str) -> list[Schema]:
    """Find the nodes of a type."""
    if isinstance(schema, dict):
        mine = [schema] if schema.get("__class__") == name else []
        return mine + [node for part in schema.values() for node in nodes_of(part, name)]
    return [node for part in schema for node in nodes_of(part, name)] if isinstance(schema, list) else []


def fitted(model: Any, **changes: Any) -> bytes:
    """Fit a model and set some of its attributes."""
    made = clone(model).fit(X, y)
    vars(made).update(changes)
    return dump_model(made)


def _machine(**changes: Any) -> bytes:
    # All rows are support vectors, so that the number of them is known.
    return fitted(SVR(epsilon=0.0), **changes)


def edited(model: Any, change: Callable[[Schema, Files], object]) -> bytes:
    """Fit a model and change what is written of it."""
    schema, files = unpacked(fitted(model))
    change(schema, files)
    return packed(schema, files)


def _no_bounds(schema: Schema, files: Files) -> None:
    """Take the bounds of a search tree away, but not their shape."""
    tree = (nodes_of(schema, "KDTree") + nodes_of(schema, "BallTree"))[0]
    node = tree["content"]["content"][3]
    files[node["file"]] = npy(np.load(io.BytesIO(files[node["file"]]))[:0])


def _in_tree(name: str, content: str) -> Callable[[Schema, Files], object]:
    def change(schema: Schema, files: Files) -> None:
        nodes_of(schema, "Tree")[0]["content"]["content"][name]["content"] = content

    return change


def _outputs(schema: Schema, files: Files) -> None:
    nodes_of(schema, "Tree")[0]["__reduce__"]["args"]["content"][2]["content"] = "100000000"


def _place(schema: Schema, files: Files) -> None:
    nodes_of(schema, "RandomState")[0]["content"]["content"]["state"]["content"]["pos"]["content"] = (
        "900000000"
    )


def _histogram(**changes: Any) -> bytes:
    made = HistGradientBoostingRegressor(max_iter=1, min_samples_leaf=5).fit(X, y)
    nodes = made._predictors[0][0].nodes
    if "wide" in changes:
        narrow = ColumnTransformer([("all", "passthrough", [0])])
        narrow.fit(np.zeros((3, 9000)))
        made._preprocessor, made.n_features_in_ = narrow, 9000
        nodes["feature_idx"] = 8999
    else:
        nodes["is_categorical"], nodes["bitset_idx"] = 1, 0
        made._predictors[0][0].raw_left_cat_bitsets = np.zeros((1, 8), np.uint32)
        made._predictors[0][0].binned_left_cat_bitsets = np.zeros((1, 8), np.uint32)
    return dump_model(made)


def _without(name: str) -> bytes:
    made = RandomForestRegressor(2, random_state=0).fit(X, y)
    for part in (made, *made.estimators_):
        del vars(part)[name]
    return dump_model(made)


KD = KNeighborsRegressor(3, algorithm="kd_tree", leaf_size=5)
BALL = KNeighborsRegressor(3, algorithm="ball_tree", leaf_size=5)
DRAWN = RandomForestRegressor(2, random_state=np.random.RandomState(0))
TREE = DecisionTreeRegressor(max_depth=3, random_state=0)
ONE_HOT = make_pipeline(OneHotEncoder(sparse_output=False, handle_unknown="ignore"), Ridge())


def _one_hot() -> bytes:
    made = clone(ONE_HOT).fit(X, y)
    made[0]._n_features_outs = [1, 1, 1, 1]
    return dump_model(made)


# What made the process end, or could: compiled code would follow these.
CRASHES: dict[str, Callable[[], bytes]] = {
    "SVR, wild support": lambda: _machine(
        kernel="precomputed", shape_fit_=(4, 4), support_=np.full(40, 10**9, np.int32)
    ),
    "SVR, too many classes": lambda: _machine(_n_support=np.full(90_000, 40, np.int32)),
    "SVR, another machine": lambda: _machine(_impl="c_svc", _n_support=np.array([40, 0], np.int32)),
    "SVR, sparse": lambda: _machine(_sparse=True),
    "SVR, probabilities": lambda: _machine(_probA=np.zeros(1), _probB=np.zeros(0)),
    "histogram, narrowed": lambda: _histogram(wide=True),
    "histogram, no categories": _histogram,
    "tree, more nodes than there are": lambda: edited(TREE, _in_tree("node_count", "90000000")),
    "tree, outputs": lambda: edited(TREE, _outputs),
    "forest, no number of columns": lambda: _without("n_features_in_"),
    "one-hot, places": _one_hot,
    "generator, place": lambda: edited(
        RandomForestRegressor(2, random_state=np.random.RandomState(0)), _place
    ),
}
# Search trees are made anew from their rows, whatever the file says of their insides.
REBUILT: dict[str, Callable[[], bytes]] = {
    "kd, no bounds": lambda: edited(KD, _no_bounds),
    "ball, no bounds": lambda: edited(BALL, _no_bounds),
}
# What asks objects to do what their types do not.
DEEDS: dict[str, Callable[[], bytes]] = {
    "a method replaced": lambda: fitted(Ridge(), predict=np.sqrt),
    "stacking calls": lambda: fitted(StackingRegressor([("a", Ridge())]), stack_method_=["fit"]),
    "a file instead of numbers": lambda: fitted(Ridge(), coef_="/etc/passwd"),
    "columns in columns": lambda: fitted(
        BaggingRegressor(Ridge(), n_estimators=1), estimators_features_=[np.zeros(10**6, int)]
    ),
    "outputs that grow": lambda: fitted(RandomForestRegressor(1), n_outputs_=10**9),
    "columns that grow": lambda: fitted(PolynomialFeatures(2), _n_out_full=90_000),
    "an offset that grows": lambda: fitted(Ridge(), intercept_=np.zeros(10**5)),
}

CACHED = Pipeline([("scale", StandardScaler()), ("ridge", Ridge())])
NESTED = TransformedTargetRegressor(CACHED)
FOLDER = "/somewhere/else"
CODE = "__import__('os').system('true')"
PARAMETERS: dict[str, Callable[[], Any]] = {
    "cache in a grid": lambda: GridSearchCV(CACHED, {"memory": [FOLDER]}),
    "cache in a list of grids": lambda: GridSearchCV(CACHED, [{"ridge__alpha": [1.0]}, {"memory": [FOLDER]}]),
    "cache of a part": lambda: GridSearchCV(NESTED, {"regressor__memory": [None, FOLDER]}),
    "cache in draws": lambda: RandomizedSearchCV(CACHED, {"memory": [FOLDER]}),
    "cache in a grid in a grid": lambda: GridSearchCV(
        GridSearchCV(CACHED, {"ridge__alpha": [1.0]}), {"param_grid": [{"memory": [FOLDER]}]}
    ),
    "cache in a candidate in a list": lambda: StackingRegressor(
        [("a", GridSearchCV(CACHED, {"memory": [FOLDER]}))]
    ),
    "code in the dispatch": lambda: GridSearchCV(Ridge(), {"alpha": [1.0]}, pre_dispatch=CODE),
    "code in a grid": lambda: GridSearchCV(
        GridSearchCV(Ridge(), {"alpha": [1.0]}), {"pre_dispatch": ["2*n_jobs", CODE]}
    ),
    "a function as weights": lambda: KNeighborsRegressor(weights=np.sqrt),
    "a function as kernel": lambda: SVR(kernel=np.sqrt),
    "a function with options": lambda: FunctionTransformer(np.sqrt, kw_args={"out": np.zeros((40, 4))}),
    "a function of two": lambda: FunctionTransformer(np.add),
    "a method as importance": lambda: RFE(Ridge(), importance_getter="fit"),
    "trees": lambda: RandomForestRegressor(10**9),
    "trees in a grid": lambda: GridSearchCV(RandomForestRegressor(), {"n_estimators": [10, 10**8]}),
    "forests of searches": lambda: GridSearchCV(
        BaggingRegressor(RandomForestRegressor(5000), n_estimators=5000), {"max_features": [0.5, 0.6]}
    ),
    "rounds": lambda: HistGradientBoostingRegressor(max_iter=10**8),
    "leaves": lambda: DecisionTreeRegressor(max_leaf_nodes=2**31 - 1),
    "iterations": lambda: Lasso(max_iter=2**60),
    "grid points": lambda: GridSearchCV(
        Ridge(), {name: list(range(100)) for name in ("alpha", "tol", "max_iter", "solver")}
    ),
    "draws": lambda: RandomizedSearchCV(Ridge(), {"alpha": [1.0]}, n_iter=10**9),
    "folds": lambda: LassoCV(cv=10**9),
    "folds of a splitter": lambda: ShuffleSplit(10**9),
    "folds by pairs": lambda: LeavePOut(20),
    "penalties": lambda: LassoCV(alphas=10**9),
    "units": lambda: MLPRegressor(hidden_layer_sizes=(10**6, 10**6)),
    "powers": lambda: PolynomialFeatures(1000),
    "trials": lambda: RANSACRegressor(max_trials=10**12),
    "subsets": lambda: TheilSenRegressor(max_subpopulation=1e12),
    "trees by numpy": lambda: RandomForestRegressor(np.int64(10**9)),
    "rounds in rounds": lambda: BaggingRegressor(RandomForestRegressor(np.int64(5000)), n_estimators=5000),
    "workers in a grid": lambda: GridSearchCV(RandomForestRegressor(), {"n_jobs": [100_000]}),
}
