"""Texts with a secret in them, and texts that only look so. Put together here, for scanners' sake."""

from __future__ import annotations

WORD = "Zq12Cd34Ef56Gh78Ij90Kl12Mn34Op56"
"""What stands in every secret, and nowhere else."""

HEX = "9f86d081884c7d659a2feaa0c55ad015"

FORMATS = [
    "Incorrect API key provided: sk-{w}", "sk-proj-{w}_T3Blbk", "sk-ant-api03-{w}-AA", "sk-or-v1-{w}", "AIza{w}",
    "GET https://api.example.com/v1/models?key={w} gave 403", "https://maps.example.com/?q=a&key={w}&z=3",
    "gsk_{w}", "xai-{w}", "hf_{w}", "r8_{w}", "pplx-{w}", "nvapi-{w}", "lsv2_pt_{w}_ab", "tvly-{w}",
    "aws_secret_access_key = {w}/bPxRfiC", "AKIAIOSFODNN7EXAMPLE:{w}AbCdEf12", "x-api-key: {w}", "X-Api-Key={w}",
    "api-key: {w}", "Ocp-Apim-Subscription-Key: {w}", "X-Auth-Token: {w}", "{{'x-goog-api-key': '{w}'}}",
    "connect to http://ann:{w}@models.example.com:8000/v1 failed", "postgres://app:{w}@db:5432/shop",
    "redis://:{w}@cache:6379/0", "mongodb+srv://app:p%40{w}@cluster.example.com", "amqp://guest:{w}@mq/",
    "ann:{w}@db.example.com:5432", "root:{w}@tcp(127.0.0.1:3306)/shop", "bearer {w}", "Authorization: Bearer {w}",
    "authorization: token {w}", "Proxy-Authorization: Basic {w}", "Basic {w}==",
    "{{\"Authorization\": \"Bearer {w}\"}}",
    "ghp_{w}", "gho_{w}", "github_pat_11AB_{w}", "glpat-{w}", "xoxb-1234-{w}", "xapp-1-{w}", "npm_{w}", "pypi-AgEI{w}",
    "https://hooks.slack.com/services/T0/B0/{w}", "https://discord.com/api/webhooks/12345/{w}", "SG.{w}.abc-def",
    "sk_live_{w}", "rk_test_{w}", "whsec_{w}", "dop_v1_{w}", "shpat_{w}", "hvs.{w}", "ya29.{w}", "GOCSPX-{w}",
    "1//0{w}",
    "eyJ{w}.eyJzdWIiOiIxIn0.{w}", "-----BEGIN PRIVATE KEY-----\n{w}\n{w}\n-----END PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4\n\n{w}\n-----END RSA PRIVATE KEY-----",
    "Cookie: theme=dark; sid={w}",
    "Set-Cookie: session={w}; HttpOnly", "password={w}", "password: {w}", "Server=db;Uid=sa;Pwd={w};", "token={w}",
    "{{\"password\": \"two words {w}\"}}", "{{'token': '{w}'}}", "{{\\\"client_secret\\\": \\\"{w}\\\"}}",
    "https://example.com/cb?access_token={w}#top", "https://s3.example.com/a?X-Amz-Signature={w}&x=1",
    "https://blob.example.com/c?sv=2022&sig={w}", "AccountName=a;AccountKey={w}==;", "1234567890:AA{w}", "key-{w}",
    "https://{w}@github.com/ann/desk.git", "https://ann@example.com:{w}@git.example.com/", "npx shop --api-key {w} -v",
    "--password {w}", "Headers([('x-api-key', '{w}'), ('a', 'b')])", "(b'x-api-key', b'{w}')", "('api_key', '{w}')",
    '[("Authorization", "Bearer {w}")]', "the password '{w}' is wrong", 'with the password "{w}"',
    "curl -u ann:{w} https://api.example.com", "curl --user 'ann:{w}' x", "curl -uann:{w}", "mysql -u root -p{w} shop",
    "mysqldump --all -p'{w}'", "location: https://example.com/in?next=%2Fa%3Ftoken%3D{w}%26b%3D1",
    "location: /in?to=https%3A%2F%2Fann%3A{w}%40db.example.com%2F",
]  # fmt: skip
SECRETS = [text.format(w=WORD) for text in FORMATS]
SECRETS_IN_HEX = [
    "Authorization: Digest username=\"ann\", nonce=\"n\", uri=\"/\", response=\"{w}\"", "AC" + 32 * "a" + ":{w}",
    "curl -u SK" + 32 * "0" + ":{w}",
]  # fmt: skip

LOOK_ALIKES = [
    "f47ac10b-58cc-4372-a567-0e02b2c3d479", "da39a3ee5e6b4b0d3255bfef95601890afd80709", "5cffd46", HEX,
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", f"sha256:{HEX}", f"md5 {HEX}", "INV-1042",
    "order ORD-2024-001234", "SKU-99812-B", "ISBN 978-3-16-148410-0", "DE89 3704 0044 0532 0130 00", "aGVsbG8gd29ybGQ=",
    "2026-11-22T04:02:20Z", "/usr/lib/python3.11/json/decoder.py", "flight LH1234 to FRA", "4929123412341234",
    "langgraph==1.2.13", 'ETag: "33a64df551425fcc55e4d42a148795d9f25f89d4"', "+49 170 1234567", "ann@example.com",
    "mailto:ann@example.com", "https://example.com/a?page=2&sort=name", "http://localhost:8000/v1", "task-1a2b3c4d",
    "a risk-averse plan", "key 'number' is missing", "token: expected a string", "max_tokens=4096", "tokens_left=12",
    "prompt tokens: 1234", "a bearer token is missing", "basic authentication failed", '{"next_page_token": "abc"}',
    "password: is required", "KeyError: 'user_id'", "ssh://git@github.com/ann/desk", "10.0.0.1:8080",
    "00:1A:2B:3C:4D:5E", "cookie: disabled", "unexpected token '<' at 12", "X-Request-Id: req_0123456789abcdef",
    "call_abc123DEF456", "primary key = 42", "see you at 12:30@home", "AC/DC 0123456789", "Sketch-123456",
    "https://ann-0123@example.com/desk", "http://ann@example.com:8080/a@b", "--max-tokens 4096", "--token is missing 1",
    "--password --verbose=1", "required: ['password', 'email']", "docker run -u 1000:1000 alpine", "mysql -p shop",
    "('name', 'Ann')", "unexpected token 'x1' at 12", f"response {HEX}", "location: /a%3Fpage%3D2",
]  # fmt: skip
