"""Hypothesis profiles: quick and repeatable by default, ``HYPOTHESIS_PROFILE=thorough`` for a long search."""

import os

from hypothesis import HealthCheck, settings

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("default", max_examples=60, derandomize=True, deadline=None, suppress_health_check=QUIET)
settings.register_profile("thorough", max_examples=1000, deadline=None, suppress_health_check=QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
