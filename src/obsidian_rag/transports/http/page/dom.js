// Builds elements. Only here is text parsed as HTML, and only what the server has sanitised.

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, any>} Props */

const base = new URL('.', import.meta.url).pathname;
/** @type {{createHTML: (text: string) => any} | undefined} */
const policy = /** @type {any} */ (window).trustedTypes?.createPolicy('app', {
  createHTML: (/** @type {string} */ text) => text,
});

/**
 * An element. Props that begin with `on` add listeners; `class`, `data-…`, `aria-…` and others set
 * attributes; `style` is an object of properties; `true` sets an empty attribute.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props} [props]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) setProp(element, name, value);
  element.append(...nodes(children));
  return element;
}

/** @param {HTMLElement} element @param {string} name @param {any} value */
function setProp(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
  else if (name === 'style') Object.assign(element.style, value);
  else if (name === 'value' || name === 'checked') /** @type {any} */ (element)[name] = value;
  else element.setAttribute(name, value === true ? '' : String(value));
}

/** @param {(Child | Child[])[]} children @returns {(Node | string)[]} */
function nodes(children) {
  return children
    .flat()
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}

/** Replace the children of an element. @param {Element} element @param {...(Child | Child[])} children */
export function replace(element, ...children) {
  element.replaceChildren(...nodes(children));
}

/** An icon of icons.svg. @param {string} name */
export function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const use = document.createElementNS('http://www.w3.org/2000/svg', 'use');
  svg.setAttribute('aria-hidden', 'true');
  use.setAttribute('href', `${base}icons.svg#${name}`);
  svg.append(use);
  return svg;
}

/** A button with an icon and a label for screen readers. @param {string} name @param {string} label @param {(event: Event) => void} onclick @param {Props} [props] */
export function iconButton(name, label, onclick, props = {}) {
  return h('button', { type: 'button', class: 'icon bare', title: label, 'aria-label': label, onclick, ...props }, icon(name));
}

/** Set an element's content to HTML that the server has sanitised. @param {Element} element @param {string} html */
export function setSanitised(element, html) {
  element.innerHTML = policy ? policy.createHTML(html) : html;
}

/** Announce something to screen readers. @param {string} words */
export function say(words) {
  const place = document.getElementById('said');
  if (place) place.textContent = words;
}

/** Show and announce something for a moment. @param {string} words */
export function toast(words) {
  document.querySelector('.toast')?.remove();
  const shown = h('div', { class: 'toast' }, words);
  document.body.append(shown);
  say(words);
  setTimeout(() => shown.remove(), 4000);
}

/** @type {Map<string, Promise<void>>} */
const styles = new Map();

/** Load a stylesheet of css/ once. @param {string} name @returns {Promise<void>} */
export function useStyle(name) {
  const known = styles.get(name);
  if (known) return known;
  const loading = new Promise((/** @type {(value?: any) => void} */ done) => {
    const link = h('link', { rel: 'stylesheet', href: `${base}css/${name}.css`, onload: done, onerror: done });
    document.head.append(link);
  });
  styles.set(name, loading);
  return loading;
}

/**
 * Shown in place of a list that is empty, loading or failed: a sentence, the cause, and what to do.
 * @param {string} title @param {string} [cause] @param {Child[]} [actions] @param {string} [kind]
 */
export function state(title, cause = '', actions = [], kind = '') {
  return h('div', { class: `state ${kind}` }, h('strong', {}, title), cause && h('p', {}, cause), actions.length > 0 && h('div', { class: 'row' }, actions));
}

/** Shows an error of `api`. @param {any} error @param {() => void} [again] */
export function failed(error, again) {
  const actions = again ? [h('button', { type: 'button', onclick: again }, 'Try again')] : [];
  const code = error.code ? ` (${error.code})` : '';
  return state(`${error.message || 'Something went wrong.'}${code}`, error.suggestion || '', actions, 'bad');
}

/** Show what is loading after 400 ms, unless something else is shown there by then. @param {Element} place @param {string} words @param {AbortSignal} [signal] */
export function waiting(place, words, signal) {
  const before = place.firstChild;
  const timer = setTimeout(() => place.firstChild === before && replace(place, h('p', { class: 'state' }, words)), 400);
  signal?.addEventListener('abort', () => clearTimeout(timer));
  return () => clearTimeout(timer);
}

/** Show a modal dialog until it is closed. @param {string} title @param {(Child | Child[])[]} content @param {Props} [props] */
export function dialog(title, content, props = {}) {
  const heading = h('h2', { id: 'dialog-title' }, title);
  const box = h('dialog', { 'aria-labelledby': 'dialog-title', closedby: 'any', onclose: () => box.remove(), ...props }, heading, ...content);
  document.body.append(box);
  box.showModal();
  return box;
}

const ago = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const units = [['year', 31557600], ['month', 2629800], ['week', 604800], ['day', 86400], ['hour', 3600], ['minute', 60]];

/** A relative time, with the exact one on hover. @param {string | number | Date} when */
export function time(when) {
  const date = new Date(when);
  const seconds = (date.getTime() - Date.now()) / 1000;
  const [unit, size] = units.find(([, least]) => Math.abs(seconds) >= least) ?? ['second', 1];
  const words = Math.abs(seconds) < 5 ? 'just now' : ago.format(Math.round(seconds / size), unit);
  return h('time', { datetime: date.toISOString(), title: date.toLocaleString() }, words);
}

/** A count with thousands separators. @param {number} value */
export function count(value) {
  return Number(value).toLocaleString('en');
}

/** "1 note", "3 notes". @param {number} value @param {string} one @param {string} [many] */
export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** A sentence of the daemon, with commands in backticks as code. @param {string} words @returns {Child[]} */
export function coded(words) {
  return words.split('`').map((part, at) => (at % 2 ? h('code', {}, part) : part));
}
