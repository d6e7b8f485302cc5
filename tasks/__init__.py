"""How the work is done: plain Python that knows nothing of Prefect. `flows` decides when it is done."""
