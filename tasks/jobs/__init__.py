"""How will the next run of this recurring job vary, why, and what would reduce it?"""
