/** A stage for the tests: a daemon's door on a free port of this machine, its data folder, and a host. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";

import { Door } from "../src/door.ts";
import type { Envelope } from "../src/envelope.ts";
import type { CommandResult, Corpus, Host, RunCommand, Service, Tool, ToolContext } from "../src/host.ts";
import { Launcher } from "../src/launcher.ts";
import { type Settings, settingsFrom } from "../src/settings.ts";

export const META = { query_time_ms: 1, chunks_scanned: 0, index_version: "1", vault_mtime: null };

export function answer(data: Record<string, unknown>): Envelope {
  return { status: "healthy", data, error: null, meta: META };
}

export function refusal(code: string, message = "No."): Envelope {
  return { status: "unavailable", data: null, error: { code, message, recoverable: true, suggestion: "Do." }, meta: META };
}

export interface Asked {
  path: string;
  token: string;
  body: Record<string, unknown>;
}

/** Answers like the daemon does; `reply` decides what. */
export class Daemon {
  readonly asked: Asked[] = [];
  token = "secret";
  version = "0.1.0";
  reply: (asked: Asked) => Envelope | string | undefined = () => answer({});
  private readonly server: Server;
  private readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    this.server = createServer((request, response) => {
      void body(request).then((text) => {
        const token = request.headers.authorization?.replace("Bearer ", "") ?? "";
        const asked = { path: request.url ?? "", token, body: JSON.parse(text) as Record<string, unknown> };
        this.asked.push(asked);
        const isKnown = token === this.token;
        const said = isKnown ? this.reply(asked) : refusal("SECURITY_VIOLATION");
        if (said === undefined) return; // never answers
        response.writeHead(isKnown ? 200 : 401, { "Content-Type": "application/json" });
        response.end(typeof said === "string" ? said : JSON.stringify(said));
      });
    });
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
  }

  /** Write daemon.json, with the token given or the real one. */
  announce(token = this.token, pid = process.pid): void {
    const { port } = this.server.address() as AddressInfo;
    const presence = { port, token, pid, version: this.version, url: "", settings: "", started_at: "" };
    writeFileSync(join(this.folder, "daemon.json"), JSON.stringify(presence));
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

async function body(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString() || "{}";
}

export interface Stage {
  folder: string;
  daemon: Daemon;
  commands: string[][];
  /** What each command was given as environment. */
  environments: Record<string, string>[];
  settings: Settings;
  launcher: Launcher;
  door: Door;
}

export function said(envelope: Envelope, code = 0): CommandResult {
  return { code, stdout: JSON.stringify(envelope), stderr: "", termination: "exit" };
}

export function temporary(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "obsidian-rag-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A door to a daemon that listens and has not announced itself; `run` stands for the engine's command. */
export async function stage(
  context: TestContext,
  config: Record<string, unknown> = {},
  run: (stage: Stage, words: string[]) => CommandResult | Promise<CommandResult> = () => said(answer({})),
): Promise<Stage> {
  const folder = temporary(context);
  const daemon = new Daemon(folder);
  await daemon.listen();
  context.after(() => daemon.close());
  const commands: string[][] = [];
  const environments: Record<string, string>[] = [];
  const settings = settingsFrom(config);
  const command: RunCommand = async (argv, { env }) => {
    commands.push(argv);
    environments.push(env ?? {});
    return await run(made, argv.slice(1));
  };
  const launcher = new Launcher(command, settings, folder);
  const door = new Door(folder, launcher, settings);
  const made: Stage = { folder, daemon, commands, environments, settings, launcher, door };
  return made;
}

/** A host that keeps what is registered. */
export class Registry implements Host {
  readonly tools = new Map<string, (context: ToolContext) => Tool>();
  readonly services: Service[] = [];
  readonly corpora: Corpus[] = [];
  readonly prompts: ((asked: { availableTools: Set<string> }) => string[])[] = [];
  readonly log: string[] = [];
  readonly logger = { info: (line: string) => void this.log.push(line), warn: (line: string) => void this.log.push(line) };
  readonly runtime = { system: { runCommandWithTimeout: async () => said(answer({})) } };
  pluginConfig: Record<string, unknown> = {};

  registerTool(make: (context: ToolContext) => Tool, options: { name: string }): void {
    this.tools.set(options.name, make);
  }

  registerService(service: Service): void {
    this.services.push(service);
  }

  registerMemoryPromptSupplement(build: (asked: { availableTools: Set<string> }) => string[]): void {
    this.prompts.push(build);
  }

  registerMemoryCorpusSupplement(corpus: Corpus): void {
    this.corpora.push(corpus);
  }
}
