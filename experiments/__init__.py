"""Experiments on real data, beside published figures. ``python -m experiments --help`` says how to run them.

One module per experiment, with its features, its published figures and ``run(options) -> Report``.
The data sets are not part of the project: see `experiments.data`.
"""
