"""How the next run of a recurring job will vary: features, shapes as labels, and predicted runtime distributions.

Source: Zhu et al. 2023, section 5."""
