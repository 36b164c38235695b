"""Texts that try to be more than text: what runs, asks, hides, reorders, or closes what it is in.

What would run sets `pwned` in a browser; what would ask, asks `evil.invalid`.
"""

from __future__ import annotations

RUN = "window.pwned=1"
ASK = "http://evil.invalid"

MARKUP = (
    f"<script>{RUN}</script>",
    f'"><script>{RUN}</script>',
    f"'><img src=x onerror={RUN}>",
    f'"><img src={ASK}/x.png>',
    f"<svg onload={RUN}>",
    f"<svg><script>{RUN}</script></svg>",
    "<svg><use href=data:image/svg+xml;base64,PHN2Zy8+#x></svg>",
    f"<svg><a xlink:href=javascript:{RUN}><text>press</text></a></svg>",
    f"<math><mtext></form><form><mglyph><style></math><img src onerror={RUN}>",
    f'<iframe srcdoc="<script>parent.{RUN}</script>">',
    f"<iframe src=javascript:parent.{RUN}>",
    f"<a href=javascript:{RUN}>press</a>",
    f"<a href='\x01javascript:{RUN}'>press</a>",
    f"<body onload={RUN}>",
    f"<details open ontoggle={RUN}>",
    f"<input autofocus onfocus={RUN}>",
    f"<video><source onerror={RUN}></video>",
    f"<object data='data:text/html,<script>{RUN}</script>'></object>",
    f"<embed src={ASK}/x.swf>",
    f'<meta http-equiv=refresh content="0;url={ASK}/">',
    f"<base href={ASK}/>",
    f"<link rel=stylesheet href={ASK}/x.css>",
    f"<style>@import url({ASK}/x.css);</style>",
    f"<form action={ASK}/><button>press</button></form>",
    f"</style><script>{RUN}</script>",
    f"</title><script>{RUN}</script>",
    f"</textarea><script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"</SCRIPT ><img src=x onerror={RUN}>",
    "<!--<script>",
    f"--!><script>{RUN}</script>",
    f"]]><script>{RUN}</script>",
    f'<noscript><p title="</noscript><img src=x onerror={RUN}>">',
    f"<template><script>{RUN}</script></template>",
    "<b>" * 400,
    "<" * 3000,
)
ATTRIBUTES = (
    f'" onmouseover="{RUN}',
    f"' onfocus='{RUN}' autofocus='",
    f"` onclick={RUN} x=`",
    f"x onload={RUN} y",
    f'" style="background:url({ASK}/a.png)" x="',
    '" id="marks" data-rows="1" x="',
)
STYLES = (
    f"red;background:url({ASK}/b.png)",
    "}*{display:none}",
    f"expression({RUN})",
    f"</style><style>*{{background:url({ASK}/c.png)}}",
)
SCRIPTS = (
    f"';{RUN};//",
    f"\\';{RUN};//",
    f'";{RUN};//',
    f"${{{RUN}}}",
    f"-{RUN}-",
    "\\",
    '"}],"rows":[{"x":"',
    '\\"',
    "\u2028" + RUN + "\u2029",
)
ENTITIES = (
    f"&lt;script&gt;{RUN}&lt;/script&gt;",
    f"&#60;script&#62;{RUN}&#60;/script&#62;",
    f"\\u003cscript\\u003e{RUN}\\u003c/script\\u003e",
    f"%3Cscript%3E{RUN}%3C/script%3E",
    "&quot;&gt;&apos;&amp;&nbsp;&shy;&rlm;",
    "&#x202e;gnp",
)
ADDRESSES = (
    f"javascript:{RUN}",
    f"JaVa\tScRiPt:{RUN}",
    f"data:text/html,<script>{RUN}</script>",
    "vbscript:msgbox(1)",
    "file:///etc/passwd",
    f"{ASK}/",
    "//evil.invalid/x",
    "\\\\evil.invalid\\share\\x",
    "ftp://evil.invalid/x",
)
TEMPLATES = (
    "{{ 7 * 7 }}",
    "{% raw %}",
    "{# note #}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "#{7*7}",
    "<%= 7*7 %>",
    "$E = mc^2$ \\frac{1}",
    "\\input{/etc/passwd}",
    "{0.__class__.__init__.__globals__}",
    "%s%s%n%(pwned)s",
    "[bold red]rich[/bold red][/]",
    "[link=http://evil.invalid]rich[/link]",
)
FORMULAS = (
    "=1+1",
    f'=HYPERLINK("{ASK}","press")',
    "=cmd|' /C calc'!A0",
    '=DDE("cmd";"/C calc";"x")',
    f'=WEBSERVICE("{ASK}")',
    f'=IMPORTXML("{ASK}","//a")',
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "+1+cmd|' /C calc'!A0",
    "-1+1+cmd|' /C calc'!A0",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    "\ufeff=1+1",
    "\u200b=1+1",
    "\u202e=1+1",
    "\uff1d1+1",
    "\uff0b1+1",
    "\uff0d1+1",
    "\uff20SUM(1)",
    "'=1+1",
    '"=1+1"',
    '";=1+1;"',
    "{=1+1}",
    "_x003D_1+1",
    "-",
    "*",
)
DIRECTIONS = (
    "\u202egnp.exe",
    "\u202dlrow",
    "invoice\u202excod.exe",
    "a\u2066\u202eb\u2069c",
    "\u2067x\u2069",
    "\u200fabc\u200e",
    "\u061cx",
    "\u05e9\u05dc\u05d5\u05dd 12 (3)",
    "\u0639\u0645\u0648\u062f 34",
    "\u05d0 = 1, expected 2",
)
UNSEEN = (
    "ad\u200bmin",
    "ad\u200cm\u200din",
    "ad\u2060min",
    "ad\u00admin",
    "\ufeffadmin",
    "\u3164",
    "\u115f\u1160x",
    "\U000e0041\U000e0042tag",
    "x\ufe0f\ufe0f",
    "\ufff9a\ufffab\ufffb",
    "Z" + "\u0301\u0316" * 40 + "algo",
    "\ue000private\U0010ffff",
    "\u2028line\u2029paragraph\u0085next",
    "   ",
    "\u00a0",
)
LOOKALIKES = (
    "\u0430dmin",
    "p\u0430yp\u0430l.com",
    "\uff41\uff44\uff4d\uff49\uff4e",
    "\u2044etc",
    "\u2215x",
    "I1l|O0",
)
TERMINAL = (
    "\x1b[31mred\x1b[0m",
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    f"\x1b]8;;{ASK}\x1b\\press\x1b]8;;\x1b\\",
    "\x1b]52;c;cHduZWQ=\x07",
    "\x1b]1337;File=name=eA==:eA==\x07",
    "\x1bP+q544e\x1b\\",
    "\x1b_apc\x1b\\",
    "\x1b[6n",
    "\x1b[?1049h",
    "\x9b31mred",
    "\x9d0;title\x9c",
    "\x90dcs\x9c",
    "fine\rerror: all is lost",
    "fine\x08\x08\x08\x08evil",
    "\x07\x0e\x0f\x7f",
    "done\nerror: all is lost",
    "a\vb\fc",
)
NAMES = (
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "hasOwnProperty",
    "novelty_score",
    "flagged",
    "rank",
    "null",
    "NaN",
    "true",
    "0x1F",
    "^.*$",
    "1e999",
    "None",
)
MARKDOWN = (
    f"[press](javascript:{RUN})",
    f"![x]({ASK}/x.png)",
    "| a | b |",
    "```",
    "# heading",
    f"<{ASK}>",
)
PLACES = (
    "../../etc/passwd",
    "..\\..\\windows",
    "C:\\x",
    "CON",
    "/etc/passwd",
    "~root",
    "$HOME",
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned #",
    "| touch pwned",
    "-rf",
    "--help",
    "a'b\"c d",
    "%2e%2e%2f",
)
DATA = (
    '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>',
    "<![CDATA[x]]>",
    "_x0041_",
    "&e;",
    "<?xml version='1.0'?>",
    "'; DROP TABLE birds; --",
    '" OR 1=1 --',
    "`; DROP TABLE birds",
    "x' || sleep(9) || '",
    "#REF!",
)
LENGTHS = ("x" * 300, "word " * 800, "[" * 2000, "\u0301" * 50, "9" * 400, "x" * 5000)
# What CSV refuses, and a file of other kinds may hold.
NULS = ("nul\x00byte", "\x00")

GROUPS = {
    "markup": MARKUP,
    "attributes": ATTRIBUTES,
    "styles": STYLES,
    "scripts": SCRIPTS,
    "entities": ENTITIES,
    "addresses": ADDRESSES,
    "templates": TEMPLATES,
    "formulas": FORMULAS,
    "directions": DIRECTIONS,
    "unseen": UNSEEN,
    "lookalikes": LOOKALIKES,
    "terminal": TERMINAL,
    "names": NAMES,
    "markdown": MARKDOWN,
    "places": PLACES,
    "data": DATA,
    "lengths": LENGTHS,
}
TEXTS = tuple(dict.fromkeys(text for group in GROUPS.values() for text in group))


def file_names(
    texts: tuple[str, ...] = TEXTS, *, suffix: str = "", longest: int = 200
) -> list[str]:
    """Return the texts as names of files, those that are none left out; one is not UTF-8."""
    names = [text.replace("/", "\u2215")[:longest] for text in (*texts, "bad\udcff")]
    usable = [name for name in names if "\0" not in name and name.strip(".")]
    return [
        f"{name}{suffix}"
        for name in dict.fromkeys(usable)
        if len(f"{name}{suffix}".encode("utf-8", "surrogateescape")) <= 240
    ]


def sheet_names() -> list[str]:
    """Return the texts that a workbook takes for the name of a sheet."""
    taken, found = set[str](), list[str]()
    for text in TEXTS:
        name = "".join(sign for sign in text if sign not in "[]:*?/\\")[:31].strip("'")
        printable = all(sign >= " " and sign not in "\ufffe\uffff" for sign in name)
        if name.strip() and printable and name.casefold() not in taken | {"history"}:
            taken.add(name.casefold())
            found.append(name)
    return found
