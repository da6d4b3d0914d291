"""Services in processes of their own: third-party ones, and several servers on one Postgres."""
