"""Refine: learners move to the cluster whose model predicts them best.

`moves` is the loop. It asks one question, what the clusters of a labelling lose on each learner, which
`losses` states as a protocol. How a cluster predicts is one file each: by the average of its members'
models (`averages`), by one linear model of its members' rows (`pooled`), or by one flexible model of them
(`refits`, with `flexible`).
"""
