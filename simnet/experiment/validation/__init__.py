"""What simnet predicts beside what others measured.

``validation/`` holds the measurements and, for each data set, a description of how its rows are simulated.
"""

from __future__ import annotations

from simnet.experiment.validation.cases import Case, DataSet, load_data_set, load_data_sets
from simnet.experiment.validation.measurements import Measurement, read_measurements
from simnet.experiment.validation.prediction import predict
from simnet.experiment.validation.saving import save_validation
from simnet.experiment.validation.scores import misranked_pairs, score_groups
from simnet.experiment.validation.validate import Validation, validate

__all__ = [
    "Case",
    "DataSet",
    "Measurement",
    "Validation",
    "load_data_set",
    "load_data_sets",
    "misranked_pairs",
    "predict",
    "read_measurements",
    "save_validation",
    "score_groups",
    "validate",
]
