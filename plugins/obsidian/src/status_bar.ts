/** Health and progress in the status bar; a click shows the details. Quiet: it never opens anything by itself. */

import { setTooltip } from "obsidian";

import type { ConnectionState } from "./connection";
import { statusText } from "./status_bar_text";

export class StatusBar {
  private timer: number;

  constructor(private readonly element: HTMLElement, private readonly state: () => ConnectionState, open: () => void) {
    element.addClass("mod-clickable", "rag-companion-status");
    element.setAttr("role", "button");
    element.setAttr("tabindex", "0");
    element.addEventListener("click", open);
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") open();
    });
    // "2 minutes ago" grows old.
    this.timer = window.setInterval(() => this.show(), 60_000);
    this.show();
  }

  show(): void {
    const { label, tip, kind } = statusText(this.state());
    if (this.element.getText() !== label) this.element.setText(label);
    this.element.dataset["state"] = kind;
    setTooltip(this.element, tip, { placement: "top" });
  }

  showIf(isShown: boolean): void {
    this.element.toggle(isShown);
  }

  stop(): void {
    window.clearInterval(this.timer);
  }
}
