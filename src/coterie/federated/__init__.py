"""The same method for parties whose rows may not move: they exchange models and scalar losses, never rows.

What travels is small and checked on arrival: models by `coterie.federated.wire`, everything else as plain
messages. A peer's file is taken for hostile until it has been read through.
"""
