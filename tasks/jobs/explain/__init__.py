"""Why a run is expected to take long, and why a job varies: SHAP values, reasons in words, and checks of both.

`contributions` takes a LightGBM model apart, `odds` and `against_job` turn the parts into what is asked about, `causes`
groups features that mean the same, `reasons` says the largest in words, `compare` sets two shapes side by side,
`causes_check` holds the reasons against causes that were recorded, and `insights` tests the claims of the paper.
Source: Zhu et al. 2023, section 6; Lundberg & Lee 2017.
"""
