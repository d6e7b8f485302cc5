"""What would reduce the variation of the next run: changes of its causes, and what is predicted to follow.

`scenarios` names changes and makes them in a frame of features, `effects` tells what changes in the prediction,
`pairs` finds runs that were really done again with the change, and says what follows and what does not,
`answering` puts the model in use behind all this. Source: Zhu et al. 2023, section 7; the comparison is ours."""
