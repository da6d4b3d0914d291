"""The agent: rehearse, review, make the calls once, keep the state in step with reality."""
