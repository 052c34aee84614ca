"""What a learner is told: whether its coterie pays, and where a newcomer belongs."""

from __future__ import annotations

from coterie.verdicts.admission import Admission, place_newcomers
from coterie.verdicts.gains import Gains, measure_gains, newcomer_gains

__all__ = ["Admission", "Gains", "measure_gains", "newcomer_gains", "place_newcomers"]
