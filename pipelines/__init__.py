"""The Beam pipelines: readers, writers, and the one stateful DoFn."""
