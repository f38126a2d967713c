/** A state without results, shown the same way everywhere: what is, why, and the one thing to do. */

import type { Companion } from "./companion";
import { type PanelState, wordsFor } from "./states";

export function showState(parent: HTMLElement, companion: Companion, state: PanelState): void {
  const words = wordsFor(state, companion.around());
  const card = parent.createDiv({ cls: "rag-companion-state" });
  card.createDiv({ cls: "rag-companion-state-title", text: words.title });
  card.createDiv({ cls: "rag-companion-state-text", text: words.text });
  if (words.command) card.createEl("code", { cls: "rag-companion-command", text: words.command });
  const action = card.createEl("button", { text: words.action.label, cls: "mod-cta" });
  action.addEventListener("click", () => companion.act(words.action.id, state));
}
