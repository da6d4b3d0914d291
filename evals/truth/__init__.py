"""What the rehearsals of a strong model were told, marked and judged as: recorded turns read again, without a model."""
