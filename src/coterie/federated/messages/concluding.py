"""Who learns with whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from coterie.federated.codec import ProtocolError
from coterie.federated.messages.checks import FEWEST_ROWS, Excess, require


@dataclass(frozen=True)
class Curve:
    """How a rule came to its number of coteries.

    Parameters
    ----------
    criterion : str
        What the values are.
    n_clusters : tuple of int
        The numbers looked at.
    values : tuple of float or None
        The criterion for each.
    chosen : int
        The rule's answer.
    """

    criterion: str
    n_clusters: tuple[int, ...]
    values: tuple[float | None, ...]
    chosen: int


@dataclass(frozen=True)
class Gain:
    """A site's row in the table of gains.

    Parameters
    ----------
    site : str
        Who.
    coterie : int
        Its coterie, 0 for the largest.
    family : str
        Its model.
    n_rows : int
        Its rows.
    errors : tuple of pairs of float, or None
        Mean squared error, held out, and its standard error: alone, with its coterie, with all; None for
        a site whose model stands apart.
    gain : float or None
        Share of the error alone that the coterie saves.
    gain_error : float or None
        Its standard error.
    verdict : str
        What to do.
    reason : str
        Why, where the numbers do not say it.
    membership : float or None
        How sure its coterie is.
    second : int
        The nearest other coterie; -1 without others.
    """

    site: str
    coterie: int
    family: str
    n_rows: int
    errors: tuple[Excess, Excess, Excess] | None
    gain: float | None
    gain_error: float | None
    verdict: str
    reason: str
    membership: float | None
    second: int


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
        sites = [row.site for row in self.gains]
        require(len(sites) > 0, "A conclusion must be about at least one site.")
        require(sites == sorted(set(sites)), "The sites of a conclusion must differ and be sorted.")
        require(set(self.models) == set(sites), "A conclusion must name the model of every site.")
        labels = {row.coterie for row in self.gains}
        require(labels == set(range(len(labels))), "Coteries must be numbered from 0.")
        require(all(row.n_rows >= FEWEST_ROWS for row in self.gains), "A site has too few rows.")

    @property
    def labels(self) -> dict[str, int]:
        """Coterie of each site."""
        return {row.site: row.coterie for row in self.gains}

    @property
    def n_coteries(self) -> int:
        """Number of coteries."""
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
        rows = {row.site: row.n_rows for row in self.gains if row.coterie == self.labels[site]}
        return {member: count / sum(rows.values()) for member, count in rows.items()}
