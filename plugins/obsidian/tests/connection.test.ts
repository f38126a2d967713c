import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Refused } from "../src/answers";
import { Connection, NotReady } from "../src/connection";
import { type Address, NodeTransport } from "../src/transport";
import { type Answer, envelope, stage, until } from "./stage";

const VAULT = mkdtempSync(join(tmpdir(), "vault-"));
const STATUS = { plugin_health: "healthy", total_docs: 3, vault_path: VAULT, link_id: "one" };

function engine(more: Answer = () => envelope({}), status: object = STATUS, tools: object[] = []): Answer {
  return (path, body, response) => {
    if (path === "/tools") return { tools };
    if (path === "/tools/obsidian_rag_status") return envelope(status);
    if (path === "/events") {
      response.writeHead(200).write("event: ready\ndata: {}\n\n");
      return undefined;
    }
    return more(path, body, response);
  };
}

function connect(address: () => Address | undefined, vaultPath = VAULT): Connection {
  return new Connection(new NodeTransport(), { address, vaultPath });
}

test("without daemon.json the engine is off, and a question says so", async () => {
  const connection = connect(() => undefined);
  await connection.connect();
  assert.deepEqual(connection.state, { kind: "off", reason: "absent" });
  await assert.rejects(connection.call("x", {}), NotReady);
  connection.close();
});

test("an engine of another vault is not asked anything", async () => {
  const daemon = await stage(engine());
  const connection = connect(() => daemon.address, "/another/vault");
  await assert.rejects(connection.call("obsidian_rag_related", {}), NotReady);
  assert.deepEqual(connection.state, { kind: "other-vault", vaults: [VAULT] });
  assert.ok(!daemon.asked.some((one) => one.path.includes("related")));
  connection.close();
  await daemon.close();
});

test("a vault is named to tools that take one, by the name they have for it", async () => {
  const tool = (name: string, field: string): object => ({ name, input_schema: { properties: { [field]: {} } } });
  const status = { ...STATUS, vault_path: "/first", link_id: "zero", vaults: [{ link_id: "second", root_path: VAULT }] };
  const both = { name: "both", input_schema: { properties: { vault: {}, vaults: {} } } };
  const daemon = await stage(engine(undefined, status, [tool("many", "vaults"), tool("single", "vault"), tool("none", "query"), both]));
  const connection = connect(() => daemon.address);
  for (const name of ["many", "single", "none", "both"]) await connection.call(name, { query: "q" });
  const bodies = daemon.asked.filter((one) => /many|single|none|both/.test(one.path)).map((one) => one.body);
  assert.deepEqual(bodies, [{ vaults: ["second"], query: "q" }, { vault: "second", query: "q" }, { query: "q" }, { vault: "second", vaults: ["second"], query: "q" }]);
  assert.equal(connection.isPrimary, false);
  connection.close();
  await daemon.close();
});

test("an old token is looked up once more, then the engine is off", async () => {
  const daemon = await stage(engine(), "new");
  let token = "new";
  const connection = connect(() => ({ ...daemon.address, token }));
  await connection.connect();
  Object.assign(connection, { address: { ...daemon.address, token: "old" } });
  await connection.call("obsidian_rag_related", {});
  assert.equal(connection.state.kind, "ready");
  token = "wrong";
  Object.assign(connection, { address: { ...daemon.address, token: "old" } });
  await assert.rejects(connection.call("obsidian_rag_related", {}), NotReady);
  assert.equal(connection.state.kind, "off");
  connection.close();
  await daemon.close();
});

test("a daemon that was started anew on another port is found by the next question", async () => {
  const first = await stage(engine());
  let address = first.address;
  const connection = connect(() => address);
  await connection.connect();
  const second = await stage(engine());
  address = second.address;
  await first.close();
  await connection.call("obsidian_rag_related", {});
  assert.equal(connection.state.kind, "ready");
  assert.ok(second.asked.some((one) => one.path.includes("related")));
  connection.close();
  await second.close();
});

test("a refusal keeps its code, and the engine stays ready", async () => {
  const problem = { code: "NOTE_CHANGED", message: "changed", suggestion: "again" };
  const daemon = await stage(engine(() => envelope(null, problem)));
  const connection = connect(() => daemon.address);
  await assert.rejects(connection.call("x", {}), (error: unknown) => error instanceof Refused && error.problem.code === "NOTE_CHANGED");
  assert.equal(connection.state.kind, "ready");
  connection.close();
  await daemon.close();
});

test("news that come while the status is asked for are asked about again", async () => {
  const responses: import("http").ServerResponse[] = [];
  let stream: import("http").ServerResponse | undefined;
  const daemon = await stage((path, body, response) => {
    if (path === "/events") stream = response;
    if (path !== "/tools/obsidian_rag_status") return engine()(path, body, response);
    responses.push(response);
    if (responses.length === 2) return undefined; // answered late, below
    return envelope({ ...STATUS, total_docs: responses.length });
  });
  const connection = connect(() => daemon.address);
  await connection.connect();
  await until(() => stream !== undefined);
  void connection.connect();
  await until(() => responses.length === 2);
  stream?.write("id: 1\nevent: job\ndata: {}\n\n");
  const later = Date.now() + 1500; // until the news were asked about, which waits for a calm second
  await until(() => Date.now() > later);
  responses[1]?.writeHead(200).end(JSON.stringify(envelope({ ...STATUS, total_docs: 2 })));
  await until(() => connection.state.kind === "ready" && connection.state.status.notes === 3);
  connection.close();
  await daemon.close();
});

test("a job that ended before the stream began is not shown for good", async () => {
  let asked = 0;
  const busy = { ...STATUS, active_job: { mode: "sync", progress: {} } };
  const daemon = await stage((path, body, response) =>
    path === "/tools/obsidian_rag_status" ? envelope(asked++ ? STATUS : busy) : engine()(path, body, response),
  );
  const connection = connect(() => daemon.address);
  await connection.connect();
  assert.ok(connection.state.kind === "ready" && connection.state.status.job);
  await until(() => connection.state.kind === "ready" && !connection.state.status.job);
  connection.close();
  await daemon.close();
});

test("progress and changes are told to those who listen", async () => {
  let stream: import("http").ServerResponse | undefined;
  const answers = engine();
  const daemon = await stage((path, body, response) => {
    if (path === "/events") stream = response;
    return answers(path, body, response);
  });
  const connection = connect(() => daemon.address);
  await connection.connect();
  await until(() => stream !== undefined);
  let changes = 0;
  connection.onIndexed(() => (changes += 1));
  stream?.write('id: 1\nevent: progress\ndata: {"phase": "index", "mode": "full", "current": 3, "total": 9}\n\n');
  const job = () => (connection.state.kind === "ready" ? connection.state.status.job : null);
  await until(() => job() !== null);
  assert.deepEqual(job(), { mode: "full", done: 3, total: 9 });
  stream?.write('id: 2\nevent: changes\ndata: {"paths": ["a.md"]}\n\n');
  await until(() => changes === 1);
  await until(() => job() === null);
  connection.close();
  await daemon.close();
});
