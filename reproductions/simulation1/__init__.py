"""Simulation 1: how often all clusters are found."""
