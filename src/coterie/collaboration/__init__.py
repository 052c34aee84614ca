"""Collaborate: how each learner predicts, once it is known who learns with whom.

`forms` has what is one thing for everybody: its own model, its coterie's model or average, one model of all
rows. `nested` mixes all of these for each learner, as held-out rows tell; it is the default.
"""
