"""Why a run is expected to take long, and why a job varies: contributions of features, reasons in words, and checks.

`contributions` takes the predictor and the classifiers apart, `causes` groups features that mean the same and holds the
reasons against causes that were recorded, `reasons` says the largest in words, `explaining` answers for one run or the
next of a job, `insights` tests the claims of the paper, `whole_source` does so for all held-out runs.
Source: Zhu et al. 2023, section 6; Lundberg & Lee 2017.
"""
