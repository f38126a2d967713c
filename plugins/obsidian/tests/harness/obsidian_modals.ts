/** Modals, suggestions and notices of the stand-in. */

import { make } from "./dom";

type Press = { modifiers: string[]; key: string; act: (event: KeyboardEvent) => unknown };

export class Modal {
  containerEl = make(null, "div", "modal-container");
  modalEl = make(this.containerEl, "div", { cls: "modal", attr: { role: "dialog" } });
  titleEl = make(this.modalEl, "div", "modal-title");
  contentEl = make(this.modalEl, "div", "modal-content");
  presses: Press[] = [];
  scope = {
    register: (modifiers: string[], key: string, act: (event: KeyboardEvent) => unknown): void => void this.presses.push({ modifiers, key, act }),
  };
  constructor(public app: unknown) {}
  setTitle(title: string): this {
    this.titleEl.textContent = title;
    return this;
  }
  open(): void {
    document.body.appendChild(this.containerEl);
    document.addEventListener("keydown", this.pressed, true);
    this.onOpen();
  }
  close(): void {
    document.removeEventListener("keydown", this.pressed, true);
    this.containerEl.remove();
    this.onClose();
  }
  onOpen(): void {}
  onClose(): void {}
  protected pressed = (event: KeyboardEvent): void => {
    if (event.key === "Escape") this.close();
    const held = [event.shiftKey && "Shift", (event.ctrlKey || event.metaKey) && "Mod"].filter(Boolean).join();
    for (const { modifiers, key, act } of this.presses) {
      if (key === event.key && modifiers.join() === held && act(event) === false) event.preventDefault();
    }
  };
}

export abstract class SuggestModal<T> extends Modal {
  limit = 100;
  emptyStateText = "";
  inputEl = make(null, "input", { cls: "prompt-input", type: "text" }) as HTMLInputElement;
  resultContainerEl = make(null, "div", { cls: "prompt-results", attr: { role: "listbox" } });
  private instructionsEl = make(null, "div", "prompt-instructions");
  private chosen = 0;
  private values: T[] = [];
  constructor(app: unknown) {
    super(app);
    this.titleEl.remove();
    this.contentEl.remove();
    this.modalEl.classList.add("prompt");
    this.modalEl.append(this.inputEl, this.resultContainerEl, this.instructionsEl);
    this.inputEl.addEventListener("input", () => void this.update());
    this.scope.register([], "Enter", (event) => {
      if (event.isComposing) return true;
      this.selectActiveSuggestion(event);
      return false;
    });
    this.scope.register([], "ArrowDown", () => this.choose(this.chosen + 1));
    this.scope.register([], "ArrowUp", () => this.choose(this.chosen - 1));
  }
  setPlaceholder(text: string): void {
    this.inputEl.placeholder = text;
  }
  setInstructions(all: { command: string; purpose: string }[]): void {
    for (const { command, purpose } of all) {
      const one = make(this.instructionsEl, "span", "prompt-instruction");
      make(one, "span", { cls: "prompt-instruction-command", text: command });
      make(one, "span", { text: ` ${purpose}` });
    }
  }
  override open(): void {
    super.open();
    this.inputEl.focus();
    void this.update();
  }
  abstract getSuggestions(query: string): T[] | Promise<T[]>;
  abstract renderSuggestion(value: T, element: HTMLElement): void;
  abstract onChooseSuggestion(value: T, event: MouseEvent | KeyboardEvent): void;
  selectActiveSuggestion(event: MouseEvent | KeyboardEvent): void {
    const value = this.values[this.chosen];
    if (value === undefined) return;
    this.close();
    this.onChooseSuggestion(value, event);
  }
  private async update(): Promise<void> {
    const asked = this.inputEl.value;
    this.values = (await this.getSuggestions(asked)).slice(0, this.limit);
    this.chosen = 0;
    this.resultContainerEl.replaceChildren();
    this.values.forEach((value, at) => {
      const element = make(this.resultContainerEl, "div", { cls: "suggestion-item", attr: { role: "option" } });
      this.renderSuggestion(value, element);
      element.addEventListener("click", (event) => {
        this.chosen = at;
        this.selectActiveSuggestion(event);
      });
    });
    if (!this.values.length) make(this.resultContainerEl, "div", { cls: "suggestion-empty", text: this.emptyStateText });
    this.choose(0);
    // For tests: what is shown answers all that was typed.
    if (asked === this.inputEl.value) this.resultContainerEl.dataset.answered = asked;
  }
  private choose(at: number): false {
    this.chosen = Math.max(0, Math.min(this.values.length - 1, at));
    [...this.resultContainerEl.children].forEach((one, index) => one.classList.toggle("is-selected", index === this.chosen));
    this.resultContainerEl.children[this.chosen]?.scrollIntoView({ block: "nearest" });
    return false;
  }
}

export interface FuzzyMatch<T> {
  item: T;
}

export abstract class FuzzySuggestModal<T> extends SuggestModal<FuzzyMatch<T>> {
  abstract getItems(): T[];
  abstract getItemText(item: T): string;
  abstract onChooseItem(item: T, event: MouseEvent | KeyboardEvent): void;
  getSuggestions(query: string): FuzzyMatch<T>[] {
    const low = query.toLowerCase();
    return this.getItems().filter((item) => this.getItemText(item).toLowerCase().includes(low)).map((item) => ({ item }));
  }
  renderSuggestion(match: FuzzyMatch<T>, element: HTMLElement): void {
    element.textContent = this.getItemText(match.item);
  }
  onChooseSuggestion(match: FuzzyMatch<T>, event: MouseEvent | KeyboardEvent): void {
    this.onChooseItem(match.item, event);
  }
}

export class Notice {
  private element: HTMLElement;
  constructor(message: string) {
    this.element = make(document.getElementById("notices"), "div", { cls: "notice", text: message });
  }
  setMessage(message: string): this {
    this.element.textContent = message;
    return this;
  }
  hide(): void {
    this.element.remove();
  }
}
