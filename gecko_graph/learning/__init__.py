"""Learn contracts from real calls."""
