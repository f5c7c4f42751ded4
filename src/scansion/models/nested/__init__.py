"""Features and weights of `HierarchicalCRF`.

`parameters` the estimator's, checked; `inputs` encoded sequences; `occurrences` what targets say of features; `build`
which features there are; `model` from sequences to lattices and from expectations back to weights; `objective` for
training; `checks` of targets; `packing` for files.
"""
