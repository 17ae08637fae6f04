"""What happens to one query's stream: the pure part of the stateful DoFn."""
