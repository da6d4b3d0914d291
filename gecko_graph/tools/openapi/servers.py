"""Where an OpenAPI document's operations live, and which credentials they need."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin

from ...errors import ToolkitError
from ...state import JsonObject
from .references import Documents, expect_object, member

_BEARER: JsonObject = {"type": "http", "scheme": "bearer"}


class ServerReader:
    """Reads servers, security schemes and security requirements. OAuth 2 and OpenID Connect become bearer tokens."""

    def __init__(self, documents: Documents, root: JsonObject) -> None:
        self._root, self._address = root, documents.root.document
        self._schemes: dict[str, JsonObject] = {}
        self.broken: list[tuple[ToolkitError, str]] = []
        """Schemes that cannot be read, each with its name."""
        place = documents.root / "components"
        components = expect_object(member(root, "components", {}), place)
        given = expect_object(member(components, "securitySchemes", {}), place / "securitySchemes")
        for name, scheme in given.items():
            try:
                self._schemes[name] = _read_scheme(documents.follow(scheme, place / "securitySchemes" / name)[0])
            except ToolkitError as error:
                self.broken.append((error, name))

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Place and lower-case name of the parameters that carry API keys."""
        return [(one["in"], one["name"].lower()) for one in self._schemes.values() if one["type"] == "apiKey"]

    def security(self, operation: JsonObject) -> tuple[dict[str, JsonObject], ...]:
        """Return the alternatives of an operation, as `HttpBinding` has them. A client certificate is left out."""
        given = operation.get("security", self._root.get("security"))
        alternatives = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
        known = [{name: self._schemes.get(name, _BEARER) for name in one} for one in alternatives]
        return tuple({name: one for name, one in each.items() if one["type"] != "mutualTLS"} for each in known)

    def server(self, *holders: JsonObject) -> JsonObject | None:
        """Return the first server of the operation, else of its path, else of the document.

        A relative address is resolved where the document was fetched from; a file's stays as it is.
        """
        is_remote = self._address.startswith(("https://", "http://"))
        for holder in (*holders, self._root):
            listed = holder.get("servers")
            for one in listed if isinstance(listed, list) else ():
                if isinstance(one, dict) and isinstance(one.get("url"), str):
                    url = urljoin(self._address, one["url"]) if is_remote else one["url"]
                    variables = _read_variables(one.get("variables"))
                    return {"url": url, **({"variables": variables} if variables else {})}
        return {"url": urljoin(self._address, "/")} if is_remote else None


def _read_variables(given: Any) -> JsonObject:
    usable = [(name, one) for name, one in given.items() if isinstance(one, dict)] if isinstance(given, dict) else []
    return {
        name: {"default": str(one["default"])}
        | ({"enum": [*map(str, one["enum"])]} if isinstance(one.get("enum"), list) and one["enum"] else {})
        for name, one in usable
        if "default" in one
    }


def _read_scheme(given: Any) -> JsonObject:
    scheme = given if isinstance(given, dict) else {}
    if scheme.get("type") == "apiKey" and isinstance(scheme.get("name"), str):
        place = scheme.get("in")
        return {"type": "apiKey", "in": place if place in ("query", "cookie") else "header", "name": scheme["name"]}
    if scheme.get("type") == "http" and isinstance(scheme.get("scheme"), str):
        return {"type": "http", "scheme": scheme["scheme"].lower()}
    return {"type": "mutualTLS"} if scheme.get("type") == "mutualTLS" else _BEARER
