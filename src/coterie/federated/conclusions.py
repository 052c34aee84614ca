"""The message that tells who learns with whom, and what each site gains by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from coterie._options import check_option
from coterie.federated.checks import check_classes, require
from coterie.federated.codec import ProtocolError
from coterie.rows.threshold import FEWEST_ROWS
from coterie.verdicts.verdict import STAY_ALONE


@dataclass(frozen=True)
class SentCurve:
    """How a rule found its number of coteries: its criterion for each number, and the number it chose.

    ``values`` has the criterion for each of ``n_clusters``; None: not computed.
    """

    criterion: str
    n_clusters: tuple[int, ...]
    values: tuple[float | None, ...]
    chosen: int


@dataclass(frozen=True)
class Gain:
    """A site's row in the table of gains, with the names of a row of ``CoterieRegressor.gains_``.

    Errors are mean losses on rows that a model was not fitted on, with standard errors (``_se``): of the site
    alone, with its coterie and with all. Gains are shares of the error alone. Both are None for a site whose
    model stands apart, and where they were not measured; ``membership`` is None likewise.

    ``fits`` tells whether some cluster of others describes the site's data. ``second_cluster`` is -1 where
    there is no other cluster.
    """

    learner: str
    cluster: int
    model: str
    n_rows: int
    error_alone: float | None
    error_alone_se: float | None
    error_with: float | None
    error_with_se: float | None
    error_all: float | None
    error_all_se: float | None
    gain: float | None
    gain_se: float | None
    gain_low: float | None
    gain_high: float | None
    verdict: str
    reason: str
    fits: bool
    membership: float | None
    second_cluster: int


@dataclass(frozen=True)
class Line:
    """A linear function of the predictors, as slopes and an intercept; ``limits`` clip what it predicts."""

    values: tuple[float, ...]
    limits: tuple[float, float]

    def __post_init__(self) -> None:
        require(self.limits[0] <= self.limits[1], "Limits are the wrong way round.")


@dataclass(frozen=True)
class ClassMixturePart:
    """A part of a mixture of classifiers: an average of models, and a line for each class in its log-odds.

    ``weights`` has the models' weights in the average by site, which sum to one. Without ``lines`` it is the
    average as it is; ``share`` is the part's weight in the mixture.
    """

    share: float
    weights: Mapping[str, float]
    lines: tuple[Line, ...] = ()

    def __post_init__(self) -> None:
        are_shares = len(self.weights) > 0 and min(self.weights.values()) >= 0
        are_shares = are_shares and abs(sum(self.weights.values()) - 1) < 1e-6
        require(
            are_shares and self.share >= 0,
            "The weights of a part of a mixture must be shares that sum to one.",
        )


@dataclass(frozen=True)
class Mixture:
    """How a site predicts with others: a weighted sum of models, and a linear correction of its own.

    ``weights`` has what each model weighs, by site. ``line`` are slopes and intercept of the correction,
    whose values are clipped to ``limits``. ``range`` is what the site's own model is clipped to where it
    predicts alone, and ``plausible`` what its predictions with others are clipped to; None: not known.

    Of classes the mixture is the sum of its ``parts``; ``weights`` are what models weigh in all, and there is
    no line.
    """

    weights: Mapping[str, float]
    line: tuple[float, ...]
    limits: tuple[float, float]
    range: tuple[float, float] | None = None
    parts: tuple[ClassMixturePart, ...] = ()
    plausible: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        """Refuse a mixture whose parts do not fit each other.

        Weights that are shares keep a prediction between those of the models.
        """
        sites_in_parts = {member for part in self.parts for member in part.weights}
        require(
            sites_in_parts <= set(self.weights), "A part of a mixture has a model that the mixture has not."
        )
        parts_sum_to_one = not self.parts or abs(sum(part.share for part in self.parts) - 1) < 1e-6
        require(parts_sum_to_one, "The parts of a mixture must sum to one.")
        require(len(self.weights) > 0, "A mixture must have a model.")
        are_shares = min(self.weights.values()) >= 0 and abs(sum(self.weights.values()) - 1) < 1e-6
        require(are_shares, "The weights of a mixture must be shares that sum to one.")
        intervals = (pair for pair in (self.limits, self.range, self.plausible) if pair is not None)
        require(all(low <= high for low, high in intervals), "Limits are the wrong way round.")


@dataclass(frozen=True)
class Conclusion:
    """Who learns with whom, and what it brings.

    Parameters
    ----------
    gains : tuple of Gain
        A row per site, sorted by site.
    mixtures : mapping of str to Mixture
        How each site predicts with others; empty where it predicts by lines of moments.
    models : mapping of str to str
        The sha256 of each site's model.
    rule : str
        What decided the number of coteries.
    clear : bool
        False when the sites do not fall into clear coteries.
    curves : mapping of str to SentCurve
        Every rule's curve.
    left_out : mapping of str to str
        Who took no part, and why, in a sentence.
    notes : tuple of str
        What a reader should know.
    rounds : int
        Rounds of questions.
    settings : mapping of str to str
        How it was concluded, so that anybody can do it again.
    classes : tuple of str, default=()
        The classes of the response; none: it is a number.
    """

    gains: tuple[Gain, ...]
    mixtures: Mapping[str, Mixture]
    models: Mapping[str, str]
    rule: str
    clear: bool
    curves: Mapping[str, SentCurve]
    left_out: Mapping[str, str]
    notes: tuple[str, ...]
    rounds: int
    settings: Mapping[str, str]
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a conclusion whose parts are about different sites or clusters."""
        sites = [row.learner for row in self.gains]
        check_classes(self.classes)
        require(len(sites) > 0, "A conclusion must be about at least one site.")
        require(sites == sorted(set(sites)), "The sites of a conclusion must differ and be sorted.")
        require(set(self.models) == set(sites), "A conclusion must name the model of every site.")
        all_predict = not self.mixtures or set(self.mixtures) == set(sites)
        require(all_predict, "A conclusion must say how every site predicts.")
        sites_in_mixtures = {member for mixture in self.mixtures.values() for member in mixture.weights}
        require(sites_in_mixtures <= set(sites), "A mixture has a model that the conclusion does not name.")
        # Clusters are called coteries in what a person reads.
        labels = {row.cluster for row in self.gains}
        require(labels == set(range(len(labels))), "Coteries must be numbered from 0.")
        require(all(row.n_rows >= FEWEST_ROWS for row in self.gains), "A site has too few rows.")

    @property
    def labels(self) -> dict[str, int]:
        """Cluster of each site, by its name; clusters are numbered from 0."""
        return {row.learner: row.cluster for row in self.gains}

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(set(self.labels.values()))

    def mixture(self, site: str, *, using: str = "verdict") -> Mixture:
        """Return how a site predicts: by a mixture with others, or by its own model alone.

        Parameters
        ----------
        site : str
            Who predicts.
        using : {"verdict", "others", "alone"}, default="verdict"
            As the verdict has it, with others, or with its own model.

        Returns
        -------
        Mixture
            What each model weighs, and the site's own line.
        """
        check_option(using, "using", ("verdict", "others", "alone"))
        row = next((row for row in self.gains if row.learner == site), None)
        if row is None:
            reason = self.left_out.get(site)
            raise ProtocolError(
                f"The conclusion has no site {site!r}."
                if reason is None
                else f"{site!r} was left out: {reason}"
            )
        if not self.mixtures:
            raise ProtocolError("The conclusion is about moments: it has no mixture of models.")
        if using == "alone" or (using == "verdict" and row.verdict == STAY_ALONE):
            own_mixture = self.mixtures[site]
            # Alone means: all weight on the own model, and a line of zeros.
            own_parts = (ClassMixturePart(1.0, {site: 1.0}),) if self.classes else ()
            return Mixture(
                weights={site: 1.0},
                line=(0.0,) * len(own_mixture.line),
                limits=(0.0, 0.0),
                range=own_mixture.range,
                parts=own_parts,
            )
        # The range is that of the own model alone: predictions with others are not clipped to it.
        return replace(self.mixtures[site], range=None)
