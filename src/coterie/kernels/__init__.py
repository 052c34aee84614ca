"""The arithmetic of losses, below the method and without knowledge of it.

`affine` turns linear models and learners' second moments into one matrix product, `losses` lets any model
predict on concatenated rows, `tiles` gives losses out piece by piece, `similarities` does so with what they
say. `matrix_free` has the spectrum of these without storing them, on the device that `devices` picks, where
`fused` multiplies on a GPU. `kmeans` clusters many small point sets at once, `limits` says what is many.
"""
