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
        """Refuse a share whose names or numbers are out of range.

        A share may come from somebody hostile; whoever reads one relies on these ranges.
        """
        check_site(self.site)
        check_classes(self.classes)
        # Shares of classes: one each, none negative, and one in sum but for rounding.
        shares_are_whole = (
            len(self.class_shares) == len(self.classes) and min(self.class_shares, default=0.0) >= 0
        )
        shares_are_whole = shares_are_whole and (not self.classes or abs(sum(self.class_shares) - 1) < 1e-9)
        require(shares_are_whole, f"{self.site!r} must state the share of each class.")
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
        has_all_spreads = len(self.spreads) == len(self.columns) and min(self.spreads) >= 0
        require(has_all_spreads, f"{self.site!r} must state a spread for each column.")
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
        Mean of its clipped squared residuals out of fold: of rows that the model was not fitted on.
    noise_variance : float
        Sampling variance of the logarithm of the noise level.
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
# For each member, the clusters that predict the first and the second half of its rows.
Picks = tuple[tuple[int, int], ...]


def _check_labels(labels: tuple[int, ...], n_members: int) -> None:
    """Refuse a labelling without one label per member, or with labels outside 0 to n - 1."""
    require(len(labels) == n_members, f"A labelling must have one label for each of the {n_members} members.")
    require(min(labels) >= 0 and max(labels) < n_members, "A label is out of range.")


def _check_picks(picks: Picks, labels: tuple[int, ...]) -> None:
    """Refuse picks that do not name, for each half of every member, a cluster of the labelling.

    A pick is the cluster whose average predicts one half of a member's rows.
    """
    require(len(picks) == len(labels), "There must be picks for every member.")
    clusters = set(range(max(labels) + 1))
    require(clusters.issuperset(k for pair in picks for k in pair), "A pick is out of range.")


@dataclass(frozen=True)
class AveragedSite:
    """A member: a site whose model takes part in averages.

    ``sha`` is the sha256 of its model and ``weight`` what it weighs in averages. ``noise`` is the site's
    noise level, its typical squared residual.
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
    """Two forms of prediction whose losses are to be compared row by row.

    A form has ``labels``, the clusters of the members, and ``picks``, which of these clusters predicts each
    half of each member's rows.
    """

    labels: tuple[int, ...]
    picks: Picks
    other_labels: tuple[int, ...]
    other_picks: Picks


Labels = tuple[int, ...]
Table = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class MixingQuestion:
    """The predictors that mixtures weigh: own models, and the clusters' averages for some labellings.

    Each site corrects an average by an offset, or by offset and slopes, with random-effects shrinkage.
    ``ratios`` has the variances of offset and slopes for each labelling, in units of the noise: first with an
    offset only, then with both.
    """

    labellings: tuple[Labels, ...]
    ratios: tuple[tuple[tuple[float, float], ...], tuple[tuple[float, float], ...]]

    def __post_init__(self) -> None:
        require(0 < len(self.labellings) <= MOST_LABELLINGS, "A mixture has no or too many labellings.")
        has_all_ratios = all(len(part) == len(self.labellings) for part in self.ratios)
        require(has_all_ratios, "There must be ratios for every labelling of a mixture.")
        require(min(min(pair) for part in self.ratios for pair in part) >= 0, "A ratio is negative.")


@dataclass(frozen=True)
class JudgingQuestion:
    """A partition and mixtures of models that the sites are to judge by their rows.

    ``labels`` is the partition and ``mixing`` the predictors that are mixed. ``weights`` has a table for each
    member. Its columns are the own model, the averages with an offset, and the averages with offset and
    slopes. Its rows are weights learnt without each fold of the member's rows, and last those of all folds.
    """

    labels: Labels
    mixing: MixingQuestion
    weights: tuple[Table, ...]

    def __post_init__(self) -> None:
        """Refuse weights without one table per member, all of the same shape, with every column."""
        # The own model, and each average twice: with an offset, and with offset and slopes.
        n_columns = 2 * len(self.mixing.labellings) + 1
        table_shapes = {(len(table), len(row)) for table in self.weights for row in table}
        require(
            len(self.weights) == len(self.labels)
            and len(table_shapes) == 1
            and {c for _, c in table_shapes} == {n_columns},
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
        """Refuse a question that is too large, or whose labellings do not fit its members.

        The limit keeps a site from computing without end, and from giving single rows away.
        """
        n_members = len(self.members)
        sites = [member.site for member in self.members]
        require(
            0 < n_members <= MOST_SITES, f"A question is about 1 to {MOST_SITES} members. Got {n_members}."
        )
        require(sites == sorted(set(sites)), "The members of a question must differ and be sorted.")
        require(min(self.units, default=0.0) >= 0, "A unit is negative.")
        # Everything with a label for each member is checked, wherever it stands in the question.
        mixings = [self.mixing, None if self.judging is None else self.judging.mixing]
        mixed_labellings = [
            labels for mixing in mixings if mixing is not None for labels in mixing.labellings
        ]
        judged_labellings = [] if self.judging is None else [self.judging.labels]
        n_labellings = len(self.labellings) + len(self.pairings) + len(mixed_labellings)
        require(
            n_labellings <= MOST_LABELLINGS,
            f"A question asks for {n_labellings} labellings: at most {MOST_LABELLINGS}.",
        )
        paired_labels = ((p.labels, p.other_labels) for p in self.pairings)
        for labels in (
            *self.labellings,
            *mixed_labellings,
            *judged_labellings,
            *(paired for pair in paired_labels for paired in pair),
        ):
            _check_labels(labels, n_members)
        for pairing in self.pairings:
            _check_picks(pairing.picks, pairing.labels)
            _check_picks(pairing.other_picks, pairing.other_labels)


@dataclass(frozen=True)
class Products:
    """Gram matrices R'R of a site's out-of-fold residuals, fold by fold, and the rows behind them.

    The columns of the residuals are the predictors of `JudgingQuestion.weights`. Mixing weights are learnt
    from these matrices, so that residuals need not travel.
    """

    folds: tuple[Table, ...]
    counts: tuple[float, ...]

    def __post_init__(self) -> None:
        shapes = {(len(table), len(row)) for table in self.folds for row in table}
        # All folds have tables of one square shape, a row and a column for each predictor that is mixed.
        are_square = len(shapes) == 1 and all(rows == columns for rows, columns in shapes)
        require(
            are_square and len(self.counts) == len(self.folds) > 1, "Products come as square tables by fold."
        )
        require(min(self.counts) >= 0, "A number of rows is negative.")


@dataclass(frozen=True)
class Verdict:
    """What a partition and a mixture bring a site, in numbers of its own rows.

    All losses are of rows that a model was not fitted on. An excess is a mean difference of losses and its
    standard error. ``clusters``: the excess of each cluster's average over the site's own model; None: nobody
    else is there. ``constant``: that of the site's cluster over the mean of its response. ``coterie``: that
    of the average of the site's coterie over the site alone. ``errors``: mean squared error and its standard
    error, alone, with others, with all.

    ``early``, ``own`` and ``others`` are mean bounded losses on ``n_rows`` rows: of own models fitted on half
    of the rows, of own models fitted on more, and of the mixture. ``variance`` is that of relative
    differences of losses alone and with others, ``distance`` the mean squared distance of the predictions.
    All are zero where nothing could be compared, and ``exact`` tells that there is no error.

    ``inflation`` is the factor by which dependence between rows inflates variances. ``membership``: in which
    share of bootstrap samples each cluster predicts the site best; empty: not measured. ``line`` are slopes
    and intercept that the site adds to its mixture, and ``limits`` what the line is clipped to. ``range`` is
    that of its response with a margin: its own model is clipped to it where it predicts alone.

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
        # Excesses may be negative, their standard errors may not.
        standard_errors = [
            pair[1] for pair in (*self.clusters, self.constant, self.coterie) if pair is not None
        ]
        compared_numbers = self.early, self.own, self.others, self.n_rows, self.variance
        not_negative = (
            min((*standard_errors, *compared_numbers, *(part for pair in self.errors for part in pair))) >= 0
        )
        require(not_negative, "An error or its spread is negative.")
        # Zero rows mean that nothing could be compared; else all of these numbers are positive.
        is_complete = self.n_rows == 0 or (min(compared_numbers) > 0 and self.distance >= 0)
        require(is_complete and self.inflation > 0, "What could be compared must have an error and a spread.")
        require(all(0 <= share <= 1 for share in self.membership), "A membership is no share.")
        are_ordered = self.limits[0] <= self.limits[1] and self.range[0] <= self.range[1]
        require(are_ordered, "Limits are the wrong way round.")


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
        losses = (
            number for labelling in self.halves for pair in labelling for number in pair if number is not None
        )
        require(all(loss >= 0 for loss in losses), f"{self.site!r} answered a negative loss.")
        require(all(pair[1] >= 0 for pair in self.pairings), f"{self.site!r} answered a negative spread.")
        # All tables have one grid of variances. Log-likelihoods are relative to the largest, so none is
        # positive.
        row_lengths = {len(row) for table in self.likelihoods for row in table}
        require(len(row_lengths) <= 1, f"The likelihoods of {self.site!r} are no tables.")
        largest = max((number for table in self.likelihoods for row in table for number in row), default=0.0)
        require(largest <= 0, f"{self.site!r} answered a likelihood above the largest one.")


# Raised whenever a message gains, loses or changes a field.
VERSION = 5

Message = Share | Score | Question | Answer | Conclusion | Moments | Columns | Encoding
KINDS: Mapping[str, type[Any]] = {kind.__name__.lower(): kind for kind in get_args(Message)}


def kind_of(message: Message) -> str:
    """Return the name of a message's kind, such as "share": the class in lower case."""
    return type(message).__name__.lower()


def encode(message: Message) -> bytes:
    """Return a message as bytes of JSON with version and kind, the same for the same message.

    Parameters
    ----------
    message : Share, Score, Question, Answer, Conclusion, Moments, Columns or Encoding
        What to send.

    Returns
    -------
    bytes
        JSON that `decode` reads.
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
    envelope = parse(content, "message")
    version = envelope.get("coterie")
    # Exactly an int: True would pass for one otherwise.
    if type(version) is not int or set(envelope) != {"coterie", "kind", "body"}:
        raise ProtocolError("This is no message of coterie: it must have 'coterie', 'kind' and 'body'.")
    if version != VERSION:
        raise ProtocolError(
            f"The message has version {str(version)[:20]} and this coterie reads version {VERSION}: "
            "use the same version of coterie at all sites."
        )
    stated_kind = envelope["kind"]
    if (
        not isinstance(stated_kind, str)
        or stated_kind not in KINDS
        or (kind is not None and stated_kind != kind)
    ):
        expected = kind or "one of " + ", ".join(KINDS)
        raise ProtocolError(f"The message must be {expected}. Got {str(stated_kind)[:60]!r}.")
    message: Message = from_plain(KINDS[stated_kind], envelope["body"], stated_kind)
    return message


@lru_cache(maxsize=64)
def question_key(question: Question) -> str:
    """Return the sha256 by which answers name their question, and files theirs.

    It is remembered, since encoding a large question takes a while.
    """
    return digest(encode(question))
