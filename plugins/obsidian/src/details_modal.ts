/** Health of the engine at a glance: what is indexed, what is going on, what is wrong, and what to do. */

import { Modal, Notice, Setting } from "obsidian";

import type { EngineStatus } from "./answers";
import type { Companion } from "./companion";
import { tell } from "./relation";
import { showState } from "./state_card";
import { ago, count, healthWord } from "./states";

const LISTED = 20;

export class DetailsModal extends Modal {
  private forget: (() => void) | undefined;

  constructor(private readonly companion: Companion) {
    super(companion.app);
    this.setTitle("Search engine of this vault");
    this.modalEl.addClass("rag-companion-details");
  }

  override onOpen(): void {
    this.forget = this.companion.connection.onState(() => this.show());
    void this.companion.connection.connect();
    this.show();
  }

  override onClose(): void {
    this.forget?.();
    this.contentEl.empty();
  }

  private show(): void {
    const { state } = this.companion.connection;
    this.contentEl.empty();
    if (state.kind !== "ready") {
      showState(this.contentEl, this.companion, { kind: "connection", state });
      return;
    }
    this.facts(state.status);
    this.skipped(state.status);
    new Setting(this.contentEl)
      .addButton((button) => button.setButtonText("Sync now").setCta().onClick(() => void startIndex(this.companion, "sync")))
      .addButton((button) => button.setButtonText("Reindex vault").onClick(() => void startIndex(this.companion, "reindex")));
  }

  private facts(status: EngineStatus): void {
    const list = this.contentEl.createEl("dl", { cls: "rag-companion-facts" });
    const fact = (name: string, value: string): void => {
      list.createEl("dt", { text: name });
      list.createEl("dd", { text: value });
    };
    fact("Health", healthWord(status.health, status.leftOut));
    if (status.problem) fact("Why", `${status.problem.message} ${status.problem.suggestion}`);
    fact("Indexed", `${count(status.notes)} notes, ${count(status.passages)} passages`);
    fact("Last sync", ago(status.lastSync));
    if (status.job) fact("In progress", status.job.total ? `${count(status.job.done)} of ${count(status.job.total)} notes` : "Counting notes");
    fact("Embedder", status.embedder);
  }

  private skipped(status: EngineStatus): void {
    if (!status.skipped.length) return;
    const box = this.contentEl.createEl("details");
    box.createEl("summary", { text: `Not searchable, or only in part: ${count(status.skipped.length)}` });
    const list = box.createEl("ul");
    for (const one of status.skipped.slice(0, LISTED)) list.createEl("li", { text: `${one.file}: ${one.reason}` });
  }
}

/** Start an index run, because the user asked for it. */
export async function startIndex(companion: Companion, mode: "sync" | "full" | "reindex"): Promise<void> {
  try {
    await companion.connection.call("obsidian_rag_index", { mode });
    new Notice(mode === "sync" ? "Sync started." : "Indexing started. The status bar shows how far it is.");
    await companion.connection.connect();
  } catch (error) {
    tell(companion, error);
  }
}
