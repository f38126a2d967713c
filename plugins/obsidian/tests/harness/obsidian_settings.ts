/** Settings of the stand-in: rows with a toggle, a text, a choice or buttons. */

import { make } from "./dom";

class Toggle {
  constructor(private readonly input: HTMLInputElement) {}
  setValue(isOn: boolean): this {
    this.input.checked = isOn;
    return this;
  }
  onChange(act: (isOn: boolean) => void): this {
    this.input.addEventListener("change", () => act(this.input.checked));
    return this;
  }
}

class Text {
  constructor(public inputEl: HTMLInputElement) {}
  setPlaceholder(text: string): this {
    this.inputEl.placeholder = text;
    return this;
  }
  setValue(value: string): this {
    this.inputEl.value = value;
    return this;
  }
  getValue(): string {
    return this.inputEl.value;
  }
}

class Choice {
  constructor(private readonly select: HTMLSelectElement) {}
  addOptions(options: Record<string, string>): this {
    for (const [value, text] of Object.entries(options)) make(this.select, "option", { text, value });
    return this;
  }
  setValue(value: string): this {
    this.select.value = value;
    return this;
  }
  onChange(act: (value: string) => void): this {
    this.select.addEventListener("change", () => act(this.select.value));
    return this;
  }
}

class Button {
  constructor(private readonly button: HTMLElement) {}
  setButtonText(text: string): this {
    this.button.textContent = text;
    return this;
  }
  setCta(): this {
    this.button.classList.add("mod-cta");
    return this;
  }
  onClick(act: () => void): this {
    this.button.addEventListener("click", act);
    return this;
  }
}

export class Setting {
  settingEl: HTMLElement;
  nameEl: HTMLElement;
  descEl: HTMLElement;
  controlEl: HTMLElement;
  constructor(parent: HTMLElement) {
    this.settingEl = make(parent, "div", "setting-item");
    const info = make(this.settingEl, "div", "setting-item-info");
    this.nameEl = make(info, "div", "setting-item-name");
    this.descEl = make(info, "div", "setting-item-description");
    this.controlEl = make(this.settingEl, "div", "setting-item-control");
  }
  setName(name: string): this {
    this.nameEl.textContent = name;
    return this;
  }
  setDesc(text: string): this {
    this.descEl.textContent = text;
    return this;
  }
  setHeading(): this {
    this.settingEl.classList.add("setting-item-heading");
    return this;
  }
  setDisabled(isDisabled: boolean): this {
    for (const one of this.controlEl.querySelectorAll("input, select, button")) one.toggleAttribute("disabled", isDisabled);
    return this;
  }
  addToggle(act: (toggle: Toggle) => void): this {
    act(new Toggle(make(this.controlEl, "input", { type: "checkbox", attr: { "aria-label": this.nameEl.textContent ?? "" } }) as HTMLInputElement));
    return this;
  }
  addText(act: (text: Text) => void): this {
    act(new Text(make(this.controlEl, "input", { type: "text" }) as HTMLInputElement));
    return this;
  }
  addDropdown(act: (choice: Choice) => void): this {
    act(new Choice(make(this.controlEl, "select", { attr: { "aria-label": this.nameEl.textContent ?? "" } }) as HTMLSelectElement));
    return this;
  }
  addButton(act: (button: Button) => void): this {
    act(new Button(make(this.controlEl, "button")));
    return this;
  }
}

export class PluginSettingTab {
  containerEl = make(null, "div", "vertical-tab-content");
  constructor(public app: unknown, public plugin: unknown) {}
  display(): void {}
}
