"""Who learns with whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from coterie.federated.codec import ProtocolError
from coterie.federated.messages.checks import FEWEST_ROWS, require


@dataclass(frozen=True)
class Curve:
    """How a rule came to its number of coteries: the criterion for each number looked at, and the answer."""

    criterion: str
    n_clusters: tuple[int, ...]
    values: tuple[float | None, ...]
    chosen: int


@dataclass(frozen=True)
class Gain:
    """A site's row in the table of gains, with the names of a row of ``CoterieRegressor.gains_``.

    Errors and gains are None for a site whose model stands apart, and where they were not measured;
    ``membership`` is None likewise. ``second_cluster`` is -1 where there is no other cluster.
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
    verdict: str
    reason: str
    membership: float | None
    second_cluster: int


@dataclass(frozen=True)
class Conclusion:
    """Who learns with whom, and what it brings.

    Parameters
    ----------
    gains : tuple of Gain
        A row per site, sorted by site.
    models : mapping of str to str
        The sha256 of each site's model.
    rule : str
        What decided the number of coteries.
    clear : bool
        False when the sites do not fall into clear coteries.
    curves : mapping of str to Curve
        Every rule's curve.
    left_out : mapping of str to str
        Who took no part, and why, in a sentence.
    notes : tuple of str
        What a reader should know.
    rounds : int
        Rounds of questions.
    """

    gains: tuple[Gain, ...]
    models: Mapping[str, str]
    rule: str
    clear: bool
    curves: Mapping[str, Curve]
    left_out: Mapping[str, str]
    notes: tuple[str, ...]
    rounds: int

    def __post_init__(self) -> None:
        sites = [row.learner for row in self.gains]
        require(len(sites) > 0, "A conclusion must be about at least one site.")
        require(sites == sorted(set(sites)), "The sites of a conclusion must differ and be sorted.")
        require(set(self.models) == set(sites), "A conclusion must name the model of every site.")
        labels = {row.cluster for row in self.gains}
        require(labels == set(range(len(labels))), "Coteries must be numbered from 0.")
        require(all(row.n_rows >= FEWEST_ROWS for row in self.gains), "A site has too few rows.")

    @property
    def labels(self) -> dict[str, int]:
        """Cluster of each site."""
        return {row.learner: row.cluster for row in self.gains}

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(set(self.labels.values()))

    def weights(self, site: str) -> dict[str, float]:
        """Return what each member's model weighs when a site predicts with its coterie.

        Parameters
        ----------
        site : str
            Whose coterie.

        Returns
        -------
        dict of str to float
            By site; they sum to one, and members count by their rows.
        """
        if site not in self.labels:
            why = self.left_out.get(site)
            raise ProtocolError(
                f"The conclusion has no site {site!r}." if why is None else f"{site!r} was left out: {why}"
            )
        rows = {row.learner: row.n_rows for row in self.gains if row.cluster == self.labels[site]}
        return {member: count / sum(rows.values()) for member, count in rows.items()}
