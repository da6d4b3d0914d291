"""The agent that carries out: rehearse, review, carry out once, stay in step."""
