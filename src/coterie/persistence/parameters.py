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
# A number in a setting, such as a number of leaves.
MAX_SETTING = 1_000_000
# Models that fitting one model fits: trees, folds and grid points multiply.
MAX_FITS = 1_000_000
MAX_COLUMNS = 100_000
# Units of a network's layer, entries of a list, folds.
MAX_UNITS = 10_000
_CORES = os.cpu_count() or 1

# Types of what can be called without being a model.
_CALLABLE = (FunctionType, BuiltinFunctionType, MethodType, np.ufunc, partial)
# Functions that a file may name, beside ufuncs: they compute scores or check a table, and do nothing else.
FUNCTIONS = (
    "sklearn.feature_selection._mutual_info.mutual_info_regression",
    "sklearn.feature_selection._univariate_selection.f_regression",
    "sklearn.feature_selection._univariate_selection.r_regression",
    "sklearn.utils.validation.check_array",
)
# joblib hands the text of pre_dispatch to eval, so only a number, or n_jobs times one, may stand there.
_DISPATCH = re.compile(r"all|\d{1,6}|(\d{1,3} ?\* ?)?n_jobs", re.ASCII)
# A path of attributes that scikit-learn follows on a model: no more than to its coefficients or importances.
_IMPORTANCE = re.compile(r"auto|([A-Za-z]\w*\.)*(coef_|feature_importances_)", re.ASCII)


def _is_listed_function(value: Any) -> bool:
    """Tell whether a value is one of our `FUNCTIONS` or a ufunc of NumPy, not one that the user trusts.

    Only some parameters take such functions; elsewhere a file could make code call what it was not written
    for.
    """
    is_on_list = isinstance(value, FunctionType) and f"{value.__module__}.{value.__name__}" in FUNCTIONS
    return is_on_list or isinstance(value, np.ufunc)


def setting(value: Any, sizes: Sizes) -> bool:
    """Let an ordinary value of a parameter pass: data, an object that was built, or lists and dicts of both.

    A file may be hostile, so that only types of `coterie.persistence.allowed` (or trusted by the user) were
    built; these pass here. Functions of `FUNCTIONS` do not: the few parameters that call one follow
    `function`. Long texts are refused. ``sizes`` is not used: every rule takes it.
    """
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
    """Return an integer as it is, and nought for anything else: what is no number counts nothing."""
    return int(value) if isinstance(value, (int, np.integer)) else 0


def _matches(pattern: re.Pattern[str]) -> Rule:
    """Return the rule for text that a pattern matches as a whole."""

    def rule(value: Any, sizes: Sizes) -> bool:
        return isinstance(value, str) and bool(pattern.fullmatch(value))

    return rule


def _capped(largest: float) -> Rule:
    """Return the rule for a setting whose numbers are at most ``largest`` in size."""

    def rule(value: Any, sizes: Sizes) -> bool:
        return setting(value, sizes) and all(abs(number) <= largest for number in numbers(value))

    return rule


def _is_short(value: Any, sizes: Sizes) -> bool:
    """Let a one-dimensional array of at most `MAX_UNITS` entries pass."""
    return isinstance(value, np.ndarray) and value.ndim == 1 and len(value) <= MAX_UNITS


def _few(value: Any, sizes: Sizes) -> bool:
    """Let a number of folds or penalties pass, or a splitter (it makes folds) or list of them."""
    return count(MAX_UNITS)(value, sizes) if _whole(value) else setting(value, sizes)


def _is_grid(value: Any, sizes: Sizes) -> bool:
    """Let a search grid pass if each parameter in it may have each of its values.

    A grid is a dict of lists by the parameter's path, such as "ridge__alpha", or a list of such dicts. Its
    values reach parameters of parameters, so they follow the same rules: a grid must not be a way around
    them.
    """
    if isinstance(value, (list, tuple)):
        return all(_is_grid(entry, sizes) for entry in value)
    return isinstance(value, dict) and all(
        isinstance(path, str)
        and isinstance(values, (list, tuple, np.ndarray))
        and all(may_be(path.rpartition("__")[2], entry, sizes) for entry in _entries(values))
        for path, values in value.items()
    )


def _entries(values: Any) -> list[Any]:
    """Return the entries of an array or another sequence as a list."""
    return list(values.ravel()) if isinstance(values, np.ndarray) else list(values)


# The largest numbers that settings may hold, by the settings' names.
_CAPS: dict[int, str] = {
    10: "degree",
    255: "max_bins",
    1000: "n_init n_restarts_optimizer",
    10_000: "hidden_layer_sizes n_bins n_splits",
    100_000: "max_leaf_nodes n_components n_estimators n_quantiles",
    MAX_SETTING: "batch_size gap iterated_power k leaf_size step subsample",
}
_NAMED: dict[str, Rule] = {"few": _few, "function": function, "grid": _is_grid}
# The rules by the parameter's name; `may_be` lets None pass everywhere.
RULES: dict[str, Rule] = {
    **rules_of("alphas: few, cv: few, func: function, inverse_func: function, score_func: function", _NAMED),
    **rules_of("inv_kw_args: table none, kw_args: table none, memory: none, param_grid: grid", _NAMED),
    **rules_of("kernel_params: table real, metric_params: table real, param_distributions: grid", _NAMED),
    **rules_of("solver_options: table real, verbose_feature_names_out: flag"),
    "importance_getter": rules.either(_matches(_IMPORTANCE), function),
    "length_scale": rules.either(real, rules.each(real), _is_short),
    "n_jobs": count(_CORES, -_CORES),
    "pre_dispatch": rules.either(count(MAX_SETTING), _matches(_DISPATCH)),
    "stack_method": rules.text("auto", "predict"),
    "verbose": _capped(0),
    **{name: _capped(most) for most, names in _CAPS.items() for name in names.split()},
}
_COUNTED = _capped(MAX_SETTING)


def may_be(name: str, value: Any, sizes: Sizes) -> bool:
    """Tell whether a parameter may have a value; ``name`` is without steps: ``alpha`` of ``ridge__alpha``.

    A name in `RULES` has its own rule, a count is bounded, and anything else follows `setting`. None passes.
    """
    # scikit-learn names what it counts by these prefixes, parameters to come included.
    is_a_count = name.startswith(("n_", "max_")) and name != "max_skips"
    return rules.maybe(RULES.get(name, _COUNTED if is_a_count else setting))(value, sizes)


def cleaned(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of attributes without what belongs to the machine where the file was made.

    Its cache folder (``memory``) and ``verbose`` are switched off, and ``n_jobs`` is at most the cores here.
    """
    own_attributes = dict(attributes)
    if "verbose" in own_attributes:
        # It would print names of steps and values of grids, which may steer a terminal.
        own_attributes["verbose"] = False
    if isinstance(own_attributes.get("memory"), str):
        own_attributes["memory"] = None
    if abs(_whole(own_attributes.get("n_jobs"))) > _CORES:
        own_attributes["n_jobs"] = -1
    return own_attributes


def _grids(value: Any) -> list[dict[str, Any]]:
    """Return a search grid as a list of dicts."""
    return [value] if isinstance(value, dict) else list(value)


def _combinations(grid: dict[str, Any]) -> int:
    """Return how many settings a grid has: the product of the lengths of its lists."""
    return math.prod(max(1, len(values)) for values in grid.values())


def _held(value: Any) -> Iterator[Any]:
    """Give out the objects in a parameter, also those in lists and dicts; no types and no functions."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for entry in value:
            yield from _held(entry)
    elif hasattr(value, "__dict__") and not isinstance(value, (type, *_CALLABLE)):
        yield value


def _times(model: Any, parameters: dict[str, Any]) -> int:
    """Return how many models one fit of a model fits: folds times rounds, an upper bound.

    Rounds are trees, restarts, iterations and points of search grids, all multiplied. ``parameters`` are the
    model's attributes by name. Without a number of folds, ``cv`` counts as five, the default of scikit-learn.
    """
    n_folds = _whole(parameters.get("cv")) or _whole(
        getattr(parameters.get("cv"), "n_splits", 5 if "cv" in parameters else 1)
    )
    count_names = ["n_estimators", "n_init", "n_restarts_optimizer"]
    if type(model).__name__ in ("BoostedTrees", "HistGradientBoostingRegressor"):
        count_names.append("max_iter")
    if parameters.get("param_distributions"):
        count_names.append("n_iter")
    fits_per_fold = math.prod(max(1, _whole(parameters.get(name))) for name in count_names)
    if parameters.get("param_grid"):
        fits_per_fold *= sum(map(_combinations, _grids(parameters["param_grid"])))
    return max(1, n_folds) * fits_per_fold


def _opened(value: Any, largest: dict[str, int]) -> Iterator[tuple[Any, dict[str, Any], dict[str, int]]]:
    """Give out (model, parameters, largest counts that grids set inside it) for each model in a value.

    A search grid may set counts of models deep inside, so the largest are handed down by name. ``largest``
    are those of the grids around the value: the parameters already have them where they are larger.
    """
    for model in _held(value):
        parameters = dict(vars(model))
        for name in largest.keys() & parameters.keys():
            parameters[name] = max(_whole(parameters[name]), largest[name])
        inner_largest = dict(largest)
        for grid in _grids(parameters.get("param_grid") or parameters.get("param_distributions") or {}):
            for parameter_path, values in grid.items():
                name = parameter_path.rpartition("__")[2]
                largest_in_grid = max(map(_whole, _entries(values)), default=0)
                if largest_in_grid > inner_largest.get(name, 0):
                    inner_largest[name] = largest_in_grid
        yield (
            model,
            {name: part for name, part in parameters.items() if not name.endswith("_")},
            inner_largest,
        )


def n_fits(value: Any, largest: dict[str, int] | None = None) -> int:
    """Return an upper bound, roughly, of how often something is fitted when the candidates in a value are.

    Trees, folds and grid points of models inside models multiply, so a small file could ask for years of
    work. ``largest`` are the largest counts, by parameter, that a grid around the value sets.
    """
    return sum(
        _times(model, parameters) * max(1, sum(n_fits(part, inner_largest) for part in parameters.values()))
        for model, parameters, inner_largest in _opened(value, largest or {})
    )


def n_columns(value: Any, n_features: int, largest: dict[str, int] | None = None) -> int:
    """Return the width of the widest table that polynomials of the candidates in a value make.

    Without any, it is ``n_features``. Such tables could fill all memory. ``largest`` are the largest counts,
    by parameter, that a grid around the value sets.
    """
    widths = [n_features]
    for model, parameters, inner_largest in _opened(value, largest or {}):
        if type(model).__name__ == "PolynomialFeatures":
            degree = int(max(numbers(parameters.get("degree")), default=0))
            widths.append(math.comb(n_features + degree, degree))
        widths.extend(n_columns(part, n_features, inner_largest) for part in parameters.values())
    return max(widths)
