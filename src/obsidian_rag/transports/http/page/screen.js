// The privacy screen, for when other people see this page: while it is on, the daemon leaves private
// text out of its answers, so that it is nowhere in the document. Remembered by this browser.

import { h, icon, replace, say } from './dom.js';
import { refresh } from './router.js';
import { forget } from './search_state.js';

const KEY = 'privacy-screen';

/** Whether the privacy screen is on. */
export function isScreened() {
  return localStorage.getItem(KEY) === 'on';
}

/** Set up the button in the rail, and follow other windows of this browser. */
export function useScreen() {
  mark();
  document.getElementById('screen')?.addEventListener('click', toggleScreen);
  addEventListener('storage', (event) => event.key === KEY && showAnew());
}

/** Turn the privacy screen on or off. */
export function toggleScreen() {
  localStorage.setItem(KEY, isScreened() ? 'off' : 'on');
  say(isScreened() ? 'Private passages are hidden.' : 'Private passages are shown.');
  return showAnew();
}

function showAnew() {
  mark();
  forget();
  // Clear the screen at once, before anything is requested.
  for (const box of document.querySelectorAll('dialog')) box.remove();
  replace(/** @type {HTMLElement} */ (document.getElementById('main')));
  return refresh();
}

function mark() {
  const button = document.getElementById('screen');
  button?.setAttribute('aria-pressed', String(isScreened()));
  button?.setAttribute('title', isScreened() ? 'Private passages are hidden; show them (.)' : 'Hide private passages from people who see this screen (.)');
}

/** The categories of a private passage. @param {string[]} categories */
export function privateLabel(categories) {
  return categories.length > 0 && h('span', { class: 'private-label' }, categories.join(', '));
}

/**
 * Replaces a private passage: its categories, and buttons to show it.
 * @param {string} categories @param {[string, () => void][]} reveals label and action of each button
 */
export function screenedBar(categories, reveals) {
  return h('div', { class: 'screened' }, icon('lock'), h('span', { class: 'muted' }, categories), reveals.map(([words, onclick]) => h('button', { type: 'button', class: 'small', onclick }, words)));
}
