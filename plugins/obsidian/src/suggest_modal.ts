/** Relations that a note could have and has not yet: choose one, and it is written. */

import { FuzzySuggestModal, Notice, type FuzzyMatch } from "obsidian";

import { type RelatedNote, parseRelated } from "./answers";
import type { Companion } from "./companion";
import { noteAt } from "./notes";
import { scoreClass } from "./related_row";
import { relate, tell } from "./relation";

const MOST = 50;

class RelationModal extends FuzzySuggestModal<RelatedNote> {
  constructor(private readonly companion: Companion, private readonly from: string, private readonly notes: RelatedNote[]) {
    super(companion.app);
    this.setPlaceholder("Relate this note to");
    this.setInstructions([{ command: "↵", purpose: "add relation" }, { command: "esc", purpose: "close" }]);
  }

  getItems(): RelatedNote[] {
    return this.notes;
  }

  getItemText(note: RelatedNote): string {
    return note.title || note.path;
  }

  override renderSuggestion(match: FuzzyMatch<RelatedNote>, element: HTMLElement): void {
    const note = match.item;
    element.addClass("rag-companion-hit");
    const first = element.createDiv({ cls: "rag-companion-hit-title" });
    first.createSpan({ text: this.getItemText(note) });
    first.createSpan({ cls: `rag-companion-score ${scoreClass(note.score)}`, text: note.score.toFixed(2) });
    element.createDiv({ cls: "rag-companion-hit-text", text: note.reasons.join(" · ") });
  }

  onChooseItem(note: RelatedNote): void {
    void relate(this.companion, this.from, note.path);
  }
}

/** Offer relations for a note. */
export async function suggestRelations(companion: Companion, from: string): Promise<void> {
  try {
    const { connection } = companion;
    const { data } = await connection.call("obsidian_rag_suggest_relations", { note: from, max_results: MOST });
    const notes = parseRelated(data ?? {}, connection.linkId).notes.filter((one) => noteAt(companion.app, one.path));
    if (notes.length) new RelationModal(companion, from, notes).open();
    else new Notice("No note is close enough to suggest.");
  } catch (error) {
    tell(companion, error);
  }
}
