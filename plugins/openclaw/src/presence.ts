/**
 * Where the engine keeps its data, and where its daemon listens. Reads files and the environment, and sends nothing
 * anywhere: the token that is read here belongs on the loopback connection of client.ts only.
 */

import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

import { isRecord } from "./envelope.ts";

/** The content of `daemon.json`, as far as we need it. */
export interface Presence {
  port: number;
  token: string;
  pid: number;
  version: string;
}

type Environment = Record<string, string | undefined>;

/** The engine's data folder, by the same rules as the engine's own. */
export function dataFolder(home: string | undefined, env: Environment = process.env, platform = process.platform): string {
  const chosen = home ?? (env["OBSIDIAN_RAG_HOME"] || undefined);
  if (chosen !== undefined) return expanded(chosen);
  const roaming = env["APPDATA"];
  if (platform === "win32" && roaming) return join(roaming, "obsidian-rag");
  return join(homedir(), ".obsidian-rag");
}

/** A path of the settings, made absolute. */
export function expanded(path: string): string {
  return resolve(path.replace(/^~(?=$|[\\/])/, homedir()));
}

/** Whether the engine has a config file. */
export function isConfigured(folder: string, env: Environment = process.env): boolean {
  const chosen = env["OBSIDIAN_RAG_CONFIG"];
  return existsSync(chosen ? expanded(chosen) : join(folder, "config.json"));
}

/**
 * The daemon of a data folder, unless it left its file behind and is gone. Read at once: it is asked before every
 * call, and waiting for the file's 200 bytes takes ten times as long as reading them.
 */
export function readPresence(folder: string): Presence | undefined {
  let found: unknown;
  try {
    found = JSON.parse(readFileSync(join(folder, "daemon.json"), "utf8"));
  } catch {
    return undefined;
  }
  if (!isRecord(found)) return undefined;
  const { port, token, pid, version } = found;
  if (typeof port !== "number" || typeof token !== "string" || typeof pid !== "number" || typeof version !== "string") {
    return undefined;
  }
  return isAlive(pid) ? { port, token, pid, version } : undefined;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return isRecord(error) && error["code"] === "EPERM";
  }
}
