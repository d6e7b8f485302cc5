"""What users ask next: will it be in time, what limit to set, what is late, what has changed, what costs the most."""
