"""What all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

# The same examples in each run, so that a change is judged by what it changes. HYPOTHESIS_PROFILE=explore goes further.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
