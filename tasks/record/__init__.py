"""What the recorders of the four words share: each keeps in its own `record/` what it measures and what a row is.

module      answers
plan        how runs are mixed, and what tells one plan from another
campaign    which runs are left, who else records, how a call ends
parts       files: each finished run on disk at once, parts of at most 2 MB in time
facts       the machine, and what others and the hypervisor took of it
processes   what they have used, who was started here and still lives, and how all of it is ended
"""
