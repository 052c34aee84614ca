"""Nested coteries: alone, clusters at several resolutions and all together, mixed as held-out rows tell.

Nobody knows beforehand whether a learner does best alone, with a few others or with everybody. So all of
these are fitted, each with an offset and slopes of the learner's own, and weighed on rows that they have
not seen: weights that are common to all learners, then moved a little for each.
"""

from __future__ import annotations

from coterie.collaboration.nested.collaborate import nest_coteries
from coterie.collaboration.nested.record import NestedCollaboration

__all__ = ["NestedCollaboration", "nest_coteries"]
