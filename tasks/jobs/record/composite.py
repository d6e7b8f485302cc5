"""A whole job as one query: what its vertices and their merge compute together, for the planner to look at."""


def composite(sql: str, merge: str) -> str:
    """The merge over the vertices' query in place of {partials}; the query itself where nothing is merged.

    {input} and the parameters stay as they are, so that the caller puts in the whole input of the job.
    """
    return merge.replace("{partials}", f"({sql})") if merge else sql
