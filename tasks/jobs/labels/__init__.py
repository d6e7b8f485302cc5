"""Shapes as classes: the label of each job in a period, a classifier that foretells it, and what it is held against.

Source: Zhu et al. 2023, section 5.
"""
