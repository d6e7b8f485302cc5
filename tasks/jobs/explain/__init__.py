"""Why a run is expected to take long, and why a job varies: contributions of features, reasons in words, and checks.

Source: Zhu et al. 2023, section 6; Lundberg & Lee 2017."""
