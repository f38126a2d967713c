import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { answer, refusal, said, stage } from "./stage.ts";

const SPAWN_ERROR = Object.assign(new Error("spawn obsidian-rag ENOENT"), { code: "ENOENT" });

test("a running daemon is asked and nothing is started", async (context) => {
  const { commands, daemon, door } = await stage(context);
  daemon.announce();
  daemon.reply = ({ path }) => answer({ path });
  assert.deepEqual(await door.ask("obsidian_rag_status", {}), {
    envelope: answer({ path: "/tools/obsidian_rag_status" }),
    version: "0.1.0",
  });
  assert.deepEqual(commands, []);
});

test("where no daemon runs one is started, which goes by itself when nobody asks", async (context) => {
  const { commands, door } = await stage(context, {}, ({ daemon }) => {
    daemon.announce();
    return said(answer({ pid: process.pid }));
  });
  assert.deepEqual((await door.ask("x", {})).envelope, answer({}));
  assert.deepEqual(commands, [["obsidian-rag", "serve", "--detach", "--json", "--idle-exit", "600"]]);
  assert.equal(await door.stop(), false);
});

test("in a gateway the daemon lives as long as the gateway, and is stopped with it", async (context) => {
  const { commands, daemon, door, folder, launcher } = await stage(context, { command: "/opt/obsidian-rag" }, (made) => {
    made.daemon.announce();
    return said(answer({ pid: process.pid }));
  });
  launcher.isKept = true;
  await door.ask("x", {});
  daemon.reply = () => {
    rmSync(join(folder, "daemon.json"));
    return answer({ stopping: true });
  };
  assert.equal(await door.stop(), true);
  assert.equal(daemon.asked.at(-1)?.path, "/shutdown");
  assert.deepEqual(commands, [
    ["/opt/obsidian-rag", "serve", "--detach", "--json", "--parent-pid", String(process.pid)],
    ["/opt/obsidian-rag", "serve", "--stop", "--json"],
  ]);
  assert.equal(await door.stop(), false);
});

test("a daemon that somebody else started is not stopped", async (context) => {
  const { commands, daemon, door, launcher } = await stage(context);
  launcher.isKept = true;
  daemon.announce();
  await door.ask("x", {});
  assert.equal(await door.stop(), false);
  assert.deepEqual(commands, []);
});

test("a daemon that was started anew while it was asked is found", async (context) => {
  const { commands, daemon, door } = await stage(context);
  daemon.announce("old");
  daemon.token = "new";
  const asked = daemon.asked;
  const push = asked.push.bind(asked);
  asked.push = (...entries) => {
    daemon.announce();
    return push(...entries);
  };
  assert.deepEqual((await door.ask("x", {})).envelope, answer({}));
  assert.deepEqual(
    asked.map(({ token }) => token),
    ["old", "new"],
  );
  assert.deepEqual(commands, []);
});

test("however many ask for it at once, one daemon is started", async (context) => {
  const { commands, launcher } = await stage(context);
  const answers = await Promise.all([1, 2, 3].map(() => launcher.start()));
  assert.deepEqual(answers, [answer({}), answer({}), answer({})]);
  assert.equal(commands.length, 1);
  await launcher.start();
  assert.equal(commands.length, 2);
});

test("a missing engine is answered with the command that installs it", async (context) => {
  const { door } = await stage(context, {}, () => Promise.reject(SPAWN_ERROR));
  const { envelope } = await door.ask("x", {});
  assert.equal(envelope.error?.code, "NOT_INSTALLED");
  assert.match(envelope.error?.message ?? "", /^obsidian-rag is not installed/);
  assert.match(envelope.error?.suggestion ?? "", /`pipx install \.\/obsidian-rag`/);
});

test("what the engine says about its settings reaches the agent", async (context) => {
  const { door } = await stage(context, {}, () => said(refusal("CONFIG_INVALID", "No vault is configured."), 2));
  assert.deepEqual((await door.ask("x", {})).envelope, refusal("CONFIG_INVALID", "No vault is configured."));
});

test("an engine that fails otherwise is quoted", async (context) => {
  const { door } = await stage(context, {}, () => ({ code: 1, stdout: "", stderr: "Traceback: no", termination: "exit" }));
  const { envelope } = await door.ask("x", {});
  assert.equal(envelope.error?.code, "INDEXER_FAILED");
  assert.match(envelope.error?.message ?? "", /Traceback: no/);
});

test("a start that takes too long, or helps nobody, is told", async (context) => {
  const late = await stage(context, {}, () => ({ code: null, stdout: "", stderr: "", termination: "timeout" }));
  assert.match((await late.door.ask("x", {})).envelope.error?.message ?? "", /within 60 s/);
  const silent = await stage(context, {}, () => said(answer({ pid: 1 })));
  assert.match((await silent.door.ask("x", {})).envelope.error?.message ?? "", /does not answer/);
});

test("without autoStart nothing is started", async (context) => {
  const { commands, door } = await stage(context, { autoStart: false });
  const { envelope } = await door.ask("x", {});
  assert.match(envelope.error?.suggestion ?? "", /obsidian-rag serve --detach/);
  assert.deepEqual(commands, []);
});

test("a slow daemon is not started a second time", async (context) => {
  const { commands, daemon, door } = await stage(context, { timeoutSeconds: 0.05 });
  daemon.announce();
  daemon.reply = () => undefined;
  assert.equal((await door.ask("x", {})).envelope.error?.code, "BUSY");
  assert.deepEqual(commands, []);
});

test("a LiveSync database is written into the engine's settings before its daemon starts, the password is not", async (context) => {
  const livesync = {
    couchdbUrl: "http://127.0.0.1:5984",
    couchdbUser: "sync_user",
    couchdbPassword: "hunter2",
    dbName: "obsidiannotes",
    vaultPath: "/srv/vault",
    logLevel: "warning",
  };
  const { commands, environments, door } = await stage(context, { livesync }, ({ daemon }, words) => {
    if (words[0] === "serve") daemon.announce();
    return said(answer({}));
  });
  await door.ask("x", {});
  assert.deepEqual(
    commands.map((command) => command.slice(1, 4)),
    [
      ["config", "set", "livesync.couchdbUrl"],
      ["config", "set", "livesync.couchdbUser"],
      ["config", "set", "livesync.dbName"],
      ["config", "set", "livesync.logLevel"],
      ["config", "set", "livesync.vaultPath"],
      ["config", "set", "livesync.remote_consent"],
      ["config", "set", "livesync.enabled"],
      ["serve", "--detach", "--json"],
    ],
  );
  assert.deepEqual(
    commands.slice(0, 7).map((command) => command[4]),
    ['"http://127.0.0.1:5984"', '"sync_user"', '"obsidiannotes"', '"warning"', '"/srv/vault"', "false", "true"],
  );
  assert.ok(!JSON.stringify(commands).includes("hunter2"));
  assert.equal(environments.at(-1)?.["OBSIDIAN_RAG_LIVESYNC_PASSWORD"], "hunter2");
});

test("a LiveSync setting without a database changes nothing", async (context) => {
  const { commands, door } = await stage(context, { livesync: { logLevel: "info" } }, ({ daemon }) => {
    daemon.announce();
    return said(answer({}));
  });
  await door.ask("x", {});
  assert.equal(commands.length, 1);
});
