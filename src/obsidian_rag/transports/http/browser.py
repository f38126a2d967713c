"""What a browser sees that comes without a token: what this is, and how to ask it.

Threat: any program or page on this machine can fetch it, so it names no path, vault or version.
"""

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from obsidian_rag.transports.http.answers import Refusal

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>obsidian-rag</title>
<h1>obsidian-rag is running</h1>
<p>This address is for programs. To see your notes in this browser, type in a terminal:</p>
<pre>obsidian-rag open</pre>
<p>To ask from the terminal instead: <code>obsidian-rag search "your question"</code></p>
</html>
"""


def refusal_page(scope: Scope, refusal: Refusal) -> Response | None:
    """A page for a person who opened the address without a token; None for anybody else."""
    wants_page = "text/html" in Headers(scope=scope).get("accept", "")
    if refusal.status != 401 or scope["method"] != "GET" or not wants_page:
        return None
    return HTMLResponse(_PAGE, refusal.status, refusal.headers)
