"""Schema checks: values and schemas on which the two engines are compared."""
