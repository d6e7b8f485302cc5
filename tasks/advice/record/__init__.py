"""Records recurring jobs on several emulated machine types: what decides which type a job should have.

`campaign.record_advice` runs what `plan.make_plan` lays out; `campaign.read_recording` reads it back. Jobs are those of
the recorder of jobs, limits and benchmarks those of the recorder of nodes."""
