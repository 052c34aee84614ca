"""Which types are rebuilt, which are refused, and what is checked in those that are."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_regression
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.linear_model import Lasso, Ridge, RidgeCV, TweedieRegressor
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from coterie import CoterieRegressor
from coterie.candidates import KNOWN
from coterie.persistence import PersistenceError, load, save
from coterie.persistence.models import TRUSTED, dump_model, load_model

X, y = make_regression(60, 4, noise=3.0, random_state=0)
Y = np.abs(y) + 1


@pytest.mark.parametrize(
    "model",
    [
        RandomForestRegressor(3, random_state=0),
        ExtraTreesRegressor(3, random_state=0),
        GradientBoostingRegressor(n_estimators=3),
        GradientBoostingRegressor(loss="huber", n_estimators=3),
        HistGradientBoostingRegressor(max_iter=3),
        HistGradientBoostingRegressor(loss="gamma", max_iter=3),
        BaggingRegressor(n_estimators=3, max_features=0.5),
        KNeighborsRegressor(algorithm="kd_tree", leaf_size=5),
        KNeighborsRegressor(algorithm="ball_tree", leaf_size=5, p=1),
        KNeighborsRegressor(algorithm="brute"),
        SVR(),
        make_pipeline(StandardScaler(), SVR(kernel="linear")),
        MLPRegressor(hidden_layer_sizes=(3,), solver="lbfgs", max_iter=10),
        MLPRegressor(hidden_layer_sizes=(3,), solver="adam", max_iter=10),
        MLPRegressor(hidden_layer_sizes=(3,), solver="sgd", max_iter=3, learning_rate_init=1e-6),
        TransformedTargetRegressor(Ridge(), transformer=StandardScaler()),
        TransformedTargetRegressor(Ridge(), func=np.log1p, inverse_func=np.expm1),
        make_pipeline(PolynomialFeatures(2), RidgeCV()),
        make_pipeline(SelectKBest(f_regression, k=2), Lasso()),
        GaussianProcessRegressor(ConstantKernel() * RBF() + Matern() + WhiteKernel()),
        VotingRegressor([("a", Ridge()), ("b", Lasso())]),
        StackingRegressor([("a", Ridge()), ("b", Lasso())]),
        GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2),
        TweedieRegressor(power=1.5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_scikit_learns_regressors_come_back_to_the_last_bit(model: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, Y)
    loaded = load_model(dump_model(model), ())
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("name", [name for name in KNOWN if name not in ("nn", "rf", "gb")])
def test_presets_come_back(name: str) -> None:
    model = KNOWN[name]().fit(X, y)
    np.testing.assert_array_equal(load_model(dump_model(model), ()).predict(X), model.predict(X))


def test_splitters_come_back() -> None:
    loaded = load_model(dump_model(TimeSeriesSplit(3, gap=2)), ())
    assert repr(loaded) == repr(TimeSeriesSplit(3, gap=2))


def test_what_we_trust_is_a_list_of_types() -> None:
    for name in sorted(TRUSTED):
        module, _, attribute = name.rpartition(".")
        trusted = getattr(import_module(module), attribute)
        assert isinstance(trusted, type) or name.endswith(".f_regression"), name
        assert (
            module.startswith(
                ("sklearn.", "coterie._forest", "coterie._boosting", "coterie._lines", "coterie._penalised")
            )
            or name == "numpy.dtype"
        )


def skops_file(schema: dict[str, Any], **files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as zipped:
        zipped.writestr("schema.json", json.dumps({"protocol": 2, "_skops_version": "0.16", **schema}))
        for name, content in files.items():
            zipped.writestr(name, content)
    return packed.getvalue()


def node(module: str, name: str, loader: str, **more: Any) -> dict[str, Any]:
    return {"__module__": module, "__class__": name, "__loader__": loader, "__id__": 1, **more}


def arguments(*texts: str) -> dict[str, Any]:
    content = [
        node("builtins", "str", "JsonNode", content=json.dumps(text)) | {"__id__": 2} for text in texts
    ]
    return node("builtins", "tuple", "TupleNode", content=content) | {"__id__": 3}


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        (node("os", "system", "FunctionNode"), "os.system"),
        (node("builtins", "eval", "FunctionNode"), "builtins.eval"),
        (node("builtins", "exec", "TypeNode"), "builtins.exec"),
        (node("numpy", "load", "FunctionNode"), "numpy.load"),
        (node("numpy", "load", "ConstructorFromReduceNode", content=arguments("x.npy")), "numpy.load"),
        (node("sklearn.datasets", "load_files", "FunctionNode"), "sklearn.datasets.load_files"),
        (node("joblib", "load", "ConstructorFromReduceNode", content=arguments("x")), "joblib.load"),
        (node("operator", "methodcaller", "OperatorFuncNode", attrs=arguments("x")), "operator.methodcaller"),
        (
            node("subprocess", "Popen", "ConstructorFromReduceNode", content=arguments("true")),
            "subprocess.Popen",
        ),
        (
            node("sklearn.utils._joblib", "joblib", "ObjectNode"),
            "sklearn.utils._joblib.joblib",
        ),
        (
            node("coterie.estimators", "CoterieRegressor", "ObjectNode"),
            "coterie.estimators.CoterieRegressor",
        ),
    ],
)
def test_a_hostile_member_is_refused_by_name(
    schema: dict[str, Any], name: str, tampered: Callable[..., Path]
) -> None:
    content = skops_file(schema)
    path = tampered(lambda members: members.update({"models/0.skops": content}))
    with pytest.raises(PersistenceError) as refusal:
        load(path)
    assert f"The file names {name}, which is not among the types that coterie trusts" in str(refusal.value)
    assert f"load(path, trusted=[{name!r}])" in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80\x04N.",
        skops_file({"nothing": 1}),
        skops_file(node("builtins", "str", "NoSuchNode")),
        skops_file(node("numpy", "ndarray", "NdArrayNode", type="numpy", file="../../etc/passwd")),
        skops_file(node("builtins", "str", "JsonNode", content="{")),
        skops_file(node("builtins", "str", "JsonNode", content='"not a model"')),
    ],
)
def test_a_member_that_is_no_model_is_refused(content: bytes, tampered: Callable[..., Path]) -> None:
    path = tampered(lambda members: members.update({"models/0.skops": content}))
    with pytest.raises(PersistenceError):
        load(path)


def pulled(model: Any, change: Callable[[Any], object]) -> Callable[[], Any]:
    """Make a model whose indices lead out of their arrays."""

    def broken() -> Any:
        fitted = clone(model).fit(X, y)
        change(fitted)
        return fitted

    return broken


def set_at(array: Any, place: int, value: int, name: str | None = None) -> None:
    part = np.asarray(array)
    (part if name is None else part[name])[place] = value


TREE, FOREST = DecisionTreeRegressor(), RandomForestRegressor(2, random_state=0)
HIST = HistGradientBoostingRegressor(max_iter=2)
KD, BALL = (KNeighborsRegressor(algorithm=name, leaf_size=5) for name in ("kd_tree", "ball_tree"))
HIDDEN = make_pipeline(StandardScaler(), TransformedTargetRegressor(DecisionTreeRegressor()))
BROKEN = {
    "child": pulled(FOREST, lambda m: set_at(m.estimators_[1].tree_.children_left, 0, 10_000)),
    "loop": pulled(TREE, lambda m: set_at(m.tree_.children_right, 1, 0)),
    "feature": pulled(TREE, lambda m: set_at(m.tree_.feature, 0, 4)),
    "hidden": pulled(HIDDEN, lambda m: set_at(m[-1].regressor_.tree_.feature, 0, -3)),
    "tree of more columns": pulled(TREE, lambda m: vars(m).update(n_features_in_=2)),
    "forest of more columns": pulled(FOREST, lambda m: vars(m).update(n_features_in_=2)),
    "forest without columns": pulled(FOREST, lambda m: vars(m).update(n_features_in_=None)),
    "two trees a round": pulled(
        GradientBoostingRegressor(n_estimators=2),
        lambda m: vars(m).update(estimators_=np.hstack([m.estimators_] * 2)),
    ),
    "histogram's child": pulled(HIST, lambda m: set_at(m._predictors[0][0].nodes, 0, 2**31, "left")),
    "histogram's feature": pulled(HIST, lambda m: set_at(m._predictors[1][0].nodes, 0, 99, "feature_idx")),
    "histogram's category": pulled(
        HIST, lambda m: m._predictors[1][0].nodes.__setitem__("is_categorical", 1)
    ),
    "kd order": pulled(KD, lambda m: set_at(m._tree.get_arrays()[1], 0, 60)),
    "kd leaf": pulled(KD, lambda m: set_at(m._tree.get_arrays()[2], -1, 0, "is_leaf")),
    "kd span": pulled(KD, lambda m: set_at(m._tree.get_arrays()[2], 0, 61, "idx_end")),
    "ball order": pulled(BALL, lambda m: set_at(m._tree.get_arrays()[1], 0, -1)),
    "ball leaf": pulled(BALL, lambda m: set_at(m._tree.get_arrays()[2], -1, 0, "is_leaf")),
    "brute": pulled(KNeighborsRegressor(algorithm="brute"), lambda m: vars(m).update(_fit_X=m._fit_X[:, :2])),
    "support": pulled(SVR(), lambda m: vars(m).update(_dual_coef_=m._dual_coef_[:, :1])),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_indices_that_lead_astray_are_found_before_they_are_followed(broken: Callable[[], Any]) -> None:
    with pytest.raises(PersistenceError, match="whose parts do not fit each other"):
        load_model(dump_model(broken()), ())


def test_a_cache_folder_is_not_restored() -> None:
    loaded = load_model(dump_model(make_pipeline(StandardScaler(), Ridge(), memory="/tmp/cache")), ())
    assert loaded.memory is None


def test_what_cannot_be_found_again_is_not_saved(data: Any, tmp_path: Path) -> None:
    class Local(RegressorMixin, BaseEstimator):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Local:
            self.mean_ = float(np.mean(y))
            return self

        def predict(self, X: Any) -> Any:
            return np.full(len(X), self.mean_)

    path = tmp_path / "model.coterie"
    path.write_bytes(b"old")
    unnamed = make_pipeline(FunctionTransformer(lambda rows: 2 * rows), Ridge())
    for candidate, name in ((Local(), r"\.Local"), (unnamed, r"\.<lambda>")):
        model = CoterieRegressor(candidates=[candidate], n_clusters=1, refine=None)
        model.fit(data.X, data.y, groups=data.groups)
        with pytest.raises(PersistenceError, match=name + ", which .* define it at the top of a module"):
            save(model, path)
    assert [p.name for p in tmp_path.iterdir()] == ["model.coterie"]
    assert path.read_bytes() == b"old"


class Stubborn(Ridge):  # type: ignore[misc]
    def __getstate__(self) -> Any:
        raise RuntimeError("no state for you")


def test_a_candidate_that_will_not_be_dumped_is_named() -> None:
    with pytest.raises(PersistenceError, match=r"A Stubborn cannot be saved .*no state for you"):
        dump_model(Stubborn())
