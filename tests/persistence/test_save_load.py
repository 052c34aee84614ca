"""A loaded model is the model that was saved."""

from __future__ import annotations

import inspect
import io
import re
import subprocess
import sys
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from coterie import CoterieRegressor
from coterie.datasets import make_linear_learners, make_stress
from coterie.kernels.affine import AffineLosses
from coterie.kernels.losses import DenseTiles
from coterie.persistence import PersistenceError, load, save


class Doubled(LinearRegression):
    """A candidate that coterie does not know."""


class Stays:
    """An engine of the user's own."""

    def map(self, function: Any, jobs: Any) -> list[Any]:
        return [function(job) for job in jobs]


def through(model: CoterieRegressor, folder: Path, **options: Any) -> CoterieRegressor:
    path = folder / "model.coterie"
    save(model, path, **options)
    return load(path)


def assert_same_fit(one: CoterieRegressor, other: CoterieRegressor) -> None:
    np.testing.assert_array_equal(one.learner_ids_, other.learner_ids_)
    assert one.learner_ids_.dtype.kind == other.learner_ids_.dtype.kind
    assert list(map(type, one.learner_ids_.tolist())) == list(map(type, other.learner_ids_.tolist()))
    np.testing.assert_array_equal(one.learner_labels_, other.learner_labels_)
    assert one.learner_labels_.dtype == other.learner_labels_.dtype
    for name in ("n_clusters_", "min_rows_", "n_features_in_"):
        assert getattr(one, name) == getattr(other, name)
        assert type(getattr(other, name)) is int
    assert one.record_.seed == other.record_.seed
    weight_rows = (
        [(new.learner_id, new.weight_row) for new in model.record_.newcomers] for model in (one, other)
    )
    assert next(weight_rows) == next(weight_rows)
    assert list(one.gains_) == list(other.gains_)
    for name, column in one.gains_.items():
        np.testing.assert_array_equal(column, other.gains_[name])
    np.testing.assert_allclose(one.exchange_.losses, other.exchange_.losses, rtol=1e-12, atol=0)
    np.testing.assert_allclose(
        one.exchange_.dissimilarity, other.exchange_.dissimilarity, rtol=1e-12, atol=1e-12
    )
    for name in ("labels", "similarity", "eigenvalues", "embedding"):
        np.testing.assert_array_equal(getattr(one.partition_, name), getattr(other.partition_, name))
    for name in ("scale", "rule", "clear", "notes", "n_clusters"):
        assert getattr(one.partition_, name) == getattr(other.partition_, name)
    assert one.partition_.curves.keys() == other.partition_.curves.keys()
    for rule, curve in one.partition_.curves.items():
        again = other.partition_.curves[rule]
        np.testing.assert_array_equal(curve.values, again.values)
        np.testing.assert_array_equal(curve.n_clusters, again.n_clusters)
        assert (curve.rule, curve.chosen, curve.criterion) == (again.rule, again.chosen, again.criterion)
        assert (curve.spread is None) == (again.spread is None)
    assert (one.admission_ is None) == (other.admission_ is None)
    for name in ("cluster_fit_", "stability_", *(["admission_"] if one.admission_ is not None else [])):
        for field in fields(getattr(one, name)):
            value, again = (getattr(getattr(model, name), field.name) for model in (one, other))
            np.testing.assert_array_equal(value, again)
    for name in ("errors", "held_out_errors", "n_rows", "noise", "clips"):
        np.testing.assert_array_equal(getattr(one.selection_, name), getattr(other.selection_, name))
    assert one.selection_.names == other.selection_.names
    assert one.selection_.candidate_errors == other.selection_.candidate_errors
    for mine, theirs in zip(one.selection_.residuals, other.selection_.residuals, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    for mine, theirs in zip(one.selection_.folds, other.selection_.folds, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def newcomers() -> tuple[Any, Any, Any]:
    extra = make_linear_learners(n_learners=3, n_truths=2, n_rows=[20, 20, 5], n_features=3, random_state=1)
    return extra.X, extra.y, np.char.add("new ", extra.groups)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"collaboration": "average"},
        {"collaboration": "local", "refine": None},
        {"collaboration": "global"},
        {"standardize": "learner"},
        {"robust": True},
        {"n_clusters": "auto", "max_clusters": 3},
        {"candidates": {"mine": Ridge(), "scaled": make_pipeline(StandardScaler(), LinearRegression())}},
        {"candidates": ["lr", Ridge(2.0)], "splitter": KFold(3, shuffle=True, random_state=0)},
        {"random_state": np.random.RandomState(3), "scale": np.float64(2.0)},
        {"order": None},
    ],
    ids=[
        "plain",
        "average",
        "local",
        "global",
        "standardize",
        "robust",
        "auto",
        "dict",
        "splitter",
        "random",
        "order",
    ],
)
def test_a_loaded_model_is_the_one_that_was_saved(options: dict[str, Any], data: Any, tmp_path: Path) -> None:
    given = {"candidates": ["lr", "ridge"], "n_clusters": 2, **options}
    model = CoterieRegressor(**given).fit(data.X, data.y, groups=data.groups)
    loaded = through(model, tmp_path)
    assert_same_fit(model, loaded)
    for rows in (slice(None), slice(3, 4)):
        expected = model.predict(data.X[rows], groups=data.groups[rows])
        np.testing.assert_array_equal(loaded.predict(data.X[rows], groups=data.groups[rows]), expected)
    X, y, groups = newcomers()
    np.testing.assert_array_equal(model.admit(X, y, groups=groups), loaded.admit(X, y, groups=groups))
    np.testing.assert_array_equal(model.predict(X, groups=groups), loaded.predict(X, groups=groups))
    # Newcomers are saved too.
    assert_same_fit(model, through(loaded, tmp_path))
    fresh = clone(loaded)
    assert fresh.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    if not options:
        assert repr(fresh) == repr(clone(model))
        again = fresh.fit(data.X, data.y, groups=data.groups)
        np.testing.assert_array_equal(again.learner_labels_, model.learner_labels_[: len(again.learner_ids_)])


def test_a_newcomer_whom_no_cluster_fits_comes_back(data: Any, tmp_path: Path) -> None:
    model = CoterieRegressor(candidates="lr", n_clusters=2).fit(data.X, data.y, groups=data.groups)
    X, y, groups = newcomers()
    labels = model.admit(X, 50 - 7 * y, groups=groups)
    assert (labels == -1).any()
    loaded = through(model, tmp_path)
    assert_same_fit(model, loaded)
    np.testing.assert_array_equal(model.predict(X, groups=groups), loaded.predict(X, groups=groups))


def test_a_model_without_a_bootstrap_comes_back(data: Any, tmp_path: Path) -> None:
    model = CoterieRegressor(candidates="lr", n_clusters=2, n_bootstrap=0)
    model.fit(data.X, data.y, groups=data.groups)
    loaded = through(model, tmp_path)
    assert loaded.stability_ is None
    np.testing.assert_array_equal(loaded.cluster_fit_.losses, model.cluster_fit_.losses)


def test_one_learner_without_groups_comes_back(data: Any, tmp_path: Path) -> None:
    model = CoterieRegressor(candidates="lr").fit(data.X, data.y, groups=[0] * len(data.y))
    loaded = through(model, tmp_path)
    assert_same_fit(model, loaded)
    np.testing.assert_array_equal(loaded.predict(data.X), model.predict(data.X))


def test_every_family_predicts_to_the_last_bit(data: Any, tmp_path: Path) -> None:
    families = {
        "rf": TransformedTargetRegressor(RandomForestRegressor(5), transformer=StandardScaler()),
        "gb": GradientBoostingRegressor(n_estimators=5),
        "knn": "knn",
        "svr": "svr",
        "nn": MLPRegressor(hidden_layer_sizes=(4,), solver="lbfgs", max_iter=20),
        "ball": KNeighborsRegressor(3, algorithm="ball_tree", p=1),
        "hist": HistGradientBoostingRegressor(max_iter=1, max_leaf_nodes=4),
        "gp": GaussianProcessRegressor(RBF() + WhiteKernel(), optimizer=None),
    }
    ids = data.learner_ids.tolist()
    extra = make_linear_learners(n_learners=2, n_truths=2, n_rows=30, n_features=3, random_state=2)
    X, y = np.vstack([data.X, extra.X]), np.r_[data.y, extra.y]
    groups = np.r_[data.groups, np.char.add("extra ", extra.groups)]
    everybody = [*ids, *(f"extra {i}" for i in extra.learner_ids)]
    candidates = {i: {name: family} for i, (name, family) in zip(everybody, families.items(), strict=True)}
    model = CoterieRegressor(candidates=candidates, n_clusters=2, refine=None, collaboration="local")
    model.fit(X, y, groups=groups)
    loaded = through(model, tmp_path)
    assert set(loaded.selection_.names) == set(families)
    assert_same_fit(model, loaded)
    np.testing.assert_array_equal(loaded.predict(X, groups=groups), model.predict(X, groups=groups))
    assert list(loaded.candidates) == everybody


def test_small_learners_weights_and_columns_come_back(data: Any, tmp_path: Path) -> None:
    few = np.flatnonzero(data.groups == data.learner_ids[2])[5:]
    kept = np.setdiff1d(np.arange(len(data.y)), few)
    table = pd.DataFrame(data.X, columns=["a", "b", "c"]).assign(site=data.groups).iloc[kept]
    weights = np.linspace(1, 2, len(kept))
    model = CoterieRegressor(candidates="lr", n_clusters=2, group_column="site", standardize="learner")
    model.fit(table, data.y[kept], sample_weight=weights)
    assert len(model.record_.newcomers) == 1
    loaded = through(model, tmp_path)
    assert_same_fit(model, loaded)
    np.testing.assert_array_equal(loaded.feature_names_in_, ["a", "b", "c"])
    np.testing.assert_array_equal(loaded.record_.learners.weights, model.record_.learners.weights)
    np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(table.rename(columns={"a": "z"}))


MIXED = np.array([1, "north", 2.5, True, "1", -3], dtype=object)


@pytest.mark.parametrize(
    "ids",
    [
        np.array([10, 2, 33, 4, 5, 6]),
        np.array([10, 2, 33, 4, 5, 6], dtype=np.uint8),
        np.array([0.5, 1.5, 2.5, 1e300, -4.0, np.inf]),
        np.array(["a", "ä", "\u65e5\u672c", "line\nbreak", " ", '"']),
        np.array(
            ["2020-01-01", "2021-01-01", "2022-05-05", "1969-01-01", "2000-01-01", "1999-01-01"], "M8[D]"
        ),
        np.arange(6).astype("M8[ns]"),
        np.arange(6).astype("M8[us]"),
        MIXED,
        np.array([np.int64(4), np.str_("x"), np.float64(0.5), 7, 8, 9], dtype=object),
    ],
    ids=lambda ids: f"{ids.dtype}-{ids[0]}",
)
def test_ids_keep_their_type(ids: Any, data: Any, tmp_path: Path) -> None:
    groups = ids[np.searchsorted(data.learner_ids, data.groups)]
    # One learner is small, so that ids also stand where newcomers are remembered.
    keep = np.flatnonzero((groups != ids[5]) | (np.arange(len(groups)) % 10 == 0))
    model = CoterieRegressor(candidates="lr", n_clusters=2).fit(
        data.X[keep], data.y[keep], groups=groups[keep]
    )
    loaded = through(model, tmp_path)
    np.testing.assert_array_equal(loaded.learner_ids_, model.learner_ids_)
    assert loaded.learner_ids_.dtype.kind == ids.dtype.kind
    plain = [i.item() if isinstance(i, np.generic) else i for i in model.learner_ids_.tolist()]
    assert list(map(type, loaded.learner_ids_.tolist())) == list(map(type, plain))
    np.testing.assert_array_equal(loaded.predict(data.X, groups=groups), model.predict(data.X, groups=groups))


def test_other_ids_are_refused_before_anything_is_written(data: Any, tmp_path: Path) -> None:
    places = np.searchsorted(data.learner_ids, data.groups)
    for ids in ([(i, "x") for i in range(6)], [complex(i) for i in range(6)]):
        values = np.empty(6, dtype=object)
        values[:] = ids
        model = CoterieRegressor(candidates="lr", n_clusters=2).fit(data.X, data.y, groups=values[places])
        with pytest.raises(
            PersistenceError, match=r"id is of type (tuple|complex), which a file cannot hold"
        ):
            save(model, tmp_path / "model.coterie")
    assert list(tmp_path.iterdir()) == []


def test_affine_losses_are_computed_again_and_not_stored(data: Any, tmp_path: Path) -> None:
    model = CoterieRegressor(candidates=["lr", "lasso"], n_clusters=2, standardize="learner")
    model.fit(data.X[::-1], data.y[::-1], groups=data.groups[::-1])
    assert isinstance(model.exchange_.source, AffineLosses)
    loaded = through(model, tmp_path)
    assert isinstance(loaded.exchange_.source, AffineLosses)
    assert_same_fit(model, loaded)
    np.testing.assert_array_equal(model.exchange_.losses, loaded.exchange_.losses)
    without = through(model, tmp_path, rows=False)
    assert isinstance(without.exchange_.source, DenseTiles)
    assert_same_fit(model, without)


def test_fold_models_are_left_out(model: CoterieRegressor, saved: Path) -> None:
    assert all(len(models) for models in model.selection_.fold_models)
    assert load(saved).selection_.fold_models == ((),) * 6


def test_without_rows_the_file_has_none_and_still_predicts(
    model: CoterieRegressor, data: Any, tmp_path: Path
) -> None:
    path, full = tmp_path / "model.coterie", tmp_path / "full.coterie"
    save(model, path, rows=False)
    save(model, full)
    assert path.stat().st_size < full.stat().st_size
    loaded = load(path)
    assert loaded.record_.learners.X.shape == (0, 3)
    assert len(loaded.record_.learners.y) == len(loaded.record_.learners.rows) == 0
    np.testing.assert_array_equal(
        loaded.predict(data.X, groups=data.groups), model.predict(data.X, groups=data.groups)
    )
    # Saved again, with rows asked for, it still has none.
    assert_same_fit(model, through(loaded, tmp_path, rows=True))
    if "without" in inspect.getsource(CoterieRegressor.admit):
        with pytest.raises(ValueError, match=re.escape("saved without")):
            loaded.admit(*newcomers())


def test_an_engine_object_is_not_saved(data: Any, tmp_path: Path) -> None:
    options = {"candidates": "lr", "n_clusters": 2}
    for engine, kept in ((Stays(), None), ("threads", "threads"), (None, None)):
        model = CoterieRegressor(engine=engine, **options).fit(data.X, data.y, groups=data.groups)
        assert through(model, tmp_path).engine == kept


def test_routing_requests_are_left_out(data: Any, tmp_path: Path) -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = CoterieRegressor(candidates="lr", n_clusters=2).set_fit_request(sample_weight=True)
        loaded = through(model.fit(data.X, data.y, groups=data.groups), tmp_path)
    assert "_metadata_request" not in vars(loaded)


def test_types_of_the_user_need_the_users_word(data: Any, tmp_path: Path) -> None:
    model = CoterieRegressor(candidates=[Doubled()], n_clusters=2).fit(data.X, data.y, groups=data.groups)
    path = tmp_path / "model.coterie"
    save(model, path)
    name = f"{Doubled.__module__}.Doubled"
    with pytest.raises(PersistenceError, match=re.escape(f"names {name}, which is not among")) as refusal:
        load(path)
    assert f"load(path, trusted=[{name!r}])" in str(refusal.value)
    for trusted in ([name], [Doubled], Doubled, name):
        assert_same_fit(model, load(path, trusted=trusted))


def test_a_type_that_is_gone_is_named(data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = CoterieRegressor(candidates=[Doubled()], n_clusters=2).fit(data.X, data.y, groups=data.groups)
    path = tmp_path / "model.coterie"
    save(model, path)
    monkeypatch.delitem(globals(), "Doubled")
    with pytest.raises(PersistenceError, match="has no attribute 'Doubled'"):
        load(path, trusted=[f"{__name__}.Doubled"])


def test_another_version_of_scikit_learn_is_mentioned_once(
    model: CoterieRegressor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.coterie"
    with monkeypatch.context() as patch:
        for module in (sklearn, sklearn.base):
            patch.setattr(module, "__version__", "1.0")
        save(model, path)
    with pytest.warns(UserWarning, match="saved with scikit-learn 1.0 and is loaded with") as caught:
        loaded = load(path)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert_same_fit(model, loaded)


def test_what_is_no_fitted_coterie_is_refused(model: CoterieRegressor, tmp_path: Path) -> None:
    path = tmp_path / "model.coterie"
    with pytest.raises(NotFittedError, match="not fitted yet: call fit before"):
        save(CoterieRegressor(), path)
    with pytest.raises(TypeError, match=r"takes a CoterieRegressor or a CoterieClassifier\. Got Ridge"):
        save(Ridge(), path)

    class Mine(CoterieRegressor):
        pass

    with pytest.raises(TypeError, match="Got Mine"):
        save(Mine(), path)
    assert not path.exists()


def test_paths(model: CoterieRegressor, tmp_path: Path) -> None:
    save(model, str(tmp_path / "text.coterie"))
    assert_same_fit(model, load(str(tmp_path / "text.coterie")))
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*nowhere"):
        save(model, tmp_path / "nowhere" / "model.coterie")
    with pytest.raises(FileNotFoundError, match=r"There is no file .*absent"):
        load(tmp_path / "absent.coterie")
    for function in (lambda: save(model, tmp_path), lambda: load(tmp_path)):
        with pytest.raises(IsADirectoryError, match="is a folder"):
            function()


def test_skops_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, coterie.persistence; sys.exit('skops' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_file_tells_neither_when_nor_where(saved: Path) -> None:
    with zipfile.ZipFile(saved) as zipped:
        nested = [name for name in zipped.namelist() if not name.endswith("json")]
        entries = [*zipped.infolist()]
        for name in nested:
            with zipfile.ZipFile(io.BytesIO(zipped.read(name))) as inner:
                entries.extend(inner.infolist())
        everything = b"".join(zipped.read(name) for name in zipped.namelist())
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert str(Path.home()).encode() not in everything
    assert str(saved.parent).encode() not in everything


def test_what_was_found_in_the_order_of_rows_comes_back(tmp_path: Path) -> None:
    data = make_stress("AR(1) noise .8, one truth", 1000)
    mine = np.isin(data.groups, data.learner_ids[:6])
    model = CoterieRegressor("lr", collaboration="local", n_bootstrap=0)
    model.fit(data.X[mine], data.y[mine], groups=data.groups[mine])
    loaded = through(model, tmp_path)
    for name in ("dependent", "in_order", "inflation"):
        assert getattr(loaded.selection_, name) == getattr(model.selection_, name)
    assert loaded.selection_.in_order
    assert loaded.partition_.notes == model.partition_.notes


def test_equal_models_give_equal_files(tmp_path: Path) -> None:
    """Nothing in a file tells where in memory its parts lay; also not in another process."""
    code = (
        "import sys; junk = [object() for _ in range(int(sys.argv[2]))]\n"
        "from coterie import CoterieRegressor, save\n"
        "from coterie.datasets import make_linear_learners\n"
        "d = make_linear_learners(4, n_truths=2, n_rows=20, random_state=0)\n"
        "m = CoterieRegressor(random_state=0, n_bootstrap=2).fit(d.X, d.y, groups=d.groups)\n"
        "save(m, sys.argv[1])\n"
    )
    files = [tmp_path / "one", tmp_path / "two"]
    for path, n in zip(files, (1, 99_999), strict=True):
        subprocess.run([sys.executable, "-c", code, str(path), str(n)], check=True)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_loaded_model_prints_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A step's name may be anything, and scikit-learn prints it while a verbose pipeline is fitted."""
    data = make_linear_learners(4, n_truths=2, n_rows=20, n_features=2, random_state=0)
    steps = Pipeline([("\x1b[31mred", StandardScaler()), ("line", LinearRegression())], verbose=True)
    model = CoterieRegressor([steps], n_bootstrap=0, n_clusters=2).fit(data.X, data.y, groups=data.groups)
    save(model, tmp_path / "m")
    assert "\x1b" in capsys.readouterr().out
    loaded = load(tmp_path / "m")
    loaded.admit(data.X[:20], data.y[:20], groups=["new"] * 20)
    assert capsys.readouterr().out == ""
