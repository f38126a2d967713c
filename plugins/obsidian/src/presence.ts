/** Where the engine keeps its data, where it listens, and where its program is. Reads files outside the vault. */

import { accessSync, constants, readFileSync, realpathSync, statSync } from "fs";
import { homedir } from "os";
import { delimiter, isAbsolute, join, resolve } from "path";

import { isRecord } from "./answers";
import type { Address } from "./transport";

/** The engine's data folder, by the same rules as the engine's own. */
export function dataFolder(chosen: string): string {
  const named = chosen.trim() || process.env["OBSIDIAN_RAG_HOME"] || "";
  if (named) return expanded(named);
  const roaming = process.env["APPDATA"];
  return process.platform === "win32" && roaming ? join(roaming, "obsidian-rag") : join(homedir(), ".obsidian-rag");
}

/** Where the daemon of a data folder listens; read again at each connect, because each start has a new token. */
export function readAddress(folder: string): Address | undefined {
  let found: unknown;
  try {
    found = JSON.parse(readFileSync(join(folder, "daemon.json"), "utf8"));
  } catch {
    return undefined;
  }
  if (!isRecord(found)) return undefined;
  const { port, token } = found;
  if (typeof port !== "number" || typeof token !== "string" || !/^[\w-]+$/.test(token)) return undefined;
  return Number.isInteger(port) && port > 0 && port < 65536 ? { port, token } : undefined;
}

/** The program, as it was named or as it is found in the usual places; undefined if it is nowhere. */
export function findProgram(chosen: string): string | undefined {
  const name = process.platform === "win32" ? "obsidian-rag.exe" : "obsidian-rag";
  if (chosen.trim()) {
    const path = expanded(chosen.trim());
    return isAbsolute(path) && isProgram(path) ? path : undefined;
  }
  // Apps that a dock or a menu starts do not see the shell's PATH.
  const usual = [join(homedir(), ".local", "bin"), "/opt/homebrew/bin", "/usr/local/bin"];
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), ...usual];
  return folders.filter(Boolean).map((folder) => join(folder, name)).find(isProgram);
}

/** Whether two paths are the same folder, whatever links lead there. */
export function isSameFolder(one: string, other: string): boolean {
  const names = [one, other].map(realPath);
  const isBlind = process.platform === "win32" || process.platform === "darwin";
  return isBlind ? names[0]?.toLowerCase() === names[1]?.toLowerCase() : names[0] === names[1];
}

/** Whether the app runs in a sandbox that hides the programs of the machine. */
export function isSandboxed(): boolean {
  return Boolean(process.env["FLATPAK_ID"] || process.env["SNAP"]);
}

function expanded(path: string): string {
  return resolve(path.replace(/^~(?=$|[\\/])/, homedir()));
}

function realPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return resolve(path);
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
