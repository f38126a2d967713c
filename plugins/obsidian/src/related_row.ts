/** One related note in the panel: score, title, why; below it, when it is open, the shares and the two passages. */

import { setIcon, setTooltip } from "obsidian";

import type { Passage, RelatedNote } from "./answers";

export interface RowActions {
  open(line: number, event: MouseEvent | KeyboardEvent): void;
  insert(headings: readonly string[]): void;
  relate(): void;
  /** The text that is dropped where the row is dragged to. */
  dragged(): string;
  hover(event: MouseEvent, target: HTMLElement): void;
  toggled(isOpen: boolean): void;
}

const SIGNALS: Record<string, string> = {
  bm25: "words",
  tags: "tags",
  terms: "vocabulary",
  graph: "links",
  cosine: "rare words",
  neighbours: "neighbours",
  title: "titles",
  vector: "meaning",
};

export class RelatedRow {
  readonly element: HTMLElement;
  private readonly head: HTMLElement;
  private readonly chevron: HTMLElement;
  private readonly body: HTMLElement;
  private isFilled = false;

  constructor(parent: HTMLElement, private readonly note: RelatedNote, private readonly actions: RowActions, isOpen: boolean) {
    this.element = parent.createDiv({ cls: "rag-companion-row tree-item", attr: { role: "listitem" } });
    this.head = this.element.createDiv({ cls: "rag-companion-head tree-item-self is-clickable", attr: { tabindex: "0", draggable: "true", role: "button", "aria-expanded": "false" } });
    this.chevron = this.head.createDiv({ cls: "rag-companion-chevron", attr: { "aria-label": "Why, and where they meet", role: "button" } });
    setIcon(this.chevron, "chevron-right");
    const words = this.head.createDiv({ cls: "rag-companion-words" });
    const first = words.createDiv({ cls: "rag-companion-title" });
    first.setText(note.title || note.path.replace(/\.md$/, ""));
    setTooltip(first, note.path.replace(/\.md$/, ""));
    words.createDiv({ cls: "rag-companion-reasons", text: sentence(note.reasons) });
    if (note.isLinked) setIcon(this.head.createDiv({ cls: "rag-companion-linked", attr: { "aria-label": "Linked already" } }), "link");
    const score = this.head.createDiv({ cls: `rag-companion-score ${scoreClass(note.score)}`, text: note.score.toFixed(2) });
    score.setAttr("aria-label", `Score ${note.score.toFixed(2)}`);
    this.body = this.element.createDiv({ cls: "rag-companion-body" });
    this.body.hidden = true;
    this.listen();
    if (isOpen) this.expand(true, false);
  }

  /** Show or fold the reasons. */
  expand(isOpen: boolean, isTold = true): void {
    if (isOpen && !this.isFilled) this.fill();
    this.body.hidden = !isOpen;
    this.head.setAttr("aria-expanded", String(isOpen));
    this.element.toggleClass("is-open", isOpen);
    if (isTold) this.actions.toggled(isOpen);
  }

  private get isOpen(): boolean {
    return !this.body.hidden;
  }

  private listen(): void {
    this.chevron.addEventListener("click", (event) => {
      event.stopPropagation();
      this.expand(!this.isOpen);
    });
    const open = (event: MouseEvent | KeyboardEvent): void => {
      event.preventDefault();
      this.actions.open(this.meeting?.line ?? 0, event);
    };
    this.head.addEventListener("click", open);
    this.head.addEventListener("auxclick", (event) => {
      if (event.button === 1) open(event);
    });
    this.head.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      if (event.key === "Enter") open(event);
      else if (event.key === " ") {
        event.preventDefault();
        this.expand(!this.isOpen);
      } else if (event.key === "ArrowRight") this.expand(true);
      else if (event.key === "ArrowLeft") this.expand(false);
    });
    this.head.addEventListener("dragstart", (event) => {
      event.dataTransfer?.setData("text/plain", this.actions.dragged());
      if (event.dataTransfer) event.dataTransfer.effectAllowed = "copyLink";
    });
    this.head.addEventListener("mouseover", (event) => this.actions.hover(event, this.head));
  }

  /** The passage of the other note. */
  private get meeting(): Passage | undefined {
    return this.note.passages.find((one) => one.path === this.note.path);
  }

  private fill(): void {
    this.isFilled = true;
    this.shares();
    if (this.note.sharedTags.length) {
      const tags = this.body.createDiv({ cls: "rag-companion-tags" });
      for (const tag of this.note.sharedTags) tags.createSpan({ cls: "tag", text: `#${tag}` });
    }
    for (const passage of this.note.passages) this.passage(passage);
    const buttons = this.body.createDiv({ cls: "rag-companion-buttons" });
    button(buttons, "Insert link", () => this.actions.insert([]));
    button(buttons, "Add relation", () => this.actions.relate());
  }

  private shares(): void {
    if (!this.note.signals.length) return;
    const list = this.body.createDiv({ cls: "rag-companion-shares", attr: { role: "list", "aria-label": "Signals" } });
    for (const signal of this.note.signals.filter((one) => one.score > 0)) {
      const line = list.createDiv({ cls: "rag-companion-share", attr: { role: "listitem" } });
      line.createSpan({ text: SIGNALS[signal.name] ?? signal.name });
      const bar = line.createDiv({ cls: "rag-companion-bar" });
      bar.createDiv({ cls: "rag-companion-fill" }).setCssProps({ "--rag-companion-share": `${Math.round(signal.score * 100)}%` });
      setTooltip(line, `${Math.round(signal.share * 100)} % of the score`);
      line.createSpan({ cls: "rag-companion-figure", text: signal.score.toFixed(2) });
    }
  }

  private passage(passage: Passage): void {
    const box = this.body.createDiv({ cls: "rag-companion-passage" });
    const isOther = passage.path === this.note.path;
    const where = below(passage.headings, isOther ? this.note.title : "").join(" › ");
    box.createDiv({ cls: "rag-companion-where", text: [isOther ? "There" : "Here", where, `line ${passage.line}`].filter(Boolean).join(" · ") });
    const quote = box.createDiv({ cls: "rag-companion-quote", text: shortened(passage.text) });
    if (this.note.categories.length) this.veil(box, quote);
    if (!isOther) return;
    const buttons = box.createDiv({ cls: "rag-companion-buttons" });
    button(buttons, "Open here", (event) => this.actions.open(passage.line, event));
    if (passage.headings.length) button(buttons, "Link to section", () => this.actions.insert(passage.headings));
  }

  /** Private text is blurred until somebody wants to see it. */
  private veil(box: HTMLElement, quote: HTMLElement): void {
    quote.addClass("is-private");
    quote.setAttr("aria-hidden", "true");
    const show = button(box, `Show private text (${this.note.categories.join(", ")})`, () => {
      quote.removeClass("is-private");
      quote.removeAttribute("aria-hidden");
      show.remove();
    });
  }
}

function button(parent: HTMLElement, label: string, act: (event: MouseEvent) => void): HTMLElement {
  const made = parent.createEl("button", { text: label, cls: "rag-companion-button" });
  made.addEventListener("click", (event) => {
    event.stopPropagation();
    act(event);
  });
  return made;
}

/** Green above 0.7, yellow above 0.4, else grey; the figure says it without colour. */
export function scoreClass(score: number): string {
  return score > 0.7 ? "is-high" : score > 0.4 ? "is-middle" : "is-low";
}

function sentence(reasons: readonly string[]): string {
  const joined = reasons.join(" · ");
  return joined.charAt(0).toUpperCase() + joined.slice(1);
}

/** The headings of a passage without the title, which stands above it already. */
export function below(headings: readonly string[], title: string): readonly string[] {
  return headings[0] === title ? headings.slice(1) : headings;
}

const SHOWN_CHARS = 400;

function shortened(passage: string): string {
  const text = passage.replace(/\n\s*\n/g, "\n").trim();
  if (text.length <= SHOWN_CHARS) return text;
  const cut = text.slice(0, SHOWN_CHARS);
  return `${cut.slice(0, Math.max(cut.lastIndexOf(". ") + 1, cut.lastIndexOf(" "), 1))}…`;
}
