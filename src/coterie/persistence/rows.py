"""What holds for an object of any allowed type: a row of the table."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from coterie.persistence.archive import PersistenceError, unfit
from coterie.persistence.compiled import Build
from coterie.persistence.parameters import MOST_COLUMNS, cleaned, may_be
from coterie.persistence.rules import Rule, Sizes, count, is_plain


def _parameters_of(cls: Callable[..., Any]) -> frozenset[str]:
    named = inspect.signature(cls).parameters.values()
    return frozenset(p.name for p in named if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))


@dataclass(frozen=True)
class Row:
    """What an object of a type may be made of.

    ``fitted`` are the attributes that its code relies on, ``missing`` those of them that a fitted object may
    lack, with blanks between, and ``parameters`` those for which the rule of their name is too wide.
    ``sound`` tells whether attributes that pass one by one also fit each other. ``build`` makes an object of
    compiled code from its arguments and its state. ``loader`` is how skops writes the type.
    """

    fitted: Mapping[str, Rule] = field(default_factory=dict)
    missing: str = ""
    parameters: Mapping[str, Rule] = field(default_factory=dict)
    sound: Callable[[dict[str, Any]], bool] | None = None
    build: Build | None = None
    loader: str = "ObjectNode"

    def _passes(self, cls: type[Any], known: frozenset[str], name: str, value: Any, sizes: Sizes) -> bool:
        if name in self.fitted:
            return self.fitted[name](value, sizes)
        if name in self.parameters:
            return self.parameters[name](value, sizes)
        if name in known:
            return may_be(name, value, sizes)
        # An attribute of the class itself is a method, or a constant that its code relies on.
        return name.isidentifier() and not hasattr(cls, name) and is_plain(value)

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
        # In the order of the table: the first array sets a size, and the others have to agree.
        known = _parameters_of(cls)
        order = [*(key for key in self.fitted if key in attributes), *attributes]
        for key in dict.fromkeys(order):
            if not self._passes(cls, known, key, attributes[key], sizes):
                self._refuse(cls, name, key)
        needed = set(self.fitted) - set(self.missing.split())
        whole = needed <= set(attributes) or needed.isdisjoint(attributes)
        if not whole or not (self.sound is None or needed.isdisjoint(attributes) or self.sound(attributes)):
            raise unfit(f"holds a {cls.__name__} whose parts do not fit each other")
        return attributes

    def _refuse(self, cls: type[Any], name: str, key: str) -> NoReturn:
        if key in self.fitted:
            raise unfit(f"holds a {cls.__name__} whose parts do not fit each other ({key!r})")
        raise PersistenceError(
            f"The file holds a {cls.__name__} whose {key!r} is not among what coterie trusts: if you know it "
            f"and trust where the file comes from, use load(path, trusted=[{name!r}])."
        )
