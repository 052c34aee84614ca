"""What holds for an object of any allowed type: a row of the table."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

from coterie.persistence.archive import PersistenceError, unfit
from coterie.persistence.compiled import Build
from coterie.persistence.parameters import MOST_COLUMNS, cleaned, may_be
from coterie.persistence.rules import Rule, Sizes, count, is_plain


def _parameters_of(cls: Callable[..., Any]) -> frozenset[str]:
    """Return the names of a class's parameters."""
    named = inspect.signature(cls).parameters.values()
    return frozenset(p.name for p in named if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))


@dataclass(frozen=True)
class Row:
    """What an object of a type may be made of.

    ``fitted`` are the attributes that its code relies on, ``optional`` those that a fitted object may lack,
    and ``parameters`` those for which the rule of their name is too wide. ``sound`` tells whether attributes
    that pass one by one also fit each other. ``build`` makes an object of compiled code from its arguments
    and its state. ``loader`` is how skops writes the type.
    """

    fitted: Mapping[str, Rule] = field(default_factory=dict)
    optional: Mapping[str, Rule] = field(default_factory=dict)
    parameters: Mapping[str, Rule] = field(default_factory=dict)
    sound: Callable[[dict[str, Any]], bool] | None = None
    build: Build | None = None
    loader: str = "ObjectNode"

    def checked(self, cls: type[Any], name: str, state: Any) -> dict[str, Any] | None:
        """Return the attributes to make an object with, once all are allowed; ``name`` is for the error."""
        if state is None:
            return None
        if not isinstance(state, dict) or not all(type(key) is str for key in state):
            raise unfit(f"holds a {cls.__name__} without attributes")
        attributes = cleaned(state)
        sizes: Sizes = {}
        if count(MOST_COLUMNS, 1)(state.get("n_features_in_"), sizes):
            sizes["p"] = int(state["n_features_in_"])
        parameter_rules = {key: partial(may_be, key) for key in _parameters_of(cls)}
        rules: dict[str, Rule] = {**parameter_rules, **self.parameters, **self.optional, **self.fitted}
        # In the order of the table: the first array sets a size, and the others have to agree.
        in_table = [key for key in (*self.fitted, *self.optional) if key in attributes]
        for key in dict.fromkeys([*in_table, *attributes]):
            # An attribute of the class itself is a method, or a constant that its code relies on.
            free = key.isidentifier() and not hasattr(cls, key)
            value = attributes[key]
            if not (rules[key](value, sizes) if key in rules else free and is_plain(value)):
                self._refuse(cls, name, key)
        needed = self.fitted.keys()
        whole = needed <= attributes.keys() or needed.isdisjoint(attributes)
        if not whole or not (self.sound is None or needed.isdisjoint(attributes) or self.sound(attributes)):
            raise unfit(f"holds a {cls.__name__} whose parts do not fit each other")
        return attributes

    def _refuse(self, cls: type[Any], name: str, key: str) -> NoReturn:
        """Refuse an attribute, and say how to trust it."""
        if key in self.fitted or key in self.optional:
            raise unfit(f"holds a {cls.__name__} whose parts do not fit each other ({key!r})")
        raise PersistenceError(
            f"The file holds a {cls.__name__} whose {key!r} is not among what coterie trusts: if you know it "
            f"and trust where the file comes from, use load(path, trusted=[{name!r}])."
        )
