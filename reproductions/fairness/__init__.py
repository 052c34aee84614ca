"""Fairness without the sensitive variable: Table 1."""
