"""Each number of the method halved and doubled, as parts that can be switched like the others."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from typing import Any
from unittest.mock import patch

from parts import Part

from coterie.method.n_clusters.held_out import RULE
from coterie.method.n_clusters.one_truth import DRAWS
from coterie.method.noise import NOISE
from coterie.method.order import SERIAL
from coterie.method.refine.flexible import FLEXIBLE
from coterie.method.refine.moment_starts import SEARCH
from coterie.method.refine.moves import REFINE
from coterie.method.refine.pooled import REASSIGN, RIDGE

FACTORS = {"halved": 0.5, "doubled": 2.0}
# What has to be made again where a number changes; the search, unless it is said.
KINDS = {"NoiseRule": "noise", "SerialRule": "rows"}


def _everywhere(name: str, value: Any, other: Any) -> list[Any]:
    """Return patches for every module that has taken the name."""
    modules = [module for key, module in list(sys.modules.items()) if key.startswith("coterie")]
    return [patch.object(module, name, other) for module in modules if vars(module).get(name) is value]


def _scaled(value: Any, factor: float) -> Any:
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


def _varied() -> list[Part]:
    found = []
    rules = {
        "RULE": RULE,
        "REFINE": REFINE,
        "SEARCH": SEARCH,
        "NOISE": NOISE,
        "SERIAL": SERIAL,
        "REASSIGN": REASSIGN,
        "FLEXIBLE": FLEXIBLE,
    }
    for word, factor in FACTORS.items():
        for name, rule in rules.items():
            for field in fields(rule):
                value = getattr(rule, field.name)
                if not isinstance(value, int | float):
                    continue
                other = replace(rule, **{field.name: _scaled(value, factor)})
                title = f"{type(rule).__name__}.{field.name} {word}"
                kind = KINDS.get(type(rule).__name__, "search")
                found.append(Part(title, lambda n=name, r=rule, o=other: _everywhere(n, r, o), kind))
        for name, value in (("DRAWS", DRAWS), ("RIDGE", RIDGE)):
            other = _scaled(value, factor)
            found.append(Part(f"{name} {word}", lambda n=name, v=value, o=other: _everywhere(n, v, o)))
    return found


VARIED = tuple(_varied())
