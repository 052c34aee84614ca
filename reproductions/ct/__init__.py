"""CT slices: Table 3."""
