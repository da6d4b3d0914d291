#!/usr/bin/env bash
# mitmproxy 11.0.2, saving flows as HAR (addons/savehar.py):
# 1. `response.content.size` is the compressed length, equal to `bodySize`; HAR 1.2 says that it is the length of the
#    content, bigger than `bodySize` where that was compressed. A reader that compares it with the text sees a cut-off one.
# 2. The body of a DELETE is left out (`postData` is written for POST, PUT and PATCH alone), though `bodySize` counts it:
#    a reader that looks at `postData` only takes it for a call without a body.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q mitmproxy==11.0.2
cat > "$folder/show.py" <<'PY'
import gzip
from mitmproxy.addons.savehar import SaveHar
from mitmproxy.test import taddons, tflow, tutils

kind = (b"content-type", b"application/json")
plain = b'{"a": "' + b"x" * 1000 + b'"}'
coded = gzip.compress(plain)
response = tutils.tresp(headers=((b"content-encoding", b"gzip"), kind), content=coded)
request = tutils.treq(method=b"DELETE", headers=(kind,), content=b'{"lines":[1]}')
addon = SaveHar()
with taddons.context(addon):
    entry = addon.make_har([tflow.tflow(req=request, resp=response)])["log"]["entries"][0]
asked, content = entry["request"], entry["response"]["content"]
print("size", content["size"], "bodySize", entry["response"]["bodySize"], "text", len(content["text"]))
print("DELETE: bodySize", asked["bodySize"], "postData" in asked)
assert content["size"] == len(coded) < len(content["text"])
assert asked["bodySize"] == 13 and "postData" not in asked
PY
"$folder/venv/bin/python" "$folder/show.py"
