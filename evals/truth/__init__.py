"""Parts of the suite `truth`: what recorded turns and replies say of questions, verdicts and marks, without a model."""
