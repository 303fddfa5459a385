"""Texts that would act on a page that took one as more than text, and runs that hold each in every field."""

from collections.abc import Callable
from itertools import product
from typing import Any

from tests.support.approvals import ASK
from tests.support.history import HOSTILE

from interlock.testing.harness import Harness, linear_workflow

WRITTEN_TEXTS = [
    HOSTILE,
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.test/x.js></SCRIPT>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<base href=//evil.test/>",
    "<meta http-equiv=refresh content=0;url=//evil.test>",
    "<link rel=stylesheet href=//evil.test/x.css>",
    "<style>*{background:url(//evil.test)}</style>",
    "<object data=//evil.test></object><embed src=//evil.test>",
    "<form action=//evil.test><button>go</button></form>",
    "<a href=javascript:alert(1)>x</a>",
    "<details open ontoggle=alert(1)>",
    "<body onload=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<marquee onstart=alert(1)>",
    "<video><source onerror=alert(1)></video>",
    "<template><script>alert(1)</script></template>",
    "<!--><script>alert(1)</script>-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml version='1.0'?><x/>",
    "</textarea></title></style></script><script>alert(1)</script>",
    "</bdi></article></main><script>alert(1)</script>",
    '"><script>alert(1)</script>',
    "'><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' autofocus onfocus='alert(1)",
    "` onclick=alert(1) `",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\nscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](vbscript:msgbox(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](data:image/svg+xml;base64,PHN2Zz4=)",
    "[x](file:///etc/passwd)",
    "[x](//evil.test/)",
    "[x](/live?session=*)",
    "![x](javascript:alert(1))",
    "![x](http://evil.test/p.png)",
    '![x](x "onerror=alert(1)")',
    "![<script>alert(1)</script>](http://x)",
    '[x](http://x" onclick="alert(1))',
    "[x]: javascript:alert(1)\n\n[x]",
    "<javascript:alert(1)>",
    '<http://evil.test/"onclick="alert(1)>',
    "# <script>alert(1)</script>",
    "| <script>alert(1)</script> |\n|---|\n| <img onerror=alert(1)> |",
    "```html\n<script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "{{ 7 * 7 }} {% raw %} {{ config }}",
    "${7*7} #{7*7} <%= 7 %>",
    "\u202egnp.exe\u202c \u2066\u2069 \u200b",
    "\x00\x07\x1b[31mred",
    "\ud800 a lone surrogate",
    "\uff1cscript\uff1ealert(1)\uff1c/script\uff1e",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "> " * 200 + "deep",
    "[" * 500 + "x" + "](y)" * 500,
]
_BREAKS = [
    *("", '"', "'", "`", "-->", "]]>", "</pre>", "</title>", "</textarea>", "</select></option>", "</svg></a>"),
    *("\\", "\n\n", "&quot;", "\u2028"),
]
_ACTS = [
    "<script>top.ran=1</script>",
    "<img src=x onerror=top.ran=1>",
    "<svg onload=top.ran=1>",
    " onfocus=top.ran=1 autofocus x=",
    "<iframe src=javascript:top.ran=1>",
    "<form action=http://127.0.0.1:1/><input type=submit>",
    "<style>@import'http://127.0.0.1:1/x'</style>",
    "[x](javascript:top.ran=1)",
    "<base href=http://127.0.0.1:1/>",
    "<object data=javascript:top.ran=1>",
]
HOSTILE_TEXTS = [*WRITTEN_TEXTS, *(f"{before}{act}" for before, act in product(_BREAKS, _ACTS))]
"""Those that were written by hand, and each way out of a text with each thing that acts."""
_SENDABLE = [text for text in HOSTILE_TEXTS if "\ud800" not in text and len(text) < 400]
"""A lone surrogate cannot be sent, and what is only long is refused as notes."""
_NOTES = "I read both designs, compared what each costs, kept the first one, wrote four tests and ran them: all pass."


def hostile_runs(make: Callable[..., Harness]) -> tuple[Harness, list[str]]:
    """Return a harness in which each text is in every field of a run and of a workflow, and the addresses of pages.

    `make` makes a harness of workflows.
    """
    harness = make(*(_workflow(number, text) for number, text in enumerate(_SENDABLE)))
    paths = [
        "/",
        "/inbox",
        "/workflows",
        "/compare",
        "/contracts",
        "/settings",
        *(f"/?page={one}" for one in (2, 3, 4, 5)),
    ]
    for number, text in enumerate(_SENDABLE):
        began = harness.start(f"team.h{number}", goal=_line(text), context={_line(text)[:60]: text, "list": [text]})
        artifact = {"kind": "my.report", _line(text)[:60]: text, "rows": [{text[:60]: text}]}
        output = {"notesMarkdown": f"{_NOTES}\n\n{text}\n\n{_NOTES}", "artifacts": [artifact]}
        waiting = harness.call("continue_workflow", {"ackToken": began.ack, "output": output})
        assert "waiting" in waiting.structure, (text, waiting.text)
        session, node = harness.session_of(began), harness.reference_of(began).node
        asked = harness.reference_of(waiting).node
        paths += [f"/sessions/{session}", f"/sessions/{session}/nodes/{node}", f"/sessions/{session}/questions/{asked}"]
        paths.append(f"/workflows/team.h{number}")
    return harness, paths


def _workflow(number: int, text: str) -> dict[str, Any]:
    line = _line(text)
    return linear_workflow(
        f"team.h{number}",
        {"id": "a", "title": line[:90], "prompt": f"Do it. {text}"},
        {**ASK, "title": line[:80], "question": f"Do it? {line[:200]}", "show": ["notes.a", "artifact.a", "goal"]},
        name=line[:80],
        description=line,
    )


def _line(text: str) -> str:
    return f"x {' '.join(text.split())}"[:400]
