"""What all readers share: files opened with care, tables of any make, labels, pseudonyms, and the way into landing."""
