"""What must work wherever coterie was installed with nothing but its core: `python packaging/smoke.py`.

It runs outside a clone, in an environment that has none of the extras.
"""

import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

import coterie
from coterie import CoterieClassifier, CoterieRegressor
from coterie.datasets import make_linear_learners, make_logistic_learners


def main() -> None:
    """Fit, predict, save and load numbers and classes."""
    assert coterie.__version__ == version("coterie")
    assert (Path(coterie.__file__).parent / "py.typed").exists()
    data = make_linear_learners(n_learners=12, n_truths=3, random_state=0)
    model = CoterieRegressor(candidates="linear").fit(data.X, data.y, groups=data.groups)
    assert model.n_clusters_ == 3, model.n_clusters_
    classes = make_logistic_learners(n_learners=8, n_truths=2, n_rows=80, random_state=0)
    classifier = CoterieClassifier(candidates="linear").fit(classes.X, classes.y, groups=classes.groups)
    with tempfile.TemporaryDirectory() as folder:
        for fitted, rows in ((model, data), (classifier, classes)):
            path = Path(folder) / "model.coterie"
            coterie.save(fitted, path)
            again = coterie.load(path).predict(rows.X, groups=rows.groups)
            assert np.array_equal(again, fitted.predict(rows.X, groups=rows.groups))
    print(f"coterie {coterie.__version__} works")


if __name__ == "__main__":
    main()
