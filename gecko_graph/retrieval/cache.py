"""Indexes kept in a folder: found by a digest of the tools, checked before they are used, never pickled."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple

from ..errors import GeckoError

FORMAT = "gecko tool index 1"
"""Changes with words, weights and layout: older files are then built anew."""


class IndexCache(NamedTuple):
    """The files of one set of tools."""

    folder: Path
    digest: str

    @classmethod
    def open(cls, folder: str | Path, texts: Iterable[tuple[str, ...]]) -> IndexCache:
        """Return the cache of tools with these texts. Raises GeckoError where the folder cannot be made."""
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise GeckoError(f"cache: expected a folder, got {str(folder)!r} ({error.strerror})") from None
        found = sha256(FORMAT.encode())
        for each in texts:
            found.update(json.dumps(each).encode())
        return cls(Path(folder), found.hexdigest()[:32])

    def save(self, kind: str, parts: Mapping[str, Any], words: Iterable[str] = ()) -> None:
        """Keep an index; where the folder cannot be written to, it is built anew the next time."""
        import numpy as np

        arrays: Any = {**parts, "words": np.frombuffer(json.dumps([*words]).encode(), "uint8"), "digest": self.digest}
        with suppress(OSError), NamedTemporaryFile(dir=self.folder, suffix=".tmp", delete=False) as file:
            np.savez(file, **arrays)
            file.close()
            os.replace(file.name, self.folder / f"{self.digest}-{kind}.npz")

    def load(self, kind: str, count: int) -> dict[str, Any] | None:
        """Return the index of so many tools; None where there is none, or anything about it is wrong."""
        import numpy as np

        try:
            content = (self.folder / f"{self.digest}-{kind}.npz").read_bytes()
            with np.load(BytesIO(content), allow_pickle=False) as file:
                parts: dict[str, Any] = {name: file[name] for name in file.files}
            parts["words"] = json.loads(parts["words"].tobytes())
            fits = _fits(parts, count) if kind == "words" else parts["vectors"].shape[:1] == (count,)
            return parts if fits and str(parts.pop("digest")) == self.digest else None
        except Exception:  # noqa: BLE001 - whatever is wrong with a file, the index is built anew
            return None


def _fits(parts: dict[str, Any], count: int) -> bool:
    """Return whether the parts are a sparse matrix of words and tools: no place in it leads outside."""
    data, rows, ends, words = parts["data"], parts["indices"], parts["indptr"], parts["words"]
    parts["num_docs"] = int(parts["num_docs"])
    in_order = ends[0] == 0 and ends[-1] == len(data) == len(rows) and bool((ends[1:] >= ends[:-1]).all())
    inside = parts["num_docs"] == count and rows.min() >= 0 and rows.max() < count and data.dtype == "float32"
    whole = len(ends) - 1 <= len({str(word) for word in words}) == len(words) <= len(ends)
    return bool(in_order and inside and whole)
