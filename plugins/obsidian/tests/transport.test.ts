import assert from "node:assert/strict";
import { test } from "node:test";

import { SseParser } from "../src/sse";
import { Cancelled, NodeTransport, Unreachable } from "../src/transport";
import { envelope, stage, until } from "./stage";

const transport = new NodeTransport();
const post = { method: "POST", path: "/tools/x", body: { query: "ä" }, timeoutMs: 20_000 } as const;

test("a question carries the token and the owner's mark, and neither Origin nor Sec-Fetch", async () => {
  const daemon = await stage(() => envelope({ ok: true }));
  const reply = await transport.request(daemon.address, post);
  assert.deepEqual(reply, { status: 200, body: envelope({ ok: true }) });
  const [asked] = daemon.asked;
  assert.deepEqual(asked?.body, { query: "ä" });
  assert.equal(asked?.headers["x-obsidian-rag-caller"], "owner");
  assert.equal(asked?.headers.origin, undefined);
  assert.ok(!Object.keys(asked?.headers ?? {}).some((name) => name.startsWith("sec-")));
  await daemon.close();
});

test("a closed port, a foreign answer and silence are told apart", async () => {
  const daemon = await stage((path, _body, response) => {
    if (path === "/foreign") response.end("<html>");
    return undefined;
  });
  const reason = async (asked: object): Promise<string> => {
    try {
      await transport.request(daemon.address, { ...post, ...asked });
      return "none";
    } catch (error) {
      return error instanceof Unreachable ? error.reason : String(error);
    }
  };
  assert.equal(await reason({ path: "/foreign" }), "foreign");
  assert.equal(await reason({ path: "/silent", timeoutMs: 50 }), "slow");
  await daemon.close();
  assert.equal(await reason({}), "refused");
});

test("who loses interest ends the request", async () => {
  let isClosed = false;
  const daemon = await stage((_path, _body, response) => {
    response.on("close", () => (isClosed = true));
    return undefined;
  });
  const asking = new AbortController();
  const answer = transport.request(daemon.address, { ...post, signal: asking.signal });
  await until(() => daemon.asked.length === 1);
  asking.abort();
  await assert.rejects(answer, Cancelled);
  await until(() => isClosed);
  await assert.rejects(transport.request(daemon.address, { ...post, signal: asking.signal }), Cancelled);
  await daemon.close();
});

test("events arrive one by one, and the end is told once", async () => {
  let stream: import("http").ServerResponse | undefined;
  const daemon = await stage((_path, _body, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("event: ready\ndata: {}\n\n");
    stream = response;
    return undefined;
  });
  const heard: string[] = [];
  let ends = 0;
  transport.listen(daemon.address, "41", {
    opened: () => heard.push("opened"),
    heard: (event) => heard.push(`${event.id}:${event.kind}`),
    ended: () => (ends += 1),
  });
  await until(() => heard.length === 2);
  assert.equal(daemon.asked[0]?.headers["last-event-id"], "41");
  stream?.write("id: 42\nevent: cha");
  stream?.write('nges\ndata: {"paths": []}\n\n');
  await until(() => heard.length === 3);
  assert.deepEqual(heard, ["opened", ":ready", "42:changes"]);
  stream?.end();
  await until(() => ends > 0);
  await daemon.close();
  assert.equal(ends, 1);
});

test("a stream is taken apart wherever it is cut", () => {
  const text = ':\n\nid: 1\nevent: job\ndata: {"a": 1}\n\ndata: nonsense\n\nevent: health\ndata: {"b":\ndata: 2}\n\n';
  for (let size = 1; size < 12; size++) {
    const heard: unknown[] = [];
    const parser = new SseParser((event) => heard.push([event.kind, event.data]));
    for (let at = 0; at < text.length; at += size) parser.push(text.slice(at, at + size));
    assert.deepEqual(heard, [["job", { a: 1 }], ["health", { b: 2 }]]);
  }
});
