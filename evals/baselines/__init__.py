"""The methods that the rehearsal is compared with."""
