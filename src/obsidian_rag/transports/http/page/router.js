// Shows what the address bar names: `/VIEW/rest?query#hash`. Back, forward and reload work.

import { failed, replace, useStyle } from './dom.js';
import { NOT_FOUND, VIEWS } from './views.js';

/**
 * The arguments of a view. `signal` is aborted when the user leaves the view.
 * @typedef {object} Context
 * @property {string[]} path the parts of the address after the view, decoded
 * @property {URLSearchParams} query
 * @property {string} hash without `#`
 * @property {AbortSignal} signal
 * @property {any} start the answer of `/page/start`
 */
/** @typedef {(() => void) | void} Cleanup */
/**
 * A view. `update` is called when only the query or hash changes; a view without it is rendered again.
 * @typedef {object} View
 * @property {string} title
 * @property {(main: HTMLElement, context: Context) => Cleanup | Promise<Cleanup>} render
 * @property {(context: Context) => void} [update]
 */

/** @type {{name: string, rest: string, view: View, cleanup: Cleanup, controller: AbortController} | null} */
let current = null;
/** @type {any} */
let started = {};
let turn = 0;

/** Go to an address of the page. @param {string} url @param {{replace?: boolean}} [options] */
export function go(url, options = {}) {
  if (options.replace) history.replaceState(history.state, '', url);
  else {
    remember();
    history.pushState({}, '', url);
  }
  return show();
}

/** The address of a note. @param {string} vault @param {string} path @param {string} [suffix] such as `?q=x#L3` */
export function noteUrl(vault, path, suffix = '') {
  return `/note/${[vault, ...path.split('/')].map(encodeURIComponent).join('/')}${suffix}`;
}

/** Start following the address bar. @param {any} start what `/page/start` answered */
export function begin(start) {
  started = start;
  history.scrollRestoration = 'manual';
  addEventListener('popstate', () => show(true));
  document.addEventListener('click', follow);
  return show();
}

function remember() {
  history.replaceState({ ...history.state, scroll: scrollY }, '');
}

/** @param {MouseEvent} event */
function follow(event) {
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (link.origin !== location.origin || link.target || link.hasAttribute('download')) return;
  const name = link.pathname.split('/')[1];
  if (!(name in VIEWS)) return;
  if (link.pathname === location.pathname && link.search === location.search && link.hash) return;
  event.preventDefault();
  go(link.pathname + link.search + link.hash);
}

/** @param {boolean} [isBack] */
async function show(isBack = false) {
  const mine = ++turn;
  const parts = location.pathname.split('/').slice(1);
  const name = parts[0] || 'search';
  const rest = location.pathname;
  const controller = new AbortController();
  const context = { path: parts.slice(1).map(decodePart), query: new URLSearchParams(location.search), hash: decodePart(location.hash.slice(1)), signal: controller.signal, start: started };
  if (current && current.name === name && current.rest === rest && current.view.update) {
    current.view.update({ ...context, signal: current.controller.signal });
    return;
  }
  const main = /** @type {HTMLElement} */ (document.getElementById('main'));
  try {
    const row = VIEWS[name] ?? NOT_FOUND;
    const [module] = await Promise.all([row.load(), row.style && useStyle(row.style)]);
    if (mine !== turn) return;
    leave();
    const view = /** @type {View} */ (module.view);
    main.className = `view-${name}`;
    replace(main);
    current = { name, rest, view, cleanup: undefined, controller };
    mark(name, view.title);
    const cleanup = await view.render(main, context);
    if (mine === turn) current.cleanup = cleanup;
    else if (cleanup) cleanup();
  } catch (error) {
    if (mine === turn) {
      // The next address of the same view has nothing to update.
      leave();
      replace(main, failed(error, () => show()));
    }
  }
  if (mine === turn) scrollTo(0, isBack ? (history.state?.scroll ?? 0) : 0);
}

function leave() {
  current?.controller.abort();
  if (current?.cleanup) current.cleanup();
  current = null;
}

/** Show the current address again, for example after settings have changed. @param {any} [start] */
export function refresh(start) {
  if (start) started = start;
  if (current) current.rest = '';
  return show(true);
}

/** Set the title of the window. @param {string} title */
export function setTitle(title) {
  document.title = title ? `${title} – obsidian-rag` : 'obsidian-rag';
}

/** @param {string} name @param {string} title */
function mark(name, title) {
  setTitle(title);
  for (const link of document.querySelectorAll('#rail a')) {
    const isHere = link.getAttribute('data-view') === (name === 'note' ? 'search' : name);
    if (isHere) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
}

/** @param {string} text */
function decodePart(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
