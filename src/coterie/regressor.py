"""The scikit-learn face: `CoterieRegressor`, whose ``fit`` is the stages in a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from coterie._arrays import Array
from coterie._options import check_coverage, check_option
from coterie.estimator import CoterieEstimator
from coterie.fit.options import Options
from coterie.fit.out_of_core import RowSource
from coterie.fit.record import USING
from coterie.loss import SQUARED_ERROR, Loss
from coterie.rows.tables import log_response


class CoterieRegressor(RegressorMixin, CoterieEstimator):  # type: ignore[misc]
    """Cluster learners by the relation between X and y in their rows, and let each learn with its cluster.

    Parameters
    ----------
    candidates : str, list, dict or None, default=None
        The models that learners choose from: a preset (``"default"``, ``"linear"``, ``"paper"``), names
        (``"rf"``, ``"knn"``, ``"svr"``, ``"nn"``, ``"gb"``, ``"lasso"``, ``"lars"``, ``"en"``, ``"ridge"``,
        ``"lr"``), regressors (scikit-learn's, or objects with ``fit`` and ``predict``), a list of these,
        a dict of name to regressor, or a mapping of learner id to any of these. None: ``"default"``, which is
        ridge and random forest.
    n_clusters : int or str, default="auto"
        A number, or a rule: ``"held-out"`` (which ``"auto"`` means), ``"gap"``, ``"gap-jump"``,
        ``"eigengap"``, ``"penalty"``, ``"cv"``. Without groups there is one cluster.
    max_clusters : int or None, default=None
        The largest number that a rule looks at. None: 2 sqrt(L), at least 8 and at most 20.
    scale : {"noise", "median"} or float, default="noise"
        The factor a of the similarity exp(-a v).
    refine : {"pooled", "average", "likelihood", None}, default="pooled"
        How clusters predict when learners are moved to the cluster that predicts them best. None: nobody
        is moved, as in the paper. ``"likelihood"``: a mixture of mixed lines labels the learners, and says
        how many clusters there are.
    refine_rounds : int or None, default=None
        How often learners are moved at most. None: 10, and 2 where clusters predict by averages, as sites
        that answer by messages pay a visit for each.
    collaboration : {"auto", "pooled", "average", "local", "global"}, default="auto"
        What a learner predicts with. ``"auto"``: nested coteries, which mix its own model, models of its
        coterie and models of all, weighted by held-out rows. With ``refine="average"`` averages of the
        learners' models take the place of models of pooled rows. The others are one thing for everybody:
        one model on its coterie's rows; the average of its coterie's models; its own; one model on all
        rows.
    nested_folds : int, default=4
        Folds on which ``"auto"`` learns its weights. Each fits the learners' models and the shared ones
        once; a ``splitter`` brings its own.
    robust : bool, default=False
        Clip squared residuals in the exchange, against outlying rows.
    standardize : {"learner", None}, default=None
        ``"learner"`` standardises x and y inside each learner, as the paper's simulations do; undone in
        ``predict``.
    group_column : str, int or None, default=None
        The column of X that holds the learner ids, in ``fit`` and ``predict`` alike. With it the
        estimator works in ``cross_validate``, in a grid search and in a pipeline without routing.
    small_learners : {"admit", "drop", "raise"}, default="admit"
        What happens to learners with fewer than ``min_rows`` rows: they are placed when the clusters
        have been found, left out, or refused. Nested coteries pool the rows of those that are placed.
    min_rows : int or "auto", default="auto"
        Rows that a learner needs to take part in the clustering. ``"auto"``: 2p + 5 where at least half
        of the learners have as many, else 4; then the 200 largest learners take part.
    splitter : scikit-learn splitter or None, default=None
        Holds out rows that are not independent, such as blocks in time. None: random halves, or blocks where
        ``order`` finds that rows depend on each other.
    order : {"auto", None}, default="auto"
        ``"auto"``: test whether neighbouring rows of a learner depend on each other, as rows in time order
        do. If so, blocks are held out in Select, in the rule for the number of clusters and in the folds, and
        a note in ``partition_.notes`` says so. None: rows are taken as independent. A ``splitter`` wins.
    time : str, True or None, default=None
        The column of X with the time of each row, which is no predictor. Each learner's later half of rows is
        held out in blocks, and each block is predicted from the rows before it: errors are those of
        forecasts. True: rows are in time order already. See also ``fit``. A ``splitter`` wins.
    log_target : bool, default=False
        Fit the logarithm of the response, which must be positive. Predictions and intervals are in the unit
        of the response again; predictions are medians then, not means. Errors and gains are of the logarithm.
    n_bootstrap : int, default=100
        How often rows are resampled inside each learner to see how sure its cluster is, and the number of
        clusters; no model is refitted. 0: not at all.
    engine : {None, "threads", "dask"}, a Dask client or an object with ``map``, default=None
        Who runs the work.
    random_state : int, RandomState or None, default=0
        Seed. Each learner's randomness derives from it and from the learner's id.
    n_jobs : int or None, default=None
        Number of threads.
    landmarks : int, "auto" or None, default=None
        Learners with whom everybody exchanges, both ways, in place of everybody with everybody: 2 L m
        evaluations, not L^2, for models without a closed form. ``"auto"``: 120 where there are more than
        1,000 learners. How far that is from the exact clusters, ``partition_.notes`` says of a sample.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where the spectrum of more than 4,000 learners is computed, whose similarities are not stored: a GPU
        where torch finds one, the processor, or the GPU.
    unknown_learners : {"warn", "raise"}, default="warn"
        What ``predict`` does with learners that the fit has not seen. ``"warn"``: they are predicted by what
        all learners share, with a warning. ``"raise"``: they are refused.
    effort : {"full", "fast"}, default="full"
        ``"fast"``: rows are not resampled, and nested coteries learn their weights on at most three folds.
        Where ``candidates`` is None, every learner has a ridge and the trees on pooled rows are few.

    Attributes
    ----------
    learner_ids_ : ndarray of shape (L,)
        The learners, in order of first appearance.
    learner_labels_ : ndarray of shape (L,)
        Cluster of each learner, 0 to K - 1, the largest first.
    n_clusters_ : int
        Number of clusters.
    selection_ : Selection
        What Select found. This and the next three hold the learners that shaped the clusters.
    exchange_ : Exchange
        Losses and dissimilarities.
    partition_ : Partition
        Clusters, spectrum and the curves of all rules.
    collaboration_ : Collaboration
        How each learner predicts.
    gains_ : Gains
        A row per learner: error alone, with its coterie, with all, held out; the gain, the verdict, and
        how sure its cluster is.
    cluster_fit_ : ClusterFit
        How the learners stand towards the clusters: what each cluster loses on each learner, and whether
        it predicts it as well as its own noise allows.
    stability_ : Stability or None
        How often learners keep their cluster and the rule its number when rows are resampled; None where
        ``n_bootstrap`` is 0.
    admission_ : Admission or None
        Where newcomers and small learners were placed, and how surely; None while there are none.
    min_rows_ : int
        Rows that a learner needed to take part in the clustering.
    n_features_in_ : int
        Number of predictors.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the predictors, where X had names.
    encoder_ : TableEncoder or None
        What turned the table of ``fit`` into numbers. None: it held numbers without gaps.
    predictors_ : list of str or None
        Names of the columns that models see: those of ``encoder_``, or the columns of X, where X had names.
    target_name_ : str
        Name of the response; empty where y had none.
    table_ : TableRecipe
        What became of each column of the table; only where there is an encoder.
    ranges_ : ndarray of shape (2, q)
        Smallest and largest value of each predictor, by which `OutsideFitWarning` judges later rows. It is
        not there after a fit of fewer than 20 rows, and after ``fit_sources`` with ``standardize``.

    Examples
    --------
    >>> from coterie import CoterieRegressor
    >>> from coterie.datasets import make_linear_learners
    >>> data = make_linear_learners(n_learners=12, n_truths=3, random_state=0)
    >>> model = CoterieRegressor(candidates="linear").fit(data.X, data.y, groups=data.groups)
    >>> model.n_clusters_
    3
    >>> model.predict(data.X[:2], groups=data.groups[:2]).shape
    (2,)
    """

    def __init__(
        self,
        candidates: Any = None,
        n_clusters: Any = "auto",
        max_clusters: int | None = None,
        scale: Any = "noise",
        refine: str | None = "pooled",
        refine_rounds: int | None = None,
        collaboration: str = "auto",
        nested_folds: int = 4,
        robust: bool = False,
        standardize: str | None = None,
        group_column: str | int | None = None,
        small_learners: str = "admit",
        min_rows: Any = "auto",
        splitter: Any = None,
        order: str | None = "auto",
        time: Any = None,
        log_target: bool = False,
        n_bootstrap: int = 100,
        engine: Any = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        landmarks: Any = None,
        device: str = "auto",
        unknown_learners: str = "warn",
        effort: str = "full",
    ) -> None:
        self.candidates = candidates
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.scale = scale
        self.refine = refine
        self.refine_rounds = refine_rounds
        self.collaboration = collaboration
        self.nested_folds = nested_folds
        self.robust = robust
        self.standardize = standardize
        self.group_column = group_column
        self.small_learners = small_learners
        self.min_rows = min_rows
        self.splitter = splitter
        self.order = order
        self.time = time
        self.log_target = log_target
        self.n_bootstrap = n_bootstrap
        self.engine = engine
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.landmarks = landmarks
        self.device = device
        self.unknown_learners = unknown_learners
        self.effort = effort

    def _loss(self) -> Loss:
        return SQUARED_ERROR

    def _response(self, y: Any, options: Options, caller: str) -> tuple[Any, Options]:
        return (log_response(y, caller) if options.log_target else y), options

    def _newcomers_response(self, y: Any, caller: str) -> Any:
        return self._response(y, self.record_.options, caller)[0]

    def fit(
        self, X: Any, y: Any, groups: Any = None, time: Any = None, **fit_params: Any
    ) -> CoterieRegressor:
        """Select, exchange, cluster, collaborate.

        Parameters
        ----------
        X : array-like or table of shape (N, p)
            Predictors of all learners: an array of numbers, or a pandas, polars or pyarrow table. If a table
            has text, categories, dates or gaps, `TableEncoder` turns it into numbers, here and in all other
            methods.
        y : array-like of shape (N,)
            Response.
        groups : array-like of shape (N,), str, or None, default=None
            Learner id of each row, or the name of the column of X that holds it. None: one learner,
            or ``group_column``.
        time : array-like of shape (N,), str, True or None, default=None
            When each row was observed (dates, numbers, or text that is either), or the name of the column of
            X that says so. True: rows are in time order. None: as the option ``time`` has it.
        **fit_params : dict
            ``sample_weight``, an array-like of shape (N,), for the candidates that take it; it weights
            the losses too.

        Returns
        -------
        CoterieRegressor
            Itself, fitted.
        """
        return self._fit(X, y, groups, time, fit_params)

    def fit_sources(self, sources: Mapping[Any, RowSource], *, memory: Any = "2GiB") -> CoterieRegressor:
        """Fit learners whose rows do not fit into memory together: each is read when its turn comes.

        A learner's model is fitted on all its rows; of these, as many as the memory allows stay for
        Exchange, Cluster and Collaborate. Where everything fits, the answer is that of ``fit``.

        Parameters
        ----------
        sources : mapping of learner id to source
            A source has ``n_rows`` and ``read(most)``, which returns X and y of at most ``most`` rows of its
            learner. See `coterie.RowSource`.
        memory : int or str, default="2GiB"
            What the fit may take, in bytes or with a unit. A learner too large for it is read in part.

        Returns
        -------
        CoterieRegressor
            Itself, fitted. ``gains_["n_rows"]`` counts the rows that were read. Where rows were left out,
            clusters are refined by averages of models, ``collaboration="auto"`` is such an average, and so
            is what ``gains_["error_all"]`` measures: the models have seen all rows, pooled ones would not.
        """
        return self._fit_sources(sources, memory, self.check_options())

    def predict(self, X: Any, groups: Any = None, using: str = "verdict") -> Array:
        """Predict rows, each as it is best for the learner who holds it.

        Parameters
        ----------
        X : array-like or table of shape (N, p)
            Predictors, with the columns of ``fit``.
        groups : array-like of shape (N,), str, or None, default=None
            Id of the learner who holds each row, or the name of the column of X that holds it. None:
            the column used in ``fit``, or the only learner there is. Learners that the fit has not seen are
            predicted by what all learners share, with a warning; see ``unknown_learners``.
        using : {"verdict", "alone", "others"}, default="verdict"
            ``"verdict"``: learners with the verdict *stay alone* are predicted by their own models, all
            others by the mixture. ``"alone"`` and ``"others"`` use one of them for all, to compare.

        Returns
        -------
        ndarray of shape (N,)
            Predictions.
        """
        check_is_fitted(self)
        check_option(using, "using", USING)
        X, index = self._rows_and_places(X, groups, "CoterieRegressor.predict")
        return self.record_.predict(X, index, using)

    def predict_interval(self, X: Any, groups: Any = None, coverage: float = 0.9) -> Array:
        """Return intervals in which the responses of rows lie with a given probability.

        They are made from residuals out of fold: those of the learner, and of its coterie where its own are
        few. Learners that were admitted, and those that the fit has not seen, get intervals, too.

        Parameters
        ----------
        X : array-like or table of shape (N, p)
            Predictors, with the columns of ``fit``.
        groups : array-like of shape (N,), str, or None, default=None
            As for ``predict``.
        coverage : float, default=0.9
            The share of responses that are to lie inside, between 0 and 1.

        Returns
        -------
        ndarray of shape (N, 2)
            Lower and upper end of each interval; the prediction lies between them.
        """
        coverage = check_coverage(coverage, "CoterieRegressor.predict_interval")
        X, index = self._rows_and_places(X, groups, "CoterieRegressor.predict_interval")
        return self.record_.predict_interval(X, index, coverage)

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """Return the coefficient of determination of the predictions.

        Parameters
        ----------
        X, y : array-like
            Predictors, of shape (N, p), and response, of shape (N,).
        sample_weight : array-like of shape (N,) or None, default=None
            Weights of the rows.
        groups : array-like of shape (N,), str, or None, default=None
            As for ``predict``.

        Returns
        -------
        float
            R squared.
        """
        return float(r2_score(y, self.predict(X, groups=groups), sample_weight=sample_weight))
