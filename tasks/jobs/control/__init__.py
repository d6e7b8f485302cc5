"""What would reduce the variation of the next run: changes of its features, and what is predicted to follow.

`scenarios` names changes, `asking` reads them as they are asked for, `edits` and `edits_skus` make them in a frame of
features. `support` says where the changed rows leave what the model has seen, and `companions` what else differs there;
`measures` and `migration` tell what changes in the prediction; `outcomes` does all that in one call. `pairs` finds runs
that were really done again with the change, `pair_scores` and `pair_spread` hold the prediction against them,
`comparisons` does that in one call, and `claims` says what follows and what does not. `synthetic` makes pairs of known
truth for tests.

`answering` puts a trained model behind all this: `subjects` are the rows that a change is tried on, `placement` adds
what a kind of machine does to runs of the same job, `shape_table` tells the shapes, `conditions` and `measured_words`
say what the measured runs met and showed. `asked_source` begins with a source of the warehouse, `answer_rows` and
`answer_figures` keep and show the answers.

Source: Zhu et al. 2023, section 7; the measured comparison is ours.
"""
