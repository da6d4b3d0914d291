"""Masking of secrets: keys, passwords and tokens in error texts, endpoint settings, and what logs and reports show.

Stored data is never masked. Each pattern keeps its first group and replaces the rest of its
match. Each one is linear: it begins at a fixed word, or where a run of its own characters begins, so that no character
is read from many starts, and each repetition is possessive or bounded.
"""

from __future__ import annotations

import re
from functools import lru_cache

MASK = "…"
SHORT = 500
"""Characters of a text that is remembered: a condition that cannot be evaluated fails alike at each step."""

_PREFIXES = (
    r"sk-|key-(?=[\w*-]{0,40}\d)|[srp]k_(?:live|test)_|whsec_|gh[opusr]_|github_pat_|gl(?:pat|dt|rt|soat|ptt)-|"
    r"xox[a-z]-|xapp-|hf_|gsk_|xai-|npm_|pypi-|AIza|ya29\.|GOCSPX-|1//0|SG\.|dapi|r8_|pplx-|nvapi-|dop_v1_|"
    r"shp(?:at|ss|ca|pa)_|sq0(?:atp|csp)-|lin_api_|ntn_|dckr_pat_|rubygems_|gl(?:c|sa)_|hv[sb]\.|figd_|NRAK-|PMAK-|"
    r"ATATT3|sntry[su]_|xkeysib-|lsv2_[ps][kt]_|tvly-|sbp_|AGE-SECRET-KEY-|ops_|tskey-|EAAC|EAAA|SK(?=[0-9a-f]{32}\b)|"
    r"AC(?=[0-9a-f]{32}\b)|ATCTT3|CFPAT-|EZ[AT]K(?=\w{20})|pul-(?=[0-9a-f]{40})|dt0[a-z]\d\d\.|pat-(?:na|eu|ap)\d-|"
    r"pscale_(?:pw|tkn|oauth)_|dp\.(?:st|pt|ct|sa|scim|audit)\.|shippo_(?:live|test)_|lin_oauth_|apify_api_|"
    r"(?:secret|vercel|nf[bcopu]|ph[acsx]|sgp|rnd|fm2|tfp|re)_(?=\w{20})(?=[A-Za-z_]{0,60}\d|[a-z]{1,60}[A-Z])(?!\w{0,60}_[a-z])|"
    r"pat[A-Za-z0-9]{14}\.(?=\w{30})"
)
_NAMES = (
    r"pass(?:word|wd|phrase|code)|pwd|(?:secret|access|private|account|subscription|signing|(?:en|de)cryption|api|auth|"
    r"master|fernet|app|cipher|hmac|webhook|deploy|shared|license|service[_ -]?role)[_ -]?key|"
    r"(?:db|user|smtp|mysql|postgres|pg|redis|admin|root|become|proxy)[_-]pass(?![a-z])|"
    r"secret(?:[_-]?access[_-]?key)?|x-functions-key|signature|credentials?|sess(?:ion)?[_-]?id|"
    r"(?<!page)(?<!page[_-])(?<!next)(?<!next[_-])(?<!sync)(?<!sync[_-])token"
)
_SAID = r"(?:\s{1,4}(?:provided|given|supplied|received|sent|used|value|was|is)){0,2}+"
"""What a message says between a name and its value: `client secret provided: '…'`."""
_MARK = "\ufdd0"
"""A character of no text, which stands behind each name while names and values are looked for: one scan for all."""
_BARE = r"[^\s\"'\\,;&<>(){}\[\]]"
_LINE = r"(?:\r?\n|\\r\\n)"

_PATTERNS = tuple(
    re.compile(source, re.DOTALL)
    for source in (
        # a private key, to its end or that of the text; not possessive, which Python 3.11.2 reads too far
        r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----)(?:(?!-----END).)+",
        # user:password@host, token@host
        r"(://[^\s/?#\"'<>:]*+:)[^\s/\"'<>]+(?=@)",
        r"(://)(?=[^\s/?#\"'<>@:]{0,80}?\d)[^\s/?#\"'<>@:]{20,}+(?=@)",
        r"((?<![\w.@:/-])[\w.-]{1,64}+:)(?!//)[^\s@/:\"'<>]{1,200}+(?=@[\w.-]{1,100}(?::\d|\())",
        # headers whose whole value is secret, and what is like them in JSON
        r"((?i:\b(?:set-)?cookie)\\*[\"']?\s{0,8}[:=]\s{0,8}\\*[\"']?)(?=[^\s;\"']{1,100}=)"
        r"[^\s;,\"'\\]++(?:;\s{0,8}[^\s;,\"'\\]++)*",
        r"((?i:\b(?:proxy-)?authorization)\\*[\"']?\s{0,8}[:=]\s{0,8}\\*[\"']?(?:[A-Za-z][\w-]{1,20} )?+"
        r"(?:[\w-]{1,20}=\\*[\"'])?+)"
        rf"{_BARE}{{4,}}+",
        # a scheme and its token
        r"((?i:\bbearer)\s{1,8})(?=[\w.~+/*-]{0,80}?[\d*+/=]|[\w.~+/-]{20})[\w.~+/=*-]{6,}+",
        r"((?i:\bbasic)\s{1,8})(?=[A-Za-z0-9+/]{0,200}?(?:[a-z0-9][A-Z]|=))[A-Za-z0-9+/]{8,}+=*",
        # name and value: of a command line; in quotes; after `=`; after `:`, unless it looks like a word of a sentence
        rf"(--(?:[\w-]{{1,20}}-)?(?i:{_NAMES})\s{{1,8}})(?=[^\s\"',;&<>]{{0,64}}?[\d*+/=_.!$%^#])(?!-){_BARE}{{6,}}+",
        # of pairs, as headers are listed; in words; of curl and mysql; quoted for a URL
        rf"(\(\s{{0,8}}b?[\"'][\w-]{{0,30}}(?i:{_NAMES}|authorization|cookie)[\"'],\s{{0,8}}b?[\"'])[^\"'\\]++(?=[\"']\))",
        r"((?i:pass(?:word|wd|phrase)|api[_ -]?key|secret)\s{1,8}(?:is\s{1,8})?[\"'])[^\"'\\]{1,200}+(?=[\"'])",
        r"((?<=\s)(?:-u|--user|--proxy-user)[\s=]{0,4}[\"']?(?!\d+:\d+\b)[^\s:\"'/]{1,64}+:)[^\s\"']++",
        r"(\bmysql(?:dump|admin)?\b[^\n|;]{0,200}?\s-p[\"']?)[^\s\"'-][^\s\"']*+",
        r"((?i:%3a%2f%2f)[^\s%/]{1,64}+(?i:%3a))(?:(?!%40)[^\s\"'<>/&]){1,200}+(?=%40)",
        r"([?&#](?i:key|api_?key|sig|auth|hmac|jwt|pass|pw|pin|otp)=)[^&\s\"'#<>]++",
        # an XML element; a part of a form; a member that names a value beside it
        rf"(<[\w.-]{{0,40}}:?[\w.-]{{0,40}}?(?i:{_NAMES})(?:\s[^<>]{{0,300}})?>(?:<!\[CDATA\[)?)"
        r"(?!\s)[^<>\]]{1,4000}+(?=</|\]\])",
        rf"(\bname=\"[\w.\[-]{{0,40}}?(?i:{_NAMES})\]?\"[^\r\n\\]{{0,100}}(?:{_LINE}[^\r\n\\]{{1,200}}){{0,3}}{_LINE}{_LINE})"
        r"(?:(?!\\r\\n)[^\r\n])++",
        rf"(\bname:\s{{1,4}}\w{{0,40}}?(?i:{_NAMES})\s{{1,40}}value:\s{{1,4}})(?![{{&*])[^\s]++",
        # a URI without slashes; of other commands and files; a short number by its name; hashes of passwords
        r"(\b(?i:sips?|ldaps?|xmpp):[\w.+-]{1,64}+:)[^\s@/\"'<>]{1,200}+(?=@)",
        r"(\bsshpass\s{1,4}-p\s{0,4}[\"']?|\bredis-cli\b[^\n|;]{0,200}?\s-a\s{1,4})[^\s\"']++",
        r"((?i:\blogin\s{1,8}\S{1,100}+\s{1,8}password\s{1,8}))\S++",
        r"((?i:(?<![A-Za-z0-9])(?:pin|cvv2?|cvc2?|otp))\\*[\"']?\s{0,4}[:=]\s{0,4}\\*[\"']?)\d{3,8}(?![\w.:-])",
        r"((?i:\bcard(?:[ _-]?(?:number|no|num|nr)\.?)?)\\*[\"']?\s{0,4}[:=#]?\s{0,4}\\*[\"']?)"
        r"\d(?:[ -]?\d){12,18}+(?![\w-])",
        r"(\$(?:apr1|[1256y]|2[abxy]|argon2(?:id|i|d)|scrypt)\$|\bpbkdf2[\w-]{0,20}\$)[\w./$=,+-]{16,}+",
        r"(\"auth\"\s{0,4}:\s{0,4}\")(?=[A-Za-z0-9+/]{0,200}?[\d+/=])[A-Za-z0-9+/]{12,}+=*(?=\")",
        # tokens with a known prefix or form, and what stands behind a Twilio account or a digest's name
        r"(\b(?:AC|SK)[0-9a-f]{32}:)[0-9A-Za-z]{32}\b",
        r"(\bresponse=\"?)[0-9a-f]{32,64}\b",
        r"((?<![A-Za-z0-9])(?:AKIA|ASIA))[0-9A-Z]{16}\b(?:\W{1,5}[A-Za-z0-9/+]{40})?",
        rf"((?<![A-Za-z0-9])(?:{_PREFIXES}))[\w*.-]{{6,}}+",
        r"((?<![\w.-])eyJ)[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]++)*",
        r"(hooks\.slack\.com/\w{1,20}/|discord(?:app)?\.com/api/webhooks/|webhook\.office\.com/webhookb2/)[\w/@-]{8,}+",
        r"((?<!\d)\d{8,10}:)AA[\w-]{32,}+",
    )
)

_NAME = re.compile(rf"(?i:{_NAMES})")
_OF_NAMES = tuple(
    re.compile(source, re.DOTALL)
    for source in (
        rf"({_MARK}{_SAID}[\"']?\s{{0,8}}(?:=>|[:=])\s{{0,8}}[bru]?\")(?:[^\"\\]|\\.)++",
        rf"({_MARK}{_SAID}[\"']?\s{{0,8}}(?:=>|[:=])\s{{0,8}}[bru]?')(?:[^'\\]|\\.)++",
        rf"({_MARK}\\++[\"']\s{{0,8}}:\s{{0,8}}\\++[\"'])[^\"'\\]++",
        rf"({_MARK}=){_BARE}++",
        rf"({_MARK}{_SAID}[\"']?(?:\s{{0,8}}:|\s{{1,8}}=)\s{{0,8}})(?=[^\s\"',;&<>]{{0,64}}?[\d*+/=_.!$%^#-])"
        rf"{_BARE}{{6,}}+",
        rf"({_MARK}(?i:%3d))(?:(?!%26)[^\s\"'&<>])++",
        rf"({_MARK}[\"'],?\s{{0,40}}[\"']?value[\"']?\s{{0,4}}[:=]\s{{0,4}}[\"'])[^\"'\\]++",
    )
)


def mask(text: str) -> str:
    """Return the text with `…` in place of what looks like a secret. Identifiers, hashes, numbers and dates stay."""
    return _mask_once(text) if len(text) <= SHORT else _mask(text)


def _mask(text: str) -> str:
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\1{MASK}", text)
    marked = _NAME.sub(rf"\g<0>{_MARK}", text)
    if len(marked) == len(text):
        return text
    for pattern in _OF_NAMES:
        marked = pattern.sub(rf"\1{MASK}", marked)
    return marked.replace(_MARK, "")


_mask_once = lru_cache(maxsize=2_048)(_mask)
