def sensitivity_table(scenario, job):
    return None
