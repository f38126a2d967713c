/** Search by meaning and word, as you type. */

import { Notice, SuggestModal } from "obsidian";

import { type Hit, parseSearch } from "./answers";
import type { Companion } from "./companion";
import { insertLink, noteAt, openNote } from "./notes";
import { stateOf } from "./related_feed";
import { below, scoreClass } from "./related_row";
import { wordsFor } from "./states";
import { Cancelled } from "./transport";

const CALM_MS = 120;
const MOST_HITS = 20;
/** What is shown as 0.00 only fills the list. */
const LEAST_SCORE = 0.005;
/** The last question, offered again when the modal is opened again. */
let lastQuery = "";

export class SearchModal extends SuggestModal<Hit> {
  private asking: AbortController | undefined;
  private latest: Hit[] = [];
  private readonly saying: HTMLElement;

  constructor(private readonly companion: Companion, private readonly from: string) {
    super(companion.app);
    this.limit = MOST_HITS;
    this.emptyStateText = "Type a question or a few words.";
    this.setPlaceholder("Search your notes by meaning and word");
    this.setInstructions([
      { command: "↑↓", purpose: "choose" },
      { command: "↵", purpose: "open" },
      { command: "ctrl ↵", purpose: "new tab" },
      { command: "shift ↵", purpose: "insert link" },
      { command: "esc", purpose: "close" },
    ]);
    for (const keys of [["Shift"], ["Mod"]] as const) {
      this.scope.register([...keys], "Enter", (event) => {
        if (!event.isComposing) this.selectActiveSuggestion(event);
        return false;
      });
    }
    this.modalEl.addClass("rag-companion-search");
    this.saying = createDiv({ cls: "rag-companion-saying", attr: { "aria-live": "polite" } });
    this.resultContainerEl.before(this.saying);
    this.inputEl.value = lastQuery;
    this.inputEl.select();
  }

  override onClose(): void {
    super.onClose();
    this.asking?.abort();
  }

  override async getSuggestions(query: string): Promise<Hit[]> {
    this.asking?.abort();
    lastQuery = query;
    const asking = new AbortController();
    this.asking = asking;
    if (!query.trim()) return this.answer([], "", "Type a question or a few words.");
    await pause(CALM_MS);
    // The app shows whatever comes last: a question that was overtaken repeats what is on the screen.
    if (asking.signal.aborted) return this.latest;
    try {
      const { connection } = this.companion;
      const { data } = await connection.call("obsidian_rag_search", { query, max_results: MOST_HITS }, { signal: asking.signal });
      if (asking.signal.aborted) return this.latest;
      const found = parseSearch(data ?? {}, connection.linkId);
      const there = found.hits.filter((hit) => noteAt(this.app, hit.path));
      const telling = there.filter((hit) => hit.score >= LEAST_SCORE);
      const hits = telling.length ? telling : there;
      const weak = found.isWeak && hits.length ? "Nothing in your notes seems to answer this. Nearest:" : "";
      return this.answer(hits, weak, "Nothing found.");
    } catch (error) {
      if (asking.signal.aborted || error instanceof Cancelled) return this.latest;
      const words = wordsFor(stateOf(error), this.companion.around());
      return this.answer([], words.text, words.title);
    }
  }

  private answer(hits: Hit[], said: string, ifEmpty: string): Hit[] {
    this.saying.setText(said);
    this.emptyStateText = ifEmpty;
    this.latest = hits;
    return hits;
  }

  override renderSuggestion(hit: Hit, element: HTMLElement): void {
    element.addClass("rag-companion-hit");
    const first = element.createDiv({ cls: "rag-companion-hit-title" });
    first.createSpan({ text: hit.title || hit.path.replace(/\.md$/, "") });
    first.createSpan({ cls: "rag-companion-where", text: [folderOf(hit.path), ...below(hit.headings, hit.title), `line ${hit.line}`].filter(Boolean).join(" › ") });
    first.createSpan({ cls: `rag-companion-score ${scoreClass(hit.score)}`, text: hit.score.toFixed(2) });
    const second = element.createDiv({ cls: "rag-companion-hit-text" });
    if (hit.categories.length) {
      second.createSpan({ cls: "rag-companion-private", text: `Private (${hit.categories.join(", ")}). ` });
    } else {
      marked(second, excerpt(hit.text, hit.terms), hit.terms);
    }
  }

  override onChooseSuggestion(hit: Hit, event: MouseEvent | KeyboardEvent): void {
    if (event.shiftKey) {
      if (!insertLink(this.app, hit.path, this.from, [])) new Notice("Open a note in an editor to insert a link.");
      return;
    }
    void openNote(this.app, hit.path, hit.line, event, this.companion.panel);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => window.setTimeout(resolve, ms));
}

function folderOf(path: string): string {
  return path.split("/").slice(0, -1).join(" › ");
}

const SHOWN_CHARS = 180;

/** The part of a passage where the question's words begin. */
export function excerpt(text: string, terms: readonly string[]): string {
  const flat = text.replace(/^#{1,6} .*$/gm, "").replace(/\s+/g, " ").trim() || text.replace(/\s+/g, " ").trim();
  const low = flat.toLowerCase();
  const found = terms.map((term) => low.indexOf(term.toLowerCase())).filter((at) => at >= 0);
  const first = found.length ? Math.min(...found) : 0;
  const start = first > SHOWN_CHARS / 2 ? flat.lastIndexOf(" ", first - SHOWN_CHARS / 3) + 1 : 0;
  const cut = flat.slice(start, start + SHOWN_CHARS);
  return `${start ? "…" : ""}${cut}${start + SHOWN_CHARS < flat.length ? "…" : ""}`;
}

/** Write text with its terms marked; as text, so that nothing in a note is ever markup here. */
function marked(parent: HTMLElement, text: string, terms: readonly string[]): void {
  const words = terms.filter(Boolean).map((term) => term.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!words.length) {
    parent.setText(text);
    return;
  }
  const pattern = new RegExp(`(${words.join("|")})`, "gi");
  text.split(pattern).forEach((part, at) => {
    if (at % 2) parent.createEl("mark", { text: part, cls: "rag-companion-mark" });
    else parent.appendText(part);
  });
}
