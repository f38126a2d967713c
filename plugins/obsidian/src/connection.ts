/** The engine as the plugin sees it: found or not, ours or not, and every question to it. */

import { type Envelope, type EngineStatus, Refused, counts, isRecord, parseEnvelope, parseStatus, records, text } from "./answers";
import { isSameFolder } from "./presence";
import type { ServerEvent } from "./sse";
import { type Address, Cancelled, type Reply, type Transport, Unreachable } from "./transport";

export type ConnectionState =
  | { kind: "connecting" }
  | { kind: "starting" }
  | { kind: "off"; reason: "absent" | "refused" | "slow" | "foreign" }
  | { kind: "other-vault"; vaults: string[] }
  | { kind: "refused"; message: string; suggestion: string }
  | { kind: "ready"; status: EngineStatus };

/** Questions need an engine that is ready. */
export class NotReady extends Error {
  constructor(readonly state: ConnectionState) {
    super(`The engine is not ready (${state.kind}).`);
  }
}

export interface Place {
  /** The address that daemon.json names now. */
  address(): Address | undefined;
  /** The folder of the vault that the app has open. */
  vaultPath: string;
}

export interface Question {
  signal?: AbortSignal;
  timeoutMs?: number;
}

type Arguments = Record<string, unknown>;

/** The first question after a start may have to wait for a model. */
const USUAL_MS = 30_000;
const LOOK_AGAIN_MS = 5_000;
const CALM_MS = 1000;

export class Connection {
  state: ConnectionState = { kind: "connecting" };
  /** The engine's id of this vault; empty if it names none. */
  linkId = "";
  /** Whether this is the engine's first vault, the one that it may write to. */
  isPrimary = true;
  private address: Address | undefined;
  private connecting: Promise<void> | undefined;
  private parameters = new Map<string, Set<string>>();
  private endStream: (() => void) | undefined;
  private lastEvent = "";
  private lookTimer: number | undefined;
  private calmTimer: number | undefined;
  private isOver = false;
  private readonly watchers = new Set<() => void>();
  private readonly changeWatchers = new Set<() => void>();

  constructor(private readonly transport: Transport, private readonly place: Place) {}

  /** Call `watcher` whenever the state has changed; returns what ends that. */
  onState(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  /** Call `watcher` whenever notes were indexed; returns what ends that. */
  onIndexed(watcher: () => void): () => void {
    this.changeWatchers.add(watcher);
    return () => this.changeWatchers.delete(watcher);
  }

  /** Find the engine; however many ask, once at a time. Never rejects: `state` tells. */
  connect(): Promise<void> {
    this.connecting ??= this.find().finally(() => {
      this.connecting = undefined;
    });
    return this.connecting;
  }

  /** Forget the engine and look for it again, as after a change of the settings. */
  reconnect(): Promise<void> {
    this.hangUp();
    this.set({ kind: "connecting" });
    return this.connect();
  }

  /** Say that the engine is being started. */
  expect(): void {
    this.set({ kind: "starting" });
  }

  /** End everything; for good. */
  close(): void {
    this.isOver = true;
    this.hangUp();
    window.clearTimeout(this.lookTimer);
    window.clearTimeout(this.calmTimer);
    this.watchers.clear();
    this.changeWatchers.clear();
  }

  /**
   * Ask a tool. A token that is out of date or a closed port is looked up once more.
   * Rejects with NotReady, Refused, Unreachable or Cancelled.
   */
  async call(tool: string, given: Arguments, question: Question = {}): Promise<Envelope> {
    for (const isLast of [false, true]) {
      if (!this.address || this.state.kind !== "ready") await this.connect();
      if (!this.address || this.state.kind !== "ready") throw new NotReady(this.state);
      const reply = await this.post(this.address, tool, given, question).catch((error: unknown) => {
        if (error instanceof Unreachable && error.reason !== "slow") return undefined;
        throw error;
      });
      const envelope = reply && reply.status !== 401 ? parseEnvelope(reply.body) : undefined;
      if (envelope) {
        if (envelope.data === null) throw new Refused(envelope.error ?? { code: "", message: "The engine did not answer.", suggestion: "" });
        return envelope;
      }
      this.hangUp();
      if (isLast) this.goOff("refused");
      else await this.connect();
    }
    throw new NotReady(this.state);
  }

  private post(to: Address, tool: string, given: Arguments, question: Question): Promise<Reply> {
    const body = { ...this.ourVault(tool), ...given };
    const { signal, timeoutMs = USUAL_MS } = question;
    return this.transport.request(to, { method: "POST", path: `/tools/${tool}`, body, timeoutMs, signal });
  }

  /** An engine with several vaults is told which one is meant: where the note is, and where to look. */
  private ourVault(tool: string): Arguments {
    const known = this.parameters.get(tool);
    if (!this.linkId || !known) return {};
    const named = known.has("vault") ? { vault: this.linkId } : {};
    return known.has("vaults") ? { ...named, vaults: [this.linkId] } : named;
  }

  private async find(): Promise<void> {
    window.clearTimeout(this.lookTimer);
    const address = this.place.address();
    if (!address) {
      this.goOff("absent");
      return;
    }
    try {
      const asked = { method: "POST", path: "/tools/obsidian_rag_status", body: {}, timeoutMs: USUAL_MS } as const;
      const [told, offered] = await Promise.all([
        this.transport.request(address, asked),
        this.transport.request(address, { method: "GET", path: "/tools", timeoutMs: USUAL_MS }),
      ]);
      const envelope = told.status === 401 ? undefined : parseEnvelope(told.body);
      if (this.isOver) return;
      if (!envelope) this.goOff("foreign");
      else this.greet(address, envelope, offered.body);
    } catch (error) {
      if (error instanceof Cancelled) return;
      this.goOff(error instanceof Unreachable ? error.reason : "foreign");
    }
  }

  private greet(address: Address, envelope: Envelope, offered: unknown): void {
    if (envelope.data === null) {
      const { message, suggestion } = envelope.error ?? { message: "The engine has no status.", suggestion: "" };
      this.set({ kind: "refused", message, suggestion });
      this.lookLater();
      return;
    }
    const status = parseStatus(envelope);
    const ours = status.vaults.find((one) => isSameFolder(one.path, this.place.vaultPath));
    if (!ours) {
      this.set({ kind: "other-vault", vaults: status.vaults.map((one) => one.path) });
      this.lookLater();
      return;
    }
    this.linkId = ours.linkId;
    this.isPrimary = ours.isPrimary;
    this.parameters = parametersOf(offered);
    this.address = address;
    this.set({ kind: "ready", status });
    if (!this.endStream) this.listen(address);
  }

  private listen(address: Address): void {
    this.endStream = this.transport.listen(address, this.lastEvent, {
      opened: () => undefined,
      heard: (event) => this.hear(event),
      ended: () => {
        this.endStream = undefined;
        this.lastEvent = "";
        if (!this.isOver) void this.connect();
      },
    });
  }

  private hear(event: ServerEvent): void {
    if (event.id) this.lastEvent = event.id;
    if (event.kind === "changes" || event.kind === "relations" || event.kind === "missed") {
      for (const watcher of [...this.changeWatchers]) watcher();
    }
    if (event.kind === "progress" && this.state.kind === "ready" && isRecord(event.data) && event.data["phase"]) {
      const job = { mode: this.state.status.job?.mode ?? text(event.data["mode"]), ...counts(event.data) };
      this.set({ kind: "ready", status: { ...this.state.status, job } });
      return;
    }
    // "ready" too: what happened before the stream began was not heard.
    this.askStatusSoon();
  }

  /** A burst of events is one question about the status. */
  private askStatusSoon(): void {
    window.clearTimeout(this.calmTimer);
    // An answer that is under way may be older than the event.
    this.calmTimer = window.setTimeout(() => void Promise.resolve(this.connecting).then(() => this.connect()), CALM_MS);
  }

  private goOff(reason: "absent" | "refused" | "slow" | "foreign"): void {
    this.hangUp();
    if (this.state.kind !== "starting") this.set({ kind: "off", reason });
    this.lookLater();
  }

  private lookLater(): void {
    window.clearTimeout(this.lookTimer);
    if (!this.isOver) this.lookTimer = window.setTimeout(() => void this.connect(), LOOK_AGAIN_MS);
  }

  private hangUp(): void {
    this.endStream?.();
    this.endStream = undefined;
    this.lastEvent = "";
    this.address = undefined;
  }

  private set(state: ConnectionState): void {
    if (this.isOver) return;
    this.state = state;
    for (const watcher of [...this.watchers]) watcher();
  }
}

function parametersOf(offered: unknown): Map<string, Set<string>> {
  const tools = isRecord(offered) ? records(offered["tools"]) : [];
  return new Map(
    tools.map((tool) => {
      const schema = isRecord(tool["input_schema"]) ? tool["input_schema"] : {};
      return [text(tool["name"]), new Set(Object.keys(isRecord(schema["properties"]) ? schema["properties"] : {}))];
    }),
  );
}
