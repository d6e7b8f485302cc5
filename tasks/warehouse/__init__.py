"""One DuckDB file for all words, and the only code that imports duckdb."""
