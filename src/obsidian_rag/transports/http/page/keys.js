// Keys that work everywhere, and the list of all keys. Views add theirs with `onKey`.

import { dialog, h } from './dom.js';
import { go } from './router.js';
import { toggleScreen } from './screen.js';

/** @type {[string, string][]} */
const HELP = [
  ['/', 'Search'],
  ['↑ ↓', 'Choose a hit'],
  ['Enter', 'Open it here'],
  ['Space', 'Show more'],
  ['o', 'Open in Obsidian'],
  ['c', 'Copy its link'],
  ['r', 'Show related notes'],
  ['Esc', 'Go back'],
  ['g then s m h v', 'Search, map, health, vaults'],
  ['.', 'Hide or show private passages'],
  ['?', 'Show these keys'],
];
const PLACES = /** @type {Record<string, string>} */ ({ s: '/search', m: '/map', h: '/health', v: '/vaults' });
let isGoing = false;

/** Whether an element is a text field. @param {EventTarget | null} target */
export function isTyping(target) {
  return target instanceof HTMLElement && (target.matches('input:not([type=checkbox]), textarea, select') || target.isContentEditable);
}

/**
 * Handle keys while a view is shown; `act` returns true if it handled the key.
 * @param {AbortSignal} signal @param {(event: KeyboardEvent) => boolean | void} act
 */
export function onKey(signal, act) {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector('dialog[open]')) return;
    if (act(event)) event.preventDefault();
  }, { signal });
}

export function useKeys() {
  document.getElementById('keys')?.addEventListener('click', showKeys);
  onKey(new AbortController().signal, (event) => {
    if (isTyping(event.target)) return false;
    if (isGoing && PLACES[event.key]) {
      go(PLACES[event.key]);
      isGoing = false;
      return true;
    }
    isGoing = event.key === 'g';
    if (event.key === '?') return showKeys(), true;
    if (event.key === '.') return toggleScreen(), true;
    if (event.key !== '/') return false;
    const field = /** @type {HTMLInputElement | null} */ (document.querySelector('input[type=search]'));
    if (field) field.select();
    else go('/search');
    return true;
  });
}

function showKeys() {
  const rows = HELP.flatMap(([keys, words]) => [
    h('dt', {}, keys.split(' ').map((key) => (key === 'then' ? ' then ' : h('kbd', {}, key)))),
    h('dd', {}, words),
  ]);
  const box = dialog('Keys', [h('dl', { class: 'keys' }, rows), h('div', { class: 'row end' }, h('button', { type: 'button', onclick: () => box.close() }, 'Close'))]);
}
