"""Remove corrections from a model's complaint about a value (paper, appendix A.3)."""

from __future__ import annotations

import re

MAX_CHARS = 300
KNOWN_CHARS = 8_000
LEAST_WORDS = 4
"""Words that a clause must keep, once its advice is removed, to be kept itself."""

_ADVICE = re.compile(
    r"""\b(?:use|try|meant?|such\ as|for\ (?:example|instance)|e\.?g\b|i\.?e\b|like\ (?=["'`\u2018\u201cA-Z])|instead
    |rather|suggest\w*|recommend\w*|consider|perhaps|maybe|correct\ \w+\ (?:is|would)|actual\w*\ (?:is|\w+\ is)
    |(?:change|set|replace|convert|correct|spell|write|choose|select|pick|give|provide|enter|put|pass|specify)
    \ (?!by\b|an?\b)
    |(?:should|must|ought\ to|needs?\ to|has\ to|would)\ (?:be|have|read|say|hold|contain|equal)
    \ (?!an?\b|in\ the\b|of\b|not\b)
    |expected\ (?!an?\b)
    |(?:task|user|conversation|request|results?|they)\ (?:says?|said|states?|ask(?:s|ed)\ for|want(?:s|ed)|gives?|gave
    |names?|mention(?:s|ed)?|is|was)\ (?!for\ it\b|none\b|nothing\b|no\b|an?\b))
    .*?(?=[.;!?](?:\s|$)|$)""",
    re.VERBOSE | re.IGNORECASE,
)
_VALUE = re.compile(
    r"""(?<!\w)(["'`\u2018\u201c\u00ab])(?P<quoted>.{1,200}?)["'`\u2019\u201d\u00bb](?!\w)
    |(?<![\w.])(?P<bare>\$?\w*\d[\w.,:/@%-]*\w|\d|[^\W\d_]+[.@/_\\][\w.@/\\-]*\w|[A-Z][\w'&-]*)""",
    re.VERBOSE,
)
_PLAIN = re.compile("the|an?|its?|this|that|not?|there|neither|only|value|argument|optional|iso|iata|id|url|utc")
_DATE_LETTERS = re.compile(r"[YMDHSymdhs:/. -]{2,20}")


def without_hints(problem: str, *, known: str) -> str:
    """Return a problem in one line without advice, and without values that the call does not contain.

    `known` are the call's arguments as text: values in them may be named.
    """
    known = known[:KNOWN_CHARS].casefold()

    def mask_unknown(found: re.Match[str]) -> str:
        value = found["quoted"] or found["bare"]
        plain = value.casefold().strip("., ")
        written = plain and re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", known)
        return found[0] if written or _PLAIN.fullmatch(plain) or _DATE_LETTERS.fullmatch(value) else "…"

    kept = []
    for clause in re.split(r"(?<=[.;!?]) ", " ".join(problem.split())[:MAX_CHARS]):
        rest, advised = _ADVICE.subn("", clause)
        if not advised or len(rest.split()) >= LEAST_WORDS:
            kept.append(_VALUE.sub(mask_unknown, rest).strip(" ,;:(-"))
    return " ".join(filter(None, kept)) or "it does not fit its description"
