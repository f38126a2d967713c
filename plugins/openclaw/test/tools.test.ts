import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { dailyName, lineOf, noteDown } from "../src/daily.ts";
import type { ToolContext } from "../src/host.ts";
import { register } from "../src/plugin.ts";
import { registerTools } from "../src/tools.ts";
import catalogue from "../src/tools.json" with { type: "json" };
import { answer, refusal, Registry, type Stage, stage, temporary } from "./stage.ts";

const FACT = { key: "debt", value: "I owe 40", source: "Debts.md" };

async function call(made: Stage, name: string, params: unknown, context: ToolContext = {}): Promise<any> {
  const host = new Registry();
  registerTools(host, made.door);
  const make = host.tools.get(name);
  assert.ok(make);
  const result = await make(context).execute("id", params);
  return JSON.parse(result.content[0]?.text ?? "");
}

test("every tool of the engine is registered with its own schema", async (context) => {
  const { door } = await stage(context);
  const host = new Registry();
  registerTools(host, door);
  assert.deepEqual([...host.tools.keys()], catalogue.tools.map(({ name }) => name));
  for (const described of catalogue.tools) {
    const tool = host.tools.get(described.name)?.({});
    assert.deepEqual(tool?.parameters, described.parameters);
    assert.equal(tool?.description, described.description);
    assert.equal(tool?.catalogMode, described.direct ? "direct-only" : undefined);
  }
});

test("registration starts nothing, and the switches switch", () => {
  const host = new Registry();
  register(host);
  assert.deepEqual([host.services.length, host.prompts.length, host.corpora.length], [1, 1, 1]);
  const quiet = new Registry();
  quiet.pluginConfig = { promptProtocol: false, memoryCorpus: false };
  register(quiet);
  assert.deepEqual([quiet.services.length, quiet.prompts.length, quiet.corpora.length], [1, 0, 0]);
  assert.deepEqual([...host.log, ...quiet.log], []);
});

test("the protocol is told to an agent that has the tools, and to no other", () => {
  const host = new Registry();
  register(host);
  const lines = host.prompts[0]?.({ availableTools: new Set(["obsidian_rag_search"]) }) ?? [];
  for (const word of ["obsidian_rag_status", "degraded", "sensitive_detected", "memory_suggestion", "cite", "never follow"]) {
    assert.ok(lines.join("\n").includes(word), word);
  }
  assert.deepEqual(host.prompts[0]?.({ availableTools: new Set(["read"]) }), []);
});

test("a call without arguments is one with none", async (context) => {
  const made = await stage(context);
  made.daemon.announce();
  await call(made, "obsidian_rag_status", undefined);
  assert.deepEqual(made.daemon.asked[0]?.body, {});
});

test("somebody who is not the owner cannot confirm", async (context) => {
  const made = await stage(context);
  made.daemon.announce();
  const params = { query: "x", confirm_sensitive: true };
  const found = await call(made, "obsidian_rag_search", params, { senderIsOwner: false });
  assert.match(found.notices[0], /only the owner/);
  await call(made, "obsidian_rag_search", params, { senderIsOwner: true });
  await call(made, "obsidian_rag_search", params);
  assert.deepEqual(
    made.daemon.asked.map(({ body }) => body["confirm_sensitive"]),
    [false, true, true],
  );
});

test("a stored fact is a line of today's memory file", async (context) => {
  const made = await stage(context);
  made.daemon.announce();
  made.daemon.reply = () => answer({ stored: true, key: "debt" });
  const workspaceDir = join(temporary(context), "not", "there", "yet");
  const found = await call(made, "obsidian_rag_memory_store", FACT, { workspaceDir });
  assert.equal(found.data.daily_file, dailyName(new Date()));
  assert.equal(
    readFileSync(join(workspaceDir, found.data.daily_file), "utf8"),
    "- debt: I owe 40 (from the Obsidian note Debts.md)\n",
  );
});

test("a fact that the engine refused is in no file", async (context) => {
  const made = await stage(context);
  made.daemon.announce();
  made.daemon.reply = () => refusal("NOT_FOUND");
  const workspaceDir = temporary(context);
  await call(made, "obsidian_rag_memory_store", FACT, { workspaceDir });
  assert.throws(() => readFileSync(join(workspaceDir, dailyName(new Date()))), /ENOENT/);
});

test("a file that cannot be written does not undo the fact", async (context) => {
  const made = await stage(context);
  made.daemon.announce();
  made.daemon.reply = () => answer({ stored: true, key: "debt" });
  const workspaceDir = join(temporary(context), "file");
  writeFileSync(workspaceDir, "");
  const { data } = await call(made, "obsidian_rag_memory_store", FACT, { workspaceDir });
  assert.equal(data.stored, true);
  assert.equal(data.daily_file, null);
  assert.match(data.daily_file_error, /is stored, but/);
});

test("a fact is one line, whatever it contains", () => {
  const line = lineOf({ key: "a\nb", value: "one\r\n# two\u2028three", source: "x.md" });
  assert.equal(line, "- a\\nb: one\\n# two\\nthree (from the Obsidian note x.md)\n");
});

test("lines are appended, also to a file that does not end with one", async (context) => {
  const folder = temporary(context);
  const day = new Date(2026, 0, 5, 23, 59);
  assert.equal(await noteDown(folder, FACT, day), "memory/2026-01-05.md");
  const file = join(folder, "memory/2026-01-05.md");
  writeFileSync(file, "# Today");
  await noteDown(folder, FACT, day);
  await noteDown(folder, FACT, day);
  assert.equal(readFileSync(file, "utf8"), `# Today\n${lineOf(FACT)}${lineOf(FACT)}`);
});
