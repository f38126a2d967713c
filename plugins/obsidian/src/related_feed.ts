/**
 * What belongs to the active note, asked without blocking anything: late answers are dropped, the last notes are
 * remembered, and a reader who leafs through notes causes one question when they stop.
 */

import { type RelatedAnswer, Refused } from "./answers";
import { NotReady } from "./connection";
import { Cancelled, Unreachable } from "./transport";
import type { PanelState } from "./states";

export interface RelatedView {
  path: string;
  answer: RelatedAnswer;
  /** The note is not indexed yet: its text was compared instead. */
  isByText: boolean;
}

/** How a note is asked for; undefined if there is nothing to compare. */
export type AskRelated = (path: string, signal: AbortSignal) => Promise<Omit<RelatedView, "path"> | PanelState>;

export interface Shown {
  /** A question is under way; what is on the screen stays there for now. */
  waiting(path: string): void;
  found(view: RelatedView): void;
  state(path: string | null, state: PanelState): void;
}

export const CALM_MS = 150;
const MOST_KEPT = 60;

export class RelatedFeed {
  path: string | null = null;
  private readonly kept = new Map<string, RelatedView>();
  private asking: AbortController | undefined;
  private timer: number | undefined;
  private switchedAt = -Infinity;

  constructor(private readonly ask: AskRelated, private readonly shown: Shown) {}

  /** Another note is active, or none. The first switch is answered at once, quick ones after it when they end. */
  follow(path: string | null): void {
    if (path === this.path) return;
    this.path = path;
    this.cancel();
    if (path === null) return;
    const kept = this.kept.get(path);
    if (kept) {
      this.keep(kept);
      this.shown.found(kept);
      return;
    }
    const since = Date.now() - this.switchedAt;
    this.switchedAt = Date.now();
    this.shown.waiting(path);
    if (since >= CALM_MS) void this.run(path);
    else this.timer = window.setTimeout(() => void this.run(path), CALM_MS);
  }

  /** What is remembered may be wrong now; the note on the screen is asked for again. */
  refresh(): void {
    this.kept.clear();
    if (this.path === null) return;
    this.cancel();
    const path = this.path;
    this.timer = window.setTimeout(() => void this.run(path), CALM_MS);
  }

  /** Show again what is known of the active note, as after a rename or with another filter. */
  again(): void {
    const kept = this.path === null ? undefined : this.kept.get(this.path);
    if (kept) this.shown.found(kept);
    else this.refresh();
  }

  stop(): void {
    this.cancel();
    this.kept.clear();
    this.path = null;
  }

  private cancel(): void {
    window.clearTimeout(this.timer);
    this.asking?.abort();
    this.asking = undefined;
  }

  private async run(path: string): Promise<void> {
    const asking = new AbortController();
    this.asking = asking;
    try {
      const found = await this.ask(path, asking.signal);
      if (asking.signal.aborted || path !== this.path) return;
      if ("kind" in found) {
        this.shown.state(path, found);
        return;
      }
      const view = { path, ...found };
      this.keep(view);
      this.shown.found(view);
    } catch (error) {
      if (asking.signal.aborted || error instanceof Cancelled || path !== this.path) return;
      this.shown.state(path, stateOf(error));
    }
  }

  private keep(view: RelatedView): void {
    this.kept.delete(view.path);
    this.kept.set(view.path, view);
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= MOST_KEPT) break;
      this.kept.delete(oldest);
    }
  }
}

/** What went wrong, as a state of the panel. */
export function stateOf(error: unknown): PanelState {
  if (error instanceof NotReady) return { kind: "connection", state: error.state };
  if (error instanceof Unreachable && error.reason === "slow") return { kind: "slow" };
  if (error instanceof Unreachable) return { kind: "connection", state: { kind: "off", reason: error.reason } };
  if (error instanceof Refused) {
    if (error.problem.code === "INDEX_NOT_FOUND") return { kind: "no-index" };
    return { kind: "problem", problem: error.problem };
  }
  return { kind: "problem", problem: { code: "", message: String(error), suggestion: "" } };
}
