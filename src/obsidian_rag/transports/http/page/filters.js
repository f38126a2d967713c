// The panel that adds filters, with suggestions from the index.

import { get, isAborted } from './api.js';
import { h, icon, replace } from './dom.js';

let number = 0;

/** @param {any[]} vaults @param {(name: string, value: string) => void} add */
export function filterPanel(vaults, add) {
  const id = `filters-${++number}`;
  const panel = h('div', { id, popover: 'auto', class: 'filter-panel', 'aria-label': 'Filters' });
  const done = (/** @type {string} */ name, /** @type {string} */ value) => {
    panel.hidePopover();
    add(name, value);
  };
  if (vaults.length > 1) panel.append(vaultChoice(vaults, done));
  panel.append(
    suggested('Folder', 'folder', 'folder', 'Journal', done),
    suggested('Tag', 'tag', 'tag', 'people', done),
    suggested('Property', 'property', 'prop', 'rating>=4', done),
    day('From', 'from', done),
    day('To', 'to', done),
  );
  const button = h('button', { type: 'button', class: 'chip', popovertarget: id }, icon('filter'), 'Filter');
  panel.addEventListener('toggle', () => {
    if (!panel.matches(':popover-open')) return;
    const place = button.getBoundingClientRect();
    panel.style.left = `${Math.max(8, Math.min(place.left, innerWidth - panel.offsetWidth - 8))}px`;
    panel.style.top = `${place.bottom + 6}px`;
    /** @type {HTMLElement | null} */ (panel.querySelector('input, select'))?.focus();
  });
  return h('span', {}, button, panel);
}

/**
 * @param {string} label @param {string} kind @param {string} name @param {string} example
 * @param {(name: string, value: string) => void} done
 */
function suggested(label, kind, name, example, done) {
  const list = h('datalist', { id: `choices-${kind}-${number}` });
  /** @type {Set<string>} */
  let known = new Set();
  const field = h('input', { type: 'text', list: list.id, placeholder: example, autocomplete: 'off', oninput: (/** @type {InputEvent} */ event) => {
    if (known.has(field.value) && event.inputType !== 'insertText' && kind !== 'property') done(name, field.value);
    else load();
  }, onfocus: () => load(), onkeydown: (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== 'Enter' || !field.value.trim()) return;
    event.preventDefault();
    done(name, field.value.trim().replace(/^#/, ''));
  } });
  /** @type {AbortController | null} */
  let asking = null;
  async function load() {
    asking?.abort();
    asking = new AbortController();
    try {
      const { choices } = (await get('filters', { kind, typed: field.value }, { signal: asking.signal })).data;
      known = new Set(choices.map((/** @type {any} */ one) => one.value));
      replace(list, choices.map((/** @type {any} */ one) => h('option', { value: one.value }, `${one.count} notes`)));
    } catch (error) {
      if (!isAborted(error)) replace(list);
    }
  }
  return h('label', {}, h('span', {}, label), field, list);
}

/** @param {any[]} vaults @param {(name: string, value: string) => void} done */
function vaultChoice(vaults, done) {
  const options = ['', ...vaults.map((vault) => vault.name)].map((name) => h('option', { value: name }, name || 'All vaults'));
  return h('label', {}, h('span', {}, 'Vault'), h('select', { onchange: (/** @type {any} */ event) => event.target.value && done('vault', event.target.value) }, options));
}

/** @param {string} label @param {string} name @param {(name: string, value: string) => void} done */
function day(label, name, done) {
  return h('label', {}, h('span', {}, label), h('input', { type: 'date', onchange: (/** @type {any} */ event) => event.target.value && done(name, event.target.value) }));
}
