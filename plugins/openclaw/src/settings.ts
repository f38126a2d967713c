/** The plugin's own settings. Everything about notes and search is in the engine's config file. */

import { isRecord } from "./envelope.ts";
import { expanded } from "./presence.ts";

export interface Settings {
  /** The engine's command: a name in PATH, or a path. */
  command: string;
  /** The engine's data folder, where it is not the usual one. */
  home: string | undefined;
  /** The vault to configure, where none is. */
  vaultPath: string | undefined;
  /** Whether the daemon may be started, by the gateway and on demand. */
  autoStart: boolean;
  /** Whether vault hits appear in OpenClaw's own memory_search. */
  memoryCorpus: boolean;
  /** Whether the system prompt explains how to ask the vault. */
  promptProtocol: boolean;
  /** How long one call may take. */
  timeoutMs: number;
  /** The engine's `livesync` settings to write before its daemon is started; none without a database. */
  livesync: Readonly<Record<string, string | boolean>>;
  /** The password of that database, which is handed over and never written. */
  livesyncPassword: string | undefined;
}

/** OpenClaw has checked the values against the manifest's schema; a missing one has its default here too. */
export function settingsFrom(given: Record<string, unknown> = {}): Settings {
  const livesync = isRecord(given["livesync"]) ? given["livesync"] : {};
  return {
    command: text(given["command"]) ?? "obsidian-rag",
    home: text(given["home"]),
    vaultPath: text(given["vaultPath"]),
    autoStart: given["autoStart"] !== false,
    memoryCorpus: given["memoryCorpus"] !== false,
    promptProtocol: given["promptProtocol"] !== false,
    timeoutMs: (typeof given["timeoutSeconds"] === "number" ? given["timeoutSeconds"] : 60) * 1000,
    livesync: livesyncFrom(livesync),
    livesyncPassword: text(livesync["couchdbPassword"]),
  };
}

/** By the engine's names; a database is what makes the daemon sync. */
function livesyncFrom(database: Record<string, unknown>): Record<string, string | boolean> {
  if (text(database["couchdbUrl"]) === undefined || text(database["dbName"]) === undefined) return {};
  const written: Record<string, string | boolean> = {};
  for (const name of ["couchdbUrl", "couchdbUser", "dbName", "logLevel"]) {
    const value = text(database[name]);
    if (value !== undefined) written[name] = value;
  }
  const folder = text(database["vaultPath"]);
  if (folder !== undefined) written["vaultPath"] = expanded(folder);
  return { ...written, remote_consent: database["remoteConsent"] === true, enabled: true };
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}
