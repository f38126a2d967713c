import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { dataFolder, isConfigured, readPresence } from "../src/presence.ts";
import { stage, temporary } from "./stage.ts";

test("the data folder is the setting, then the environment, then the usual place", () => {
  const env = { OBSIDIAN_RAG_HOME: "/from/env", APPDATA: "/roaming" };
  assert.equal(dataFolder("/from/settings", env, "linux"), "/from/settings");
  assert.equal(dataFolder("~/notes-data", env, "linux"), join(homedir(), "notes-data"));
  assert.equal(dataFolder(undefined, env, "linux"), "/from/env");
  assert.equal(dataFolder(undefined, { OBSIDIAN_RAG_HOME: "" }, "linux"), join(homedir(), ".obsidian-rag"));
  assert.equal(dataFolder(undefined, { APPDATA: "/roaming" }, "win32"), join("/roaming", "obsidian-rag"));
});

test("a daemon that has announced itself is found", async (context) => {
  const { daemon, folder } = await stage(context);
  daemon.announce();
  assert.deepEqual(Object.keys(readPresence(folder) ?? {}), ["port", "token", "pid", "version"]);
});

test("a file that a dead daemon left behind is not believed", async (context) => {
  const { daemon, folder } = await stage(context);
  daemon.announce("secret", 2 ** 22 + 1); // above the largest process id of Linux
  assert.equal(readPresence(folder), undefined);
});

for (const text of ["", "{", "[]", "null", '{"port": "1"}', '{"port": 1, "token": "x", "pid": 1}']) {
  test(`no daemon is found in ${JSON.stringify(text)}`, (context) => {
    const folder = temporary(context);
    writeFileSync(join(folder, "daemon.json"), text);
    assert.equal(readPresence(folder), undefined);
  });
}

test("an engine without a config file is not configured", (context) => {
  const folder = temporary(context);
  assert.equal(isConfigured(folder, {}), false);
  writeFileSync(join(folder, "config.json"), "{}");
  assert.equal(isConfigured(folder, {}), true);
  assert.equal(isConfigured(folder, { OBSIDIAN_RAG_CONFIG: join(folder, "other.json") }), false);
});
