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
<p>This address is for programs and agents on this machine. It answers only requests with the
token from <code>daemon.json</code> in the data folder, so a browser gets no further than here.</p>
<p>To ask your notes, type in a terminal:</p>
<pre>obsidian-rag search "your question"</pre>
<p><code>obsidian-rag status</code> tells how it is doing, <code>obsidian-rag serve --stop</code>
stops it. To let an agent ask, run <code>obsidian-rag mcp --help</code>.</p>
</html>
"""


def refusal_page(scope: Scope, refusal: Refusal) -> Response | None:
    """A page for a person who opened the address without a token; None for anybody else."""
    wants_page = "text/html" in Headers(scope=scope).get("accept", "")
    if refusal.status != 401 or scope["method"] != "GET" or not wants_page:
        return None
    return HTMLResponse(_PAGE, refusal.status, refusal.headers)
