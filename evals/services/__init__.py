"""Services to learn from: what is called at random, or was recorded, as rows; the shop, S3, the phone, the airline."""
