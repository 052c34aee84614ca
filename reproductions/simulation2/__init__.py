"""Simulation 2: what the candidates change, Table 2."""
