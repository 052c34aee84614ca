"""A site on Flower that sends moments; then comes the conclusion, and nothing else is ever answered.

Private moments are one message. Exact ones are sent once more, above knots that follow from everybody's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coterie.federated import ProtocolError, Site
from coterie.federated.moments import knots_for, open_moments, read_schema
from coterie.federated.moments.ledger import send_once
from coterie.federated.moments.noise import check_promise
from coterie.federated.tables import Moments, Promise

logger = logging.getLogger(__name__)


def _is_true(config: Mapping[str, Any], name: str) -> bool:
    """Tell whether a setting is true; Flower may hand it on as text."""
    return str(config.get(name, False)).lower() == "true"


def sends_moments(config: Mapping[str, Any]) -> bool:
    """Tell whether a node's configuration asks for moments in place of a model."""
    return "epsilon" in config or _is_true(config, "moments")


def _open_moments(site: Site, **more: Any) -> Moments:
    """Return the exact second moments of a site's rows; ``more`` may have the knots to count above."""
    names: dict[str, Any] = {"site": site.name, "columns": site.columns, "target": site.target}
    return open_moments(site.learners.X, site.learners.scalar_y, seed=site.seed, **names, **more)


def bent_moments(site: Site, messages: Sequence[Moments]) -> Moments:
    """Return a node's exact moments with columns above knots, the second message of its two.

    The knots follow from the moments that all sites sent first, so that they are the same everywhere.
    """
    return _open_moments(site, knots=knots_for(messages, _open_moments(site)))


def sends_exact(config: Mapping[str, Any]) -> bool:
    """Tell whether these moments have no noise."""
    return sends_moments(config) and "epsilon" not in config


def refuse_more(config: Mapping[str, Any]) -> None:
    """Refuse every other answer of a node that sends moments.

    The privacy of its rows is that of the moments alone, so losses or models would break the promise.
    """
    if sends_moments(config):
        raise ProtocolError("It sends moments of its rows and nothing else.")


def moments_of_node(
    config: Mapping[str, Any],
    read_rows: Callable[..., tuple[Any, Any]],
    load_site: Callable[[], Site],
) -> Moments:
    """Return the moments of a node's rows: private ones by its ledger, or exact ones.

    ``read_rows`` takes a table's path, the response and the predictors, and returns their columns; ``agreed``
    tells it to guess nothing from entries.
    """
    if "epsilon" not in config:
        return _open_moments(load_site())
    missing_settings = [name for name in ("site", "table", "schema") if name not in config]
    if missing_settings:
        raise ProtocolError(f"Private moments need {missing_settings[0]!r} in the node's configuration.")
    promise = check_promise(Promise(float(config["epsilon"]), float(config.get("delta", 1e-6))))
    schema = read_schema(str(config["schema"]))
    columns = [column.name for column in schema.columns]
    X, y = read_rows(str(config["table"]), schema.target.name, columns, agreed=True)
    notes: list[str] = []
    message, _ = send_once(
        schema.predictors(X, notes),
        schema.response(y.to_frame(), notes),
        site=str(config["site"]),
        schema=schema,
        promise=promise,
        again=_is_true(config, "spend-again"),
    )
    for note in notes:
        logger.warning("%s", note)
    return message
