"""What a site tells of itself and of everybody's models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coterie.federated.codec import LARGEST
from coterie.federated.messages.checks import (
    FEWEST_ROWS,
    MOST_COLUMNS,
    MOST_SITES,
    check_site,
    digest,
    require,
)


@dataclass(frozen=True)
class Blur:
    """How a site blurs its numbers: clipping, then the Gaussian mechanism.

    ``epsilon`` and ``delta`` are spent by this message. ``clip`` is what the norm of the coefficients, or the
    squared residuals, were clipped to.
    """

    epsilon: float
    delta: float
    clip: float


@dataclass(frozen=True)
class Share:
    """What a site tells of itself: its model and a few numbers.

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
    privacy : Blur or None, default=None
        How the model was made private, where it was.
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
    privacy: Blur | None = None

    def __post_init__(self) -> None:
        check_site(self.site)
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
        require(len(self.model) > 0, f"The model of {self.site!r} is empty.")

    @property
    def sha(self) -> str:
        """The sha256 of the model."""
        return digest(self.model)


@dataclass(frozen=True)
class Loss:
    """What a peer's model, named by its sha256, loses on a site's rows: the mean squared error.

    It is None where the model could not be read or did not predict finite values.
    """

    sha: str
    value: float | None

    def __post_init__(self) -> None:
        require(self.value is None or self.value >= 0, f"A loss is negative: {self.value}.")


@dataclass(frozen=True)
class Gram:
    """Mean products of all models' predictions with each other and with the response, on half of the rows.

    The models are in the order of `Score.losses` sorted by site, without those that have no loss. ``square``
    is the mean square of the response, ``own`` that of the site's own honest residuals.
    """

    models: tuple[tuple[float, ...], ...]
    response: tuple[float, ...]
    square: float
    own: float

    def __post_init__(self) -> None:
        size = len(self.response)
        good = len(self.models) == size and all(len(row) == size for row in self.models)
        require(good, "A Gram matrix must be square, with a product with the response for every model.")
        require(min(self.square, self.own) >= 0, "A mean square is negative.")


@dataclass(frozen=True)
class Score:
    """What everybody's models lose on a site's rows.

    Parameters
    ----------
    site : str
        Who speaks.
    sha : str
        The sha256 of its own model.
    losses : mapping of str to Loss
        By site, its own included.
    noise : float
        Mean of its clipped squared honest residuals.
    noise_variance : float
        Sampling variance of the logarithm of the former.
    half_sizes : tuple of int
        Rows in the two halves on which averages are scored.
    grams : tuple of Gram, or None, default=None
        For each half, where the site agreed to reveal it.
    privacy : Blur or None, default=None
        How the losses were made private, where they were.
    """

    site: str
    sha: str
    losses: Mapping[str, Loss]
    noise: float
    noise_variance: float
    half_sizes: tuple[int, int]
    grams: tuple[Gram, Gram] | None = None
    privacy: Blur | None = None

    def __post_init__(self) -> None:
        check_site(self.site)
        require(0 < len(self.losses) <= MOST_SITES, f"{self.site!r} scored {len(self.losses)} models.")
        require(self.site in self.losses, f"{self.site!r} did not score its own model.")
        require(self.losses[self.site].sha == self.sha, f"{self.site!r} scored another model as its own.")
        require(self.noise > 0, f"The noise level of {self.site!r} is not positive.")
        require(self.noise_variance >= 0, f"The variance of the noise of {self.site!r} is negative.")
        require(min(self.half_sizes) >= 0, f"A half of {self.site!r} has a negative number of rows.")

    @property
    def finite(self) -> tuple[str, ...]:
        """The sites whose models have a loss, sorted."""
        return tuple(sorted(site for site, loss in self.losses.items() if loss.value is not None))
