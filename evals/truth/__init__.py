"""Parts of the suite `truth`: evaluate recorded turns and replies (questions, verdicts, marks) without a model."""
