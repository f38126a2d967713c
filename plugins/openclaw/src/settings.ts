/** The plugin's own settings. Everything about notes and search is in the engine's config file. */

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
  /** Whether the system prompt tells how to ask the vault. */
  promptProtocol: boolean;
  /** How long one call may take. */
  timeoutMs: number;
}

/** OpenClaw has checked the values against the manifest's schema; a missing one has its default here too. */
export function settingsFrom(given: Record<string, unknown> = {}): Settings {
  return {
    command: text(given["command"]) ?? "obsidian-rag",
    home: text(given["home"]),
    vaultPath: text(given["vaultPath"]),
    autoStart: given["autoStart"] !== false,
    memoryCorpus: given["memoryCorpus"] !== false,
    promptProtocol: given["promptProtocol"] !== false,
    timeoutMs: (typeof given["timeoutSeconds"] === "number" ? given["timeoutSeconds"] : 60) * 1000,
  };
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}
