"""A fit, whole: what is known when the method has run, and what can be done to it afterwards.

`admit` places newcomers, `remove` takes learners out, `out_of_core` reads learners one by one where their
rows do not fit into memory together.
"""
