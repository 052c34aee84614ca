"""One likelihood: who belongs together, how many, how surely."""
