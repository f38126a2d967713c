import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { keeperOf } from "../src/keeper.ts";
import { answer, refusal, Registry, said, type Stage, stage } from "./stage.ts";

const STATUS = answer({ total_docs: 2, total_chunks: 3 });

/** Wait until the first look at the daemon is over: it ends with a line, unless nothing is started at all. */
async function told(made: Stage, log: string[]): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (made.settings.autoStart && !log.some((line) => /healthy|unavailable/.test(line))) {
    assert.ok(Date.now() < deadline, log.join("\n"));
    await new Promise(setImmediate);
  }
}

/** Start and stop the keeper; what it logged, and which failure it reported. */
async function kept(made: Stage): Promise<{ log: string[]; failures: string[] }> {
  const { logger, log } = new Registry();
  const failures: string[] = [];
  const serviceHealth = { reportFailure: (error: unknown) => void failures.push(String(error)), clearFailure: () => {} };
  const keeper = keeperOf(made.door, made.launcher, made.settings);
  keeper.start({ logger, serviceHealth });
  await told(made, log);
  await keeper.stop({ logger });
  return { log, failures };
}

test("the daemon is started, its health is told, and it is stopped", async (context) => {
  const made = await stage(context, {}, ({ daemon }) => {
    daemon.announce();
    return said(answer({ pid: process.pid }));
  });
  made.daemon.reply = () => STATUS;
  assert.deepEqual(await kept(made), {
    log: ["obsidian-rag: healthy, 2 notes, 3 chunks", "obsidian-rag: stopped the daemon"],
    failures: [],
  });
  assert.deepEqual(
    made.commands.map((words) => words[2]),
    ["--detach", "--stop"],
  );
});

test("a vault is configured where none is, and only there", async (context) => {
  const run = ({ daemon }: Stage): ReturnType<typeof said> => {
    daemon.announce();
    return said(answer({ pid: process.pid }));
  };
  const fresh = await stage(context, { vaultPath: "/my/vault" }, run);
  fresh.daemon.reply = () => STATUS;
  await kept(fresh);
  assert.deepEqual(fresh.commands[0], ["obsidian-rag", "init", "--vault", "/my/vault", "--json"]);
  const known = await stage(context, { vaultPath: "/my/vault" }, run);
  writeFileSync(join(known.folder, "config.json"), "{}");
  known.daemon.reply = () => STATUS;
  await kept(known);
  assert.deepEqual(
    known.commands.map((words) => words[1]),
    ["serve", "serve"],
  );
});

test("a vault that cannot be configured is reported, and nothing is started", async (context) => {
  const made = await stage(context, { vaultPath: "/none" }, () => said(refusal("NOT_FOUND", "There is no folder."), 2));
  const { log, failures } = await kept(made);
  assert.deepEqual(log, ["obsidian-rag: unavailable; NOT_FOUND: There is no folder. Do."]);
  assert.equal(failures.length, 1);
  assert.equal(made.commands.length, 1);
});

test("differing versions are logged", async (context) => {
  const made = await stage(context);
  made.daemon.version = "9.0.0";
  made.daemon.announce();
  made.daemon.reply = () => STATUS;
  const { log } = await kept(made);
  assert.match(log[0] ?? "", /openclaw plugins update/);
});

test("a stop does not wait for a daemon that does not answer, and stops it all the same", async (context) => {
  const made = await stage(context, {}, ({ daemon }) => {
    daemon.announce();
    return said(answer({ pid: process.pid }));
  });
  const { logger, log } = new Registry();
  const keeper = keeperOf(made.door, made.launcher, made.settings);
  const asked = new Promise<void>((resolve) => {
    made.daemon.reply = ({ path }) => {
      resolve();
      return path === "/shutdown" ? answer({}) : undefined;
    };
  });
  keeper.start({ logger });
  await asked;
  await keeper.stop({ logger });
  assert.deepEqual(log, ["obsidian-rag: stopped the daemon"]);
});

test("without autoStart the gateway starts nothing", async (context) => {
  const made = await stage(context, { autoStart: false, vaultPath: "/my/vault" });
  assert.deepEqual(await kept(made), { log: [], failures: [] });
  assert.deepEqual(made.commands, []);
});
