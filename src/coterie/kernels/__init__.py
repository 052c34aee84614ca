"""The arithmetic of losses, below the method and without knowledge of it.

`affine` turns linear models and learners' second moments into one matrix product, `blocks` predicts on
concatenated rows, `tiles` gives losses out piece by piece, `noise` measures what no model can predict,
`averages` and `pooled` answer what a set of learners loses together on each learner.
"""
