"""What a parameter of a loaded object may be, by its name, and how many fits all of them may ask for.

Scikit-learn uses one name for one thing. So a rule for a name holds for every type that has the parameter,
and for every search grid that sets it. A name without a rule takes data and objects of the list.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from coterie.persistence import rules
from coterie.persistence.rules import Rule, Sizes, count, is_plain, numbers, real, rules_of

# Models that people fit stay far below these. Beyond them a fit takes days, or all memory.
MOST = 1_000_000
MOST_FITS = 1_000_000
MOST_COLUMNS = 100_000
MOST_UNITS = 10_000
_CORES = os.cpu_count() or 1

_CALLABLE = (FunctionType, BuiltinFunctionType, MethodType, np.ufunc, partial)
FUNCTIONS = (
    "sklearn.feature_selection._mutual_info.mutual_info_regression",
    "sklearn.feature_selection._univariate_selection.f_regression",
    "sklearn.feature_selection._univariate_selection.r_regression",
    "sklearn.utils.validation.check_array",
)
# joblib hands this text to eval.
_DISPATCH = re.compile(r"all|\d{1,6}|(\d{1,3} ?\* ?)?n_jobs", re.ASCII)
_IMPORTANCE = re.compile(r"auto|([A-Za-z]\w*\.)*(coef_|feature_importances_)", re.ASCII)


def _is_listed_function(value: Any) -> bool:
    """Tell a function of our list, which only some parameters take, from one that the user trusts."""
    named = isinstance(value, FunctionType) and f"{value.__module__}.{value.__name__}" in FUNCTIONS
    return named or isinstance(value, np.ufunc)


def setting(value: Any, sizes: Sizes) -> bool:
    """Let data, objects of the list, and lists and dicts of both pass; no function of the list."""
    if isinstance(value, str):
        return rules.text()(value, sizes)
    if is_plain(value):
        return True
    if isinstance(value, dict):
        return all(setting(entry, sizes) for entry in value.values())
    if isinstance(value, (list, tuple, set)):
        return all(setting(entry, sizes) for entry in value)
    return not _is_listed_function(value)


def function(value: Any, sizes: Sizes) -> bool:
    """Let a function pass: only those of the list, or of the user, can have been built."""
    return isinstance(value, _CALLABLE)


def _whole(value: Any) -> int:
    """Return a number that counts something, and nought for anything else."""
    return int(value) if isinstance(value, (int, np.integer)) else 0


def _matches(pattern: re.Pattern[str]) -> Rule:
    """Return the rule for text that a pattern matches as a whole."""

    def rule(value: Any, sizes: Sizes) -> bool:
        return isinstance(value, str) and bool(pattern.fullmatch(value))

    return rule


def _capped(most: float) -> Rule:
    """Let a setting pass whose numbers stay below a bound."""

    def rule(value: Any, sizes: Sizes) -> bool:
        return setting(value, sizes) and all(abs(number) <= most for number in numbers(value))

    return rule


def _is_short(value: Any, sizes: Sizes) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and len(value) <= MOST_UNITS


def _few(value: Any, sizes: Sizes) -> bool:
    """Let folds or penalties pass, or how many of them there shall be."""
    return count(MOST_UNITS)(value, sizes) if _whole(value) else setting(value, sizes)


def _is_grid(value: Any, sizes: Sizes) -> bool:
    """Let a search grid pass if each of its values may be set: grids reach parameters of parameters."""
    if isinstance(value, (list, tuple)):
        return all(_is_grid(entry, sizes) for entry in value)
    return isinstance(value, dict) and all(
        isinstance(path, str)
        and isinstance(values, (list, tuple, np.ndarray))
        and all(may_be(path.rpartition("__")[2], entry, sizes) for entry in _entries(values))
        for path, values in value.items()
    )


def _entries(values: Any) -> list[Any]:
    return list(values.ravel()) if isinstance(values, np.ndarray) else list(values)


# The largest numbers that settings may hold, by the settings' names.
_CAPS: dict[int, str] = {
    10: "degree",
    255: "max_bins",
    1000: "n_init n_restarts_optimizer",
    10_000: "hidden_layer_sizes n_bins n_splits",
    100_000: "max_leaf_nodes n_components n_estimators n_quantiles",
    MOST: "batch_size gap iterated_power k leaf_size step subsample",
}
_NAMED: dict[str, Rule] = {"few": _few, "function": function, "grid": _is_grid}
# None passes everywhere.
RULES: dict[str, Rule] = {
    **rules_of("alphas: few, cv: few, func: function, inverse_func: function, score_func: function", _NAMED),
    **rules_of("inv_kw_args: table none, kw_args: table none, memory: none, param_grid: grid", _NAMED),
    **rules_of("kernel_params: table real, metric_params: table real, param_distributions: grid", _NAMED),
    **rules_of("solver_options: table real, verbose_feature_names_out: flag"),
    "importance_getter": rules.either(_matches(_IMPORTANCE), function),
    "length_scale": rules.either(real, rules.each(real), _is_short),
    "n_jobs": count(_CORES, -_CORES),
    "pre_dispatch": rules.either(count(MOST), _matches(_DISPATCH)),
    "stack_method": rules.text("auto", "predict"),
    "verbose": _capped(0),
    **{name: _capped(most) for most, names in _CAPS.items() for name in names.split()},
}
_COUNTED = _capped(MOST)


def may_be(name: str, value: Any, sizes: Sizes) -> bool:
    """Tell whether a parameter, named without the steps before it, may have a value."""
    # scikit-learn names what it counts by these prefixes, parameters to come included.
    counted = name.startswith(("n_", "max_")) and name != "max_skips"
    return rules.maybe(RULES.get(name, _COUNTED if counted else setting))(value, sizes)


def cleaned(attributes: dict[str, Any]) -> dict[str, Any]:
    """Take out what belongs to the machine where the file was made: its cache folder, cores and terminal."""
    kept = dict(attributes)
    if "verbose" in kept:
        # It would print names of steps and values of grids, which may steer a terminal.
        kept["verbose"] = False
    if isinstance(kept.get("memory"), str):
        kept["memory"] = None
    if abs(_whole(kept.get("n_jobs"))) > _CORES:
        kept["n_jobs"] = -1
    return kept


def _grids(value: Any) -> list[dict[str, Any]]:
    return [value] if isinstance(value, dict) else list(value)


def _combinations(grid: dict[str, Any]) -> int:
    return math.prod(max(1, len(values)) for values in grid.values())


def _held(value: Any) -> Iterator[Any]:
    """Give out the objects in a parameter, however deep in lists."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for entry in value:
            yield from _held(entry)
    elif hasattr(value, "__dict__") and not isinstance(value, (type, *_CALLABLE)):
        yield value


def _times(model: Any, held: dict[str, Any]) -> int:
    """Return how many models fitting this one fits: folds times rounds."""
    folds = _whole(held.get("cv")) or _whole(getattr(held.get("cv"), "n_splits", 5 if "cv" in held else 1))
    names = ["n_estimators", "n_init", "n_restarts_optimizer"]
    if type(model).__name__ in ("BoostedTrees", "HistGradientBoostingRegressor"):
        names.append("max_iter")
    if held.get("param_distributions"):
        names.append("n_iter")
    rounds = math.prod(max(1, _whole(held.get(name))) for name in names)
    if held.get("param_grid"):
        rounds *= sum(map(_combinations, _grids(held["param_grid"])))
    return max(1, folds) * rounds


def _opened(value: Any, largest: dict[str, int]) -> Iterator[tuple[Any, dict[str, Any], dict[str, int]]]:
    """Give out the candidates in a value, their parameters, and the largest counts that grids set in them."""
    for model in _held(value):
        held = dict(vars(model))
        for name in largest.keys() & held.keys():
            held[name] = max(_whole(held[name]), largest[name])
        raised = dict(largest)
        for grid in _grids(held.get("param_grid") or held.get("param_distributions") or {}):
            for path, values in grid.items():
                name = path.rpartition("__")[2]
                most = max(map(_whole, _entries(values)), default=0)
                if most > raised.get(name, 0):
                    raised[name] = most
        yield model, {name: part for name, part in held.items() if not name.endswith("_")}, raised


def n_fits(value: Any, largest: dict[str, int] | None = None) -> int:
    """Count how often something is fitted when the candidates in a value are: trees, folds, grid points.

    This is an upper bound, roughly. ``largest`` are the largest counts that a grid around the value sets.
    """
    return sum(
        _times(model, held) * max(1, sum(n_fits(part, raised) for part in held.values()))
        for model, held, raised in _opened(value, largest or {})
    )


def n_columns(value: Any, n_features: int, largest: dict[str, int] | None = None) -> int:
    """Count the columns that polynomials of candidates make, of the candidate that makes most.

    ``largest`` are the largest counts that a grid around the value sets.
    """
    result = [n_features]
    for model, held, raised in _opened(value, largest or {}):
        if type(model).__name__ == "PolynomialFeatures":
            degree = int(max(numbers(held.get("degree")), default=0))
            result.append(math.comb(n_features + degree, degree))
        result.extend(n_columns(part, n_features, raised) for part in held.values())
    return max(result)
