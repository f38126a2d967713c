/** Ask before files change. */

import { type App, Modal, Setting } from "obsidian";

class ConfirmModal extends Modal {
  private isAgreed = false;

  constructor(app: App, title: string, text: string, label: string, private readonly decided: (isAgreed: boolean) => void) {
    super(app);
    this.setTitle(title);
    this.contentEl.createEl("p", { text });
    new Setting(this.contentEl)
      .addButton((button) =>
        button.setButtonText(label).setCta().onClick(() => {
          this.isAgreed = true;
          this.close();
        }),
      )
      .addButton((button) => button.setButtonText("Cancel").onClick(() => this.close()));
  }

  override onClose(): void {
    this.contentEl.empty();
    this.decided(this.isAgreed);
  }
}

/** Whether the user agrees; closing means no. */
export function confirm(app: App, title: string, text: string, label: string): Promise<boolean> {
  return new Promise((resolve) => new ConfirmModal(app, title, text, label, resolve).open());
}
