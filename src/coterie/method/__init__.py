"""The method, in the paper's words: Select, Exchange, Cluster, with Refine and the number of clusters.

`select` lets every learner choose a model on its own rows. `exchange` evaluates the models on each other's
rows. `spectral` clusters the learners by these losses, `refine` moves each learner to the cluster that
predicts it best, and `n_clusters` says how many clusters there are. `search` runs the last three together,
on losses and on whatever can answer for the rows behind them; `cluster` does so for rows that are here.
Collaborate is a folder of its own.

A stage is a pure function from records to a record. Stages do not know each other.
"""
