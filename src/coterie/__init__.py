"""coterie: with whom should I learn?

Many learners each hold a small dataset over the same predictors. coterie clusters them by the
relation between X and y that their data show. The learners exchange fitted models and losses once. Each then
predicts with its coterie, and learns whether that pays. The method is Select-Exchange-Cluster by Ye, Ghanadan
and Ding.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from coterie._version import __version__ as __version__

if TYPE_CHECKING:
    from coterie.classifier import CoterieClassifier as CoterieClassifier
    from coterie.collaboration.forms import collaborate as collaborate
    from coterie.encoding import TableEncoder as TableEncoder
    from coterie.fit.out_of_core import RowSource as RowSource
    from coterie.method.cluster import cluster_learners as cluster_learners
    from coterie.method.exchange import cross_evaluate as cross_evaluate
    from coterie.method.select import select_models as select_models
    from coterie.persistence import load as load
    from coterie.persistence import save as save
    from coterie.regressor import CoterieRegressor as CoterieRegressor
    from coterie.report import Report as Report
    from coterie.rows.learners import stack_learners as stack_learners
    from coterie.rows.outside import OutsideFitWarning as OutsideFitWarning

# A name is imported when it is first used: `coterie --help` need not wait for scikit-learn.
_MODULES = {
    "CoterieClassifier": "coterie.classifier",
    "CoterieRegressor": "coterie.regressor",
    "OutsideFitWarning": "coterie.rows.outside",
    "Report": "coterie.report",
    "RowSource": "coterie.fit.out_of_core",
    "TableEncoder": "coterie.encoding",
    "cluster_learners": "coterie.method.cluster",
    "collaborate": "coterie.collaboration.forms",
    "cross_evaluate": "coterie.method.exchange",
    "load": "coterie.persistence",
    "save": "coterie.persistence",
    "select_models": "coterie.method.select",
    "stack_learners": "coterie.rows.learners",
}

__all__ = [*_MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module 'coterie' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names beside what has been imported."""
    return sorted({*globals(), *_MODULES})
