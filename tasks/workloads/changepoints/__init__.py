"""Where a series changes: Bayesian change points over run lengths, and offline methods behind the same interface.

`finding` is the way in: find_changepoints, find_changepoints_each, their settings, and what they return. `evidence`
chooses the season and noise of a series, `online` keeps the run-length posterior while samples arrive (univariate, or
one shared run length over all counters) and reads change points from it.

Sources: Adams and MacKay 2007 (Bayesian online change point detection); Hossain et al. 2022, CWD, equations 1 to 4;
van den Burg and Williams 2020 (annotated series and scores).
"""
