"""Which types are rebuilt, which are refused, and what is checked in those that are."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_regression
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from coterie import CoterieRegressor
from coterie.persistence import PersistenceError, compiled, load, save
from coterie.persistence.allowed import TYPES
from coterie.persistence.compiled import tree_bytes
from coterie.persistence.models import dump_model, load_model

from . import hostile, zoo

X, y = make_regression(60, 4, noise=3.0, random_state=0)


# Files of earlier versions may hold it.
DEPRECATED = "sklearn.linear_model._passive_aggressive.PassiveAggressiveRegressor"


@pytest.mark.parametrize("name", zoo.MODELS)
def test_every_type_comes_back(name: str) -> None:
    model = zoo.fitted(name)
    loaded = load_model(dump_model(model), ())
    # The last bit of a product depends on where in memory an array begins.
    np.testing.assert_allclose(loaded.predict(zoo.X), model.predict(zoo.X), rtol=1e-13)
    again = load_model(dump_model(loaded), ())
    np.testing.assert_allclose(again.predict(zoo.X), model.predict(zoo.X), rtol=1e-13)


def test_the_zoo_has_every_type() -> None:
    dumped = [dump_model(zoo.fitted(name)) for name in zoo.MODELS]
    found = {name for content in dumped for name in types_in(hostile.unpacked(content)[0])}
    splitters = {name for name in TYPES if "model_selection._split" in name}
    unused = {"collections.OrderedDict", "sklearn.gaussian_process.kernels.CompoundKernel", DEPRECATED}
    missing = set(TYPES) - found - splitters - unused
    assert {name for name in missing if "._loss." not in name and "_dist_metrics" not in name} == set()


def types_in(schema: Any) -> set[str]:
    if isinstance(schema, dict):
        mine = {f"{schema['__module__']}.{schema['__class__']}"} if "__loader__" in schema else set()
        return mine.union(*(types_in(part) for part in schema.values()))
    return set().union(*(types_in(part) for part in schema)) if isinstance(schema, list) else set()


def test_splitters_come_back() -> None:
    loaded = load_model(dump_model(TimeSeriesSplit(3, gap=2)), ())
    assert repr(loaded) == repr(TimeSeriesSplit(3, gap=2))


def test_what_we_trust_is_a_list_of_types() -> None:
    for name in set(TYPES) - {DEPRECATED}:
        module, _, attribute = name.rpartition(".")
        assert isinstance(getattr(import_module(module), attribute), type), name
        assert module.startswith(("sklearn.", "coterie.models.")) or name == "collections.OrderedDict"


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
            node("coterie.regressor", "CoterieRegressor", "ObjectNode"),
            "coterie.regressor.CoterieRegressor",
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
        skops_file(node("builtins", "str", "JsonNode", content="[1]")),
        skops_file(node("os\n", "system", "FunctionNode")),
        skops_file(node("numpy", "ndarray", "ConstructorFromReduceNode", content=arguments("x"))),
        skops_file(node("sklearn.linear_model._ridge", "Ridge", "ListNode", content=[])),
        skops_file(node("sklearn.linear_model._ridge", "Ridge", "ConstructorFromReduceNode", content=[])),
        skops_file(node("numpy", "void", "NdArrayNode", type="numpy", file="x")),
    ],
)
def test_a_member_that_is_no_model_is_refused(content: bytes, tampered: Callable[..., Path]) -> None:
    path = tampered(lambda members: members.update({"models/0.skops": content}))
    with pytest.raises(PersistenceError):
        load(path)


def ids_of(make: Callable[[], bytes]) -> str:
    everything = {**hostile.CRASHES, **hostile.DEEDS}
    return next(name for name, other in everything.items() if other is make)


def test_another_protocol_of_skops_is_named_in_a_short_sentence() -> None:
    for protocol in (1, 3, None, "x\n" * 1000, {"a": [1] * 1000}):
        schema = node("builtins", "list", "ListNode", content=[]) | {"protocol": protocol}
        with pytest.raises(PersistenceError, match=r"in protocol .* of skops, but 2 is read") as refusal:
            load_model(skops_file(schema), ())
        assert str(refusal.value).isprintable()
        assert len(str(refusal.value)) < 200


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
    "brute": pulled(KNeighborsRegressor(algorithm="brute"), lambda m: vars(m).update(_fit_X=m._fit_X[:, :2])),
    "support": pulled(SVR(), lambda m: vars(m).update(_dual_coef_=m._dual_coef_[:, :1])),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_indices_that_lead_astray_are_found_before_they_are_followed(broken: Callable[[], Any]) -> None:
    with pytest.raises(PersistenceError, match="whose parts do not fit each other"):
        load_model(dump_model(broken()), ())


@pytest.mark.parametrize("make", [*hostile.CRASHES.values(), *hostile.DEEDS.values()], ids=ids_of)
def test_what_compiled_code_would_follow_is_refused(make: Callable[[], bytes]) -> None:
    with pytest.raises(PersistenceError, match=r"whose parts do not fit each other|not among what coterie"):
        load_model(make(), ())


@pytest.mark.parametrize("name", hostile.REBUILT)
def test_search_trees_are_made_anew(name: str) -> None:
    model = load_model(hostile.REBUILT[name](), ())
    expected = KNeighborsRegressor(3).fit(zoo.X, zoo.y).predict(zoo.X)
    np.testing.assert_allclose(model.predict(zoo.X), expected)


@pytest.mark.parametrize("name", hostile.PARAMETERS)
def test_parameters_that_act_or_never_end_are_refused(name: str) -> None:
    dumped = dump_model(hostile.PARAMETERS[name]())
    with pytest.raises(PersistenceError, match=r"not among|would be fitted more than") as refusal:
        load_model(dumped, ())
    assert "\n" not in str(refusal.value)


def test_a_cache_folder_is_not_restored() -> None:
    loaded = load_model(dump_model(make_pipeline(StandardScaler(), Ridge(), memory="/tmp/cache")), ())
    assert loaded.memory is None
    grid = {"regressor": [make_pipeline(StandardScaler(), Ridge(), memory="/tmp/cache")]}
    loaded = load_model(dump_model(GridSearchCV(TransformedTargetRegressor(Ridge()), grid)), ())
    assert loaded.param_grid["regressor"][0].memory is None


def test_workers_are_those_of_this_machine() -> None:
    assert load_model(dump_model(RandomForestRegressor(n_jobs=100_000)), ()).n_jobs == -1
    assert load_model(dump_model(RandomForestRegressor(n_jobs=1)), ()).n_jobs == 1


def test_truth_values_are_zero_or_one() -> None:
    schema, files = hostile.unpacked(dump_model(zoo.fitted("RFE 30")))
    for name, content in files.items():
        if b"'|b1'" in content:
            files[name] = content[:-4] + b"\x04\x80\xff\x00"
    mask = load_model(hostile.packed(schema, files), ())[0].support_
    assert mask.view(np.uint8).tolist() == [1, 1, 1, 0]


def test_what_the_user_trusts_is_not_looked_at() -> None:
    dumped = dump_model(GridSearchCV(Ridge(), {"alpha": [1.0]}, pre_dispatch="3 * n_jobs + 1"))
    with pytest.raises(PersistenceError, match=r"'pre_dispatch' .* trusted=\['sklearn\.model_selection"):
        load_model(dumped, ())
    assert load_model(dumped, [GridSearchCV]).pre_dispatch == "3 * n_jobs + 1"


def test_a_file_that_would_be_shared_out_without_end_is_refused() -> None:
    """Nodes of skops may stand for others: thirty lists of two lists each are a billion."""
    schema: dict[str, Any] = node("builtins", "list", "ListNode", content=[])
    for number in range(2, 32):
        stub = {key: schema[key] for key in schema if key != "content"} | {"content": []}
        schema = node("builtins", "list", "ListNode", content=[schema, stub]) | {"__id__": number}
    assert len(load_model(skops_file(schema), ())) == 2


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


def test_a_search_tree_is_charged_before_it_is_made() -> None:
    # A row of one byte in a file is a row of seventy in a tree.
    rows = np.zeros((2_000_000, 1))
    assert tree_bytes((rows,)) > 2**27
    assert tree_bytes((rows[:1000],)) < 2**16
    assert tree_bytes(()) == tree_bytes(None) == tree_bytes(("no rows",)) == 0
    near = KNeighborsRegressor(algorithm="kd_tree").fit(np.arange(50.0)[:, None], np.arange(50.0))
    dumped = dump_model(near)
    assert load_model(dumped, ()).predict([[7.2]]) == near.predict([[7.2]])
    with patch.object(compiled, "_TREE_BYTES", 10**8), pytest.raises(PersistenceError, match="than its size"):
        load_model(dumped, ())


def test_a_text_is_no_number_however_wide_it_is() -> None:
    dumped = dump_model(Ridge(alpha=np.float64(1.0)).fit(X, y))
    wide = io.BytesIO()
    np.save(wide, np.array("7" * 100_000))
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(dumped)) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            is_number = name.endswith(".npy") and np.load(io.BytesIO(content)).ndim == 0
            new.writestr(name, wide.getvalue() if is_number else content)
    assert load_model(dumped, ()).alpha == 1.0
    with pytest.raises(PersistenceError, match="a number of the kind"):
        load_model(changed.getvalue(), ())
