"""The audit: prove that displayed lists were safe, or name the row that was not."""
