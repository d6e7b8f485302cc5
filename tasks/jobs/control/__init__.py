"""What would reduce the variation of the next run: changes of its causes, and what is predicted to follow.

`scenarios` names changes and reads them as they are asked for, `edits` makes them in a frame of features, `outcomes`
tells what changes in the prediction, `support` where the changed rows leave what the model has seen. `pairs` finds runs
that were really done again with the change and holds the prediction against them, `claims` says what follows and what
does not. `answering` puts the model in use behind all this, `answer_rows` keeps and shows the answers; `synthetic`
makes pairs of known truth for tests.

Source: Zhu et al. 2023, section 7; the measured comparison is ours.
"""
