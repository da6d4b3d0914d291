"""Services to learn from (the shop, S3, the phone, the airline): random or recorded calls as rows."""
