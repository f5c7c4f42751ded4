"""Features and weights of `HierarchicalCRF`.

`model` from encoded sequences to lattices and from expectations back to weights; `occurrences` what targets say of
features; `build` which features there are; `objective` for training; `packing` for files.
"""
