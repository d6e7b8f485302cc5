"""What tables write where a value is missing."""

MISSING_WORDS = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "NaT", "\\N"]
