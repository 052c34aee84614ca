"""Questions about averages of models, and their answers."""

from __future__ import annotations

from dataclasses import dataclass

from coterie.federated.messages.checks import (
    FEWEST_ROWS,
    MOST_LABELLINGS,
    MOST_SITES,
    Excess,
    check_site,
    require,
)

# Loss on the two halves of a site's rows; null where a cluster has nobody to predict with.
Halves = tuple[float | None, float | None]
Picks = tuple[tuple[int, int], ...]


def _check_labels(labels: tuple[int, ...], n: int) -> None:
    require(len(labels) == n, f"A labelling must have one label for each of the {n} members.")
    require(min(labels) >= 0 and max(labels) < n, "A label is out of range.")


def _check_picks(picks: Picks, labels: tuple[int, ...]) -> None:
    require(len(picks) == len(labels), "There must be picks for every member.")
    clusters = set(range(max(labels) + 1))
    require(clusters.issuperset(k for pair in picks for k in pair), "A pick is out of range.")


@dataclass(frozen=True)
class Member:
    """One whose model takes part in averages.

    ``weight`` is what the model, named by its sha256, weighs in the averages that decide; ``n_rows`` is what
    it weighs in those that predict. ``noise`` is the site's noise level.
    """

    site: str
    sha: str
    weight: float
    n_rows: int
    noise: float

    def __post_init__(self) -> None:
        check_site(self.site)
        require(self.weight > 0 and self.noise > 0, f"The weight or noise of {self.site!r} is not positive.")
        require(self.n_rows >= FEWEST_ROWS, f"A site needs {FEWEST_ROWS} rows. Got {self.n_rows}.")


@dataclass(frozen=True)
class Pairing:
    """Two ways of predicting to be compared, paired over rows.

    ``labels`` are the clusters of the members, ``picks`` which cluster predicts each half of each member.
    """

    labels: tuple[int, ...]
    picks: Picks
    other_labels: tuple[int, ...]
    other_picks: Picks


@dataclass(frozen=True)
class Question:
    """What the parties are asked next: losses of averages of their models.

    Parameters
    ----------
    members : tuple of Member
        Whose models are averaged, sorted by site.
    labellings : tuple of tuple of int
        For each, what the average of every cluster loses on both halves of the site's rows, its own model
        left out.
    pairings : tuple of Pairing
        For each, how much more the first way loses on the site's rows than the second.
    verdicts : tuple of tuple of int
        For each labelling, what it would bring the site.
    clipped : bool
        Whether squared residuals count up to the site's bound only, so that outlying rows do not decide.
    """

    members: tuple[Member, ...]
    labellings: tuple[tuple[int, ...], ...]
    pairings: tuple[Pairing, ...]
    verdicts: tuple[tuple[int, ...], ...]
    clipped: bool

    def __post_init__(self) -> None:
        n = len(self.members)
        sites = [member.site for member in self.members]
        require(0 < n <= MOST_SITES, f"A question is about 1 to {MOST_SITES} members. Got {n}.")
        require(sites == sorted(set(sites)), "The members of a question must differ and be sorted.")
        asked = len(self.labellings) + len(self.pairings) + len(self.verdicts)
        require(
            asked <= MOST_LABELLINGS, f"A question asks for {asked} labellings: at most {MOST_LABELLINGS}."
        )
        both = ((p.labels, p.other_labels) for p in self.pairings)
        for labels in (*self.labellings, *self.verdicts, *(part for pair in both for part in pair)):
            _check_labels(labels, n)
        for pairing in self.pairings:
            _check_picks(pairing.picks, pairing.labels)
            _check_picks(pairing.other_picks, pairing.other_labels)


@dataclass(frozen=True)
class Verdict:
    """What a labelling would bring a site, in numbers of its own rows.

    ``clusters``: how much more each cluster loses than the site's own honest model; None: nobody is there.
    ``constant``: how much more the site's cluster loses than the mean of its response. ``coterie``: how much
    more the site's coterie, its own model included, loses than the site alone. ``errors``: mean squared
    error, held out, and its standard error: alone, with the coterie, with all. ``gain_error``: standard error
    of the gain; None where the error alone is no more than rounding. ``membership``: how often each cluster
    predicts the site best when its rows are resampled; empty: not measured.
    """

    clusters: tuple[Excess | None, ...]
    constant: Excess
    coterie: Excess
    errors: tuple[Excess, Excess, Excess]
    gain_error: float | None
    membership: tuple[float, ...]

    def __post_init__(self) -> None:
        spreads = [pair[1] for pair in (*self.clusters, self.constant, self.coterie) if pair is not None]
        good = min((*spreads, self.gain_error or 0.0, *(part for pair in self.errors for part in pair))) >= 0
        require(good, "An error or its spread is negative.")
        require(all(0 <= share <= 1 for share in self.membership), "A membership is no share.")


@dataclass(frozen=True)
class Answer:
    """A site's answer to a question.

    Parameters
    ----------
    site : str
        Who speaks.
    question : str
        The sha256 of the question.
    halves : tuple of tuple of Halves
        For each labelling and cluster, the loss on both halves.
    pairings : tuple of Excess
        For each pairing.
    verdicts : tuple of Verdict
        For each labelling asked about.
    """

    site: str
    question: str
    halves: tuple[tuple[Halves, ...], ...]
    pairings: tuple[Excess, ...]
    verdicts: tuple[Verdict, ...]

    def __post_init__(self) -> None:
        check_site(self.site)
        values = (v for labelling in self.halves for pair in labelling for v in pair if v is not None)
        require(all(value >= 0 for value in values), f"{self.site!r} answered a negative loss.")
        require(all(pair[1] >= 0 for pair in self.pairings), f"{self.site!r} answered a negative spread.")
