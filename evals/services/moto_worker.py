"""Serve moto's in-memory S3 through lines of JSON; imports nothing of this project, so any environment can run it.

An empty line deletes all buckets.
"""

import json
import sys
from typing import Any

import boto3  # type: ignore[import-not-found, unused-ignore]
from botocore.exceptions import ClientError  # type: ignore[import-not-found, unused-ignore]
from moto import mock_aws  # type: ignore[import-not-found, unused-ignore]

REGION = "eu-north-1"
KEPT = ("Buckets", "Contents", "Name", "Key", "Size", "ContentLength", "Location", "KeyCount", "Body")


def plain(value: object) -> object:
    """Return the JSON content of an answer, without what differs between runs."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if key in KEPT}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.read().decode() if hasattr(value, "read") else value


def call(client: Any, name: str, args: dict[str, str]) -> tuple[str, object]:
    more: dict[str, Any] = {}
    if name == "create_bucket":
        more = {"CreateBucketConfiguration": {"LocationConstraint": REGION}}
    if name == "copy_object":
        args = {
            "Bucket": args["Bucket"],
            "Key": args["Key"],
            "CopySource": f"{args['SourceBucket']}/{args['SourceKey']}",
        }
    try:
        return "ok", plain(getattr(client, name)(**args, **more))
    except ClientError as error:
        return "error", {"error": f"{error.response['Error']['Code']}: {error.response['Error']['Message']}"}


line = "\n"
while line:
    with mock_aws():
        s3 = boto3.client("s3", region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x")
        while (line := sys.stdin.readline()).strip():
            print(json.dumps(call(s3, *json.loads(line))), flush=True)
