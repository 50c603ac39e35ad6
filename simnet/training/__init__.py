"""Jobs: workers that compute and exchange gradients, as SimPy processes."""
