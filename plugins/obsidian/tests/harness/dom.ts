/** What Obsidian adds to the elements of its pages, as far as the plugin uses it. */

type Options = { cls?: string; text?: string; attr?: Record<string, string | null>; href?: string; type?: string; placeholder?: string; value?: string };

function fill(element: HTMLElement, options: Options | string = {}): void {
  const given = typeof options === "string" ? { cls: options } : options;
  if (given.cls) element.className = given.cls;
  if (given.text !== undefined) element.textContent = given.text;
  for (const [name, value] of Object.entries(given.attr ?? {})) if (value !== null) element.setAttribute(name, value);
  for (const name of ["href", "type", "placeholder", "value"] as const) {
    const value = given[name];
    if (value !== undefined) element.setAttribute(name, value);
  }
}

export function make(parent: Node | null, tag: string, options?: Options | string): HTMLElement {
  const element = document.createElement(tag);
  fill(element, options);
  parent?.appendChild(element);
  return element;
}

const added = {
  createEl(this: Node, tag: string, options?: Options) {
    return make(this, tag, options);
  },
  createDiv(this: Node, options?: Options | string) {
    return make(this, "div", options);
  },
  createSpan(this: Node, options?: Options | string) {
    return make(this, "span", options);
  },
  empty(this: Node) {
    while (this.firstChild) this.firstChild.remove();
  },
  appendText(this: Node, text: string) {
    this.appendChild(document.createTextNode(text));
  },
  setText(this: Node, text: string) {
    this.textContent = text;
  },
  getText(this: Node) {
    return this.textContent ?? "";
  },
  addClass(this: HTMLElement, ...names: string[]) {
    this.classList.add(...names);
  },
  removeClass(this: HTMLElement, ...names: string[]) {
    this.classList.remove(...names);
  },
  toggleClass(this: HTMLElement, name: string, isOn: boolean) {
    this.classList.toggle(name, isOn);
  },
  hasClass(this: HTMLElement, name: string) {
    return this.classList.contains(name);
  },
  setAttr(this: HTMLElement, name: string, value: string) {
    this.setAttribute(name, value);
  },
  toggle(this: HTMLElement, isShown: boolean) {
    this.style.display = isShown ? "" : "none";
  },
  setCssProps(this: HTMLElement, properties: Record<string, string>) {
    for (const [name, value] of Object.entries(properties)) this.style.setProperty(name, value);
  },
};

for (const [name, value] of Object.entries(added)) {
  Object.defineProperty(HTMLElement.prototype, name, { value, writable: true, configurable: true });
}
Object.defineProperty(HTMLElement.prototype, "doc", { get: () => document });
Object.defineProperty(HTMLElement.prototype, "win", { get: () => window });
Object.assign(globalThis, { createDiv: (options?: Options) => make(null, "div", options) });
