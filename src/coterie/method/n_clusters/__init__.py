"""How many clusters: the rules, one file each. `coterie.method.search` runs them side by side.

Only ``"held-out"`` needs more than the losses: it runs Cluster and Refine for every number of clusters, and
scores the clusters on rows that neither the assignment nor the model has seen.
"""
