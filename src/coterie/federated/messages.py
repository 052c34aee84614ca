"""What sites send each other: typed, versioned records, the same whatever carries them.

A site sends a `Share` (its model and a few numbers), then a `Score` (what everybody's models lose on its
rows), then an `Answer` to each `Question` (what averages of models lose there). Or it sends its `Moments`,
and nothing else. A `Conclusion` tells who learns with whom. No message has a place for a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, get_args

from coterie.federated.checks import MOST_COLUMNS, MOST_SITES, check_classes, check_site, digest, require
from coterie.federated.codec import LARGEST, from_plain, parse, to_text
from coterie.federated.codec import ProtocolError as ProtocolError
from coterie.federated.conclusions import Conclusion, Line
from coterie.federated.tables import Columns, Encoding, Moments
from coterie.rows.threshold import FEWEST_ROWS

# More labellings than this in one question is no question of ours.
MOST_LABELLINGS = 200

# Mean excess and its standard error.
Excess = tuple[float, float]


@dataclass(frozen=True)
class Share:
    """What a site sends of itself: its model and a few numbers.

    Parameters
    ----------
    site : str
        Who speaks.
    n_rows : int
        Rows of the site.
    error : float
        Mean squared error of the model on the rows that it was fitted on (the paper's e_i).
    response_mean : float
        Mean of the response. This and the next set what counts as rounding.
    response_variance : float
        Variance of the response.
    columns : tuple of str
        The predictors, in their order.
    target : str
        The response.
    family : str
        Name of the chosen candidate.
    model : bytes
        The model, as `coterie.federated.wire` writes it.
    candidates : tuple of str
        What the site let compete.
    seed : int
        Of everything random.
    software : mapping of str to str
        Versions.
    spreads : tuple of float
        Standard deviation of each predictor, for common units of slopes.
    classes : tuple of str, default=()
        The classes of the response, as the sites agreed; none: it is a number.
    class_shares : tuple of float, default=()
        The share of each class among the site's rows. Mean and variance of the response are nought then.
    """

    site: str
    n_rows: int
    error: float
    response_mean: float
    response_variance: float
    columns: tuple[str, ...]
    target: str
    family: str
    model: bytes = field(repr=False)
    candidates: tuple[str, ...]
    seed: int
    software: Mapping[str, str]
    spreads: tuple[float, ...]
    classes: tuple[str, ...] = ()
    class_shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a share whose names or numbers are out of range."""
        check_site(self.site)
        check_classes(self.classes)
        whole = len(self.class_shares) == len(self.classes) and min(self.class_shares, default=0.0) >= 0
        whole = whole and (not self.classes or abs(sum(self.class_shares) - 1) < 1e-9)
        require(whole, f"{self.site!r} must state the share of each class.")
        require(self.n_rows >= FEWEST_ROWS, f"A site needs {FEWEST_ROWS} rows. Got {self.n_rows}.")
        require(self.error >= 0, f"The error of {self.site!r} is negative.")
        require(self.response_variance >= 0, f"The variance that {self.site!r} states is negative.")
        require(
            self.response_mean**2 + self.response_variance <= LARGEST,
            f"The response of {self.site!r} is too large: give it in other units.",
        )
        require(
            0 < len(self.columns) <= MOST_COLUMNS, f"{self.site!r} must have 1 to {MOST_COLUMNS} columns."
        )
        require(len(set(self.columns)) == len(self.columns), f"Two columns of {self.site!r} have one name.")
        require(self.seed >= 0, f"The seed of {self.site!r} is negative.")
        good = len(self.spreads) == len(self.columns) and min(self.spreads) >= 0
        require(good, f"{self.site!r} must state a spread for each column.")
        require(len(self.model) > 0, f"The model of {self.site!r} is empty.")

    @property
    def sha(self) -> str:
        """The sha256 of the model."""
        return digest(self.model)


@dataclass(frozen=True)
class PeerLoss:
    """What a peer's model, named by its sha256, loses on a site's rows: the mean squared error.

    It is None where the model could not be read or did not predict finite values.
    """

    sha: str
    value: float | None

    def __post_init__(self) -> None:
        require(self.value is None or self.value >= 0, f"A loss is negative: {self.value}.")


@dataclass(frozen=True)
class Score:
    """What everybody's models lose on a site's rows.

    Parameters
    ----------
    site : str
        Who speaks.
    sha : str
        The sha256 of its own model.
    losses : mapping of str to PeerLoss
        By site, its own included.
    noise : float
        Mean of its clipped squared honest residuals.
    noise_variance : float
        Sampling variance of the logarithm of the former.
    half_sizes : tuple of int
        Rows in the two halves on which averages are scored.
    tied : bool, default=False
        Whether more than half of its responses are one value.
    """

    site: str
    sha: str
    losses: Mapping[str, PeerLoss]
    noise: float
    noise_variance: float
    half_sizes: tuple[int, int]
    tied: bool = False

    def __post_init__(self) -> None:
        """Refuse a score whose numbers are out of range."""
        check_site(self.site)
        require(0 < len(self.losses) <= MOST_SITES, f"{self.site!r} scored {len(self.losses)} models.")
        require(self.site in self.losses, f"{self.site!r} did not score its own model.")
        require(self.losses[self.site].sha == self.sha, f"{self.site!r} scored another model as its own.")
        require(self.noise > 0, f"The noise level of {self.site!r} is not positive.")
        require(self.noise_variance >= 0, f"The variance of the noise of {self.site!r} is negative.")
        require(min(self.half_sizes) >= 0, f"A half of {self.site!r} has a negative number of rows.")


# Loss on the two halves of a site's rows; null where a cluster has nobody to predict with.
Halves = tuple[float | None, float | None]
Picks = tuple[tuple[int, int], ...]


def _check_labels(labels: tuple[int, ...], n: int) -> None:
    """Refuse a labelling of another length, or with labels out of range."""
    require(len(labels) == n, f"A labelling must have one label for each of the {n} members.")
    require(min(labels) >= 0 and max(labels) < n, "A label is out of range.")


def _check_picks(picks: Picks, labels: tuple[int, ...]) -> None:
    """Refuse picks that do not name clusters for each half of every member."""
    require(len(picks) == len(labels), "There must be picks for every member.")
    clusters = set(range(max(labels) + 1))
    require(clusters.issuperset(k for pair in picks for k in pair), "A pick is out of range.")


@dataclass(frozen=True)
class AveragedSite:
    """One whose model takes part in averages.

    ``weight`` is what the model, named by its sha256, weighs in averages. ``noise`` is the site's noise
    level.
    """

    site: str
    sha: str
    weight: float
    noise: float

    def __post_init__(self) -> None:
        check_site(self.site)
        require(self.weight > 0 and self.noise > 0, f"The weight or noise of {self.site!r} is not positive.")


@dataclass(frozen=True)
class Pairing:
    """Two forms of prediction to compare, paired over rows.

    ``labels`` are the clusters of the members, ``picks`` which cluster predicts each half of each member.
    """

    labels: tuple[int, ...]
    picks: Picks
    other_labels: tuple[int, ...]
    other_picks: Picks


Labels = tuple[int, ...]
Table = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class MixingQuestion:
    """What is mixed: own models and the averages of some labellings.

    ``ratios`` has, first for an offset only and then for offset and slopes, the variances of offset and
    slopes of each labelling's averages, in units of the noise.
    """

    labellings: tuple[Labels, ...]
    ratios: tuple[tuple[tuple[float, float], ...], tuple[tuple[float, float], ...]]

    def __post_init__(self) -> None:
        require(0 < len(self.labellings) <= MOST_LABELLINGS, "A mixture has no or too many labellings.")
        good = all(len(part) == len(self.labellings) for part in self.ratios)
        require(good, "There must be ratios for every labelling of a mixture.")
        require(min(min(pair) for part in self.ratios for pair in part) >= 0, "A ratio is negative.")


@dataclass(frozen=True)
class JudgingQuestion:
    """What has to be judged: a partition, and what each member takes from whom.

    ``labels`` is the partition and ``mixing`` what is mixed. ``weights`` has a table for each member: weights
    of its own model, the averages with an offset, and the averages with offset and slopes; first those learnt
    without each fold of its rows, then those that stay.
    """

    labels: Labels
    mixing: MixingQuestion
    weights: tuple[Table, ...]

    def __post_init__(self) -> None:
        """Refuse weights that do not fit the members and columns."""
        n_columns = 2 * len(self.mixing.labellings) + 1
        sizes = {(len(table), len(row)) for table in self.weights for row in table}
        require(
            len(self.weights) == len(self.labels)
            and len(sizes) == 1
            and {c for _, c in sizes} == {n_columns},
            "There must be weights of every column for each member.",
        )


@dataclass(frozen=True)
class Question:
    """The next question to the sites: losses of averages of their models.

    Parameters
    ----------
    members : tuple of AveragedSite
        Whose models are averaged, sorted by site.
    units : tuple of float
        Common units of the predictors; zero where slopes are not corrected.
    labellings : tuple of tuple of int
        For each, what the average of every cluster loses on both halves of the site's rows, its own model
        left out, and how likely offsets and slopes of each size are.
    pairings : tuple of Pairing
        For each, how much more the first form of prediction loses on the site's rows than the second.
    mixing : MixingQuestion or None, default=None
        The averages whose products of residuals are wanted.
    judging : JudgingQuestion or None, default=None
        The partition and mixture to judge.
    """

    members: tuple[AveragedSite, ...]
    units: tuple[float, ...]
    labellings: tuple[Labels, ...]
    pairings: tuple[Pairing, ...]
    mixing: MixingQuestion | None = None
    judging: JudgingQuestion | None = None

    def __post_init__(self) -> None:
        """Refuse a question that is too large, or whose labellings do not fit its members."""
        n = len(self.members)
        sites = [member.site for member in self.members]
        require(0 < n <= MOST_SITES, f"A question is about 1 to {MOST_SITES} members. Got {n}.")
        require(sites == sorted(set(sites)), "The members of a question must differ and be sorted.")
        require(min(self.units, default=0.0) >= 0, "A unit is negative.")
        mixings = [self.mixing, None if self.judging is None else self.judging.mixing]
        mixed = [labels for mixing in mixings if mixing is not None for labels in mixing.labellings]
        judged = [] if self.judging is None else [self.judging.labels]
        n_labellings = len(self.labellings) + len(self.pairings) + len(mixed)
        require(
            n_labellings <= MOST_LABELLINGS,
            f"A question asks for {n_labellings} labellings: at most {MOST_LABELLINGS}.",
        )
        both = ((p.labels, p.other_labels) for p in self.pairings)
        for labels in (*self.labellings, *mixed, *judged, *(part for pair in both for part in pair)):
            _check_labels(labels, n)
        for pairing in self.pairings:
            _check_picks(pairing.picks, pairing.labels)
            _check_picks(pairing.other_picks, pairing.other_labels)


@dataclass(frozen=True)
class Products:
    """Sums of products of a site's out-of-fold residuals, fold by fold, and the number of rows behind them.

    The columns are those of `JudgingQuestion.weights`.
    """

    folds: tuple[Table, ...]
    counts: tuple[float, ...]

    def __post_init__(self) -> None:
        sizes = {(len(table), len(row)) for table in self.folds for row in table}
        square = len(sizes) == 1 and all(rows == columns for rows, columns in sizes)
        require(square and len(self.counts) == len(self.folds) > 1, "Products come as square tables by fold.")
        require(min(self.counts) >= 0, "A number of rows is negative.")


@dataclass(frozen=True)
class Verdict:
    """What a partition and a mixture bring a site, in numbers of its own rows.

    ``clusters``: how much more each cluster loses than the site's own honest model; None: nobody is there.
    ``constant``: how much more the site's cluster loses than the mean of its response. ``coterie``: how much
    more the average of the site's coterie loses than the site alone. ``errors``: mean squared error, held
    out, and its standard error: alone, with others, with all. ``early``, ``own`` and ``others`` are mean
    bounded losses of own models of half of the rows, of more of them, and with others; on ``n_rows`` rows,
    with the ``variance`` of relative differences and the mean squared ``distance`` of predictions alone and
    with others; zeros where nothing could be compared, and ``exact`` where
    there is no error. ``inflation`` is the factor for rows that depend on each other. ``membership``: how
    often each cluster predicts the site best when its rows are resampled; empty: not measured. ``line`` are
    slopes and intercept that the site adds to its mixture, and ``limits`` what the line is kept within.
    ``range`` is that of its response with a margin: its own model is kept within it where it predicts alone.
    Of classes ``lines`` take the place of ``line``: what is added to the log-odds of each average, first with
    an offset and then with offset and slopes, class by class. ``beyond`` says of classes by how many standard
    deviations each cluster loses more than its probabilities claim, and ``coterie_beyond`` the same of the
    site's coterie. ``one_class``: all rows have the same class, and nothing could be compared.
    """

    clusters: tuple[Excess | None, ...]
    constant: Excess
    coterie: Excess
    errors: tuple[Excess, Excess, Excess]
    early: float
    own: float
    others: float
    n_rows: int
    variance: float
    distance: float
    exact: bool
    inflation: float
    membership: tuple[float, ...]
    line: tuple[float, ...]
    limits: tuple[float, float]
    range: tuple[float, float]
    lines: tuple[Line, ...] = ()
    beyond: tuple[float | None, ...] = ()
    coterie_beyond: float = 0.0
    one_class: bool = False

    def __post_init__(self) -> None:
        """Refuse a verdict whose numbers are out of range."""
        spreads = [pair[1] for pair in (*self.clusters, self.constant, self.coterie) if pair is not None]
        numbers = self.early, self.own, self.others, self.n_rows, self.variance
        good = min((*spreads, *numbers, *(part for pair in self.errors for part in pair))) >= 0
        require(good, "An error or its spread is negative.")
        whole = self.n_rows == 0 or (min(numbers) > 0 and self.distance >= 0)
        require(whole and self.inflation > 0, "What could be compared must have an error and a spread.")
        require(all(0 <= share <= 1 for share in self.membership), "A membership is no share.")
        ordered = self.limits[0] <= self.limits[1] and self.range[0] <= self.range[1]
        require(ordered, "Limits are the wrong way round.")


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
    likelihoods : tuple of tuple of tuple of float
        For each labelling, the log-likelihoods of offsets and slopes on a grid, from the largest one.
    pairings : tuple of Excess
        For each pairing.
    products : Products or None, default=None
        For what is mixed.
    verdict : Verdict or None, default=None
        On what is judged.
    """

    site: str
    question: str
    halves: tuple[tuple[Halves, ...], ...]
    likelihoods: tuple[Table, ...]
    pairings: tuple[Excess, ...]
    products: Products | None = None
    verdict: Verdict | None = None

    def __post_init__(self) -> None:
        """Refuse an answer whose numbers are out of range."""
        check_site(self.site)
        values = (v for labelling in self.halves for pair in labelling for v in pair if v is not None)
        require(all(value >= 0 for value in values), f"{self.site!r} answered a negative loss.")
        require(all(pair[1] >= 0 for pair in self.pairings), f"{self.site!r} answered a negative spread.")
        sizes = {len(row) for table in self.likelihoods for row in table}
        require(len(sizes) <= 1, f"The likelihoods of {self.site!r} are no tables.")
        largest = max((v for table in self.likelihoods for row in table for v in row), default=0.0)
        require(largest <= 0, f"{self.site!r} answered a likelihood above the largest one.")


# Raised whenever a message gains, loses or changes a field.
VERSION = 5

Message = Share | Score | Question | Answer | Conclusion | Moments | Columns | Encoding
KINDS: Mapping[str, type[Any]] = {kind.__name__.lower(): kind for kind in get_args(Message)}


def kind_of(message: Message) -> str:
    """Return the name of a message's kind."""
    return type(message).__name__.lower()


def encode(message: Message) -> bytes:
    """Return a message as bytes, the same for the same message.

    Parameters
    ----------
    message : Share, Score, Question, Answer, Conclusion, Moments, Columns or Encoding
        What to send.

    Returns
    -------
    bytes
        JSON.
    """
    return to_text({"coterie": VERSION, "kind": kind_of(message), "body": message})


def decode(content: bytes, kind: str | None = None) -> Message:
    """Return the message that bytes from a peer stand for.

    Parameters
    ----------
    content : bytes
        What `encode` made, or anything else.
    kind : str or None, default=None
        The kind that is expected; None: any.

    Returns
    -------
    Share, Score, Question, Answer, Conclusion, Moments, Columns or Encoding
        Checked: every field is there, of its type, finite and in range.

    Raises
    ------
    ProtocolError
        With a sentence, for anything else.
    """
    outer = parse(content, "message")
    version = outer.get("coterie")
    if type(version) is not int or set(outer) != {"coterie", "kind", "body"}:
        raise ProtocolError("This is no message of coterie: it must have 'coterie', 'kind' and 'body'.")
    if version != VERSION:
        raise ProtocolError(
            f"The message has version {str(version)[:20]} and this coterie reads version {VERSION}: "
            "use the same version of coterie at all sites."
        )
    result = outer["kind"]
    if not isinstance(result, str) or result not in KINDS or (kind is not None and result != kind):
        expected = kind or "one of " + ", ".join(KINDS)
        raise ProtocolError(f"The message must be {expected}. Got {str(result)[:60]!r}.")
    message: Message = from_plain(KINDS[result], outer["body"], result)
    return message


@lru_cache(maxsize=64)
def question_key(question: Question) -> str:
    """Return the sha256 by which answers name their question."""
    return digest(encode(question))
