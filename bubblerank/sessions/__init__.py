"""The way of a click log into blocks: read, validate, group by query, pack."""
