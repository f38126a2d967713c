// The page without a session: signs in with the code of a one-time link, or shows how to get one.

import { post } from './api.js';
import { h, icon, replace } from './dom.js';

/** Sign in with the code after `#`, after removing it from the address bar. */
export async function signIn() {
  const code = location.hash.slice(1);
  history.replaceState(null, '', '/signin');
  if (!code) return welcome('');
  try {
    const { data } = await post('signin', { code });
    localStorage.setItem('proof', data.proof);
    location.replace('/');
  } catch (error) {
    welcome(`${/** @type {Error} */ (error).message}`);
  }
}

/** Show how to sign in. @param {string} problem */
export function welcome(problem) {
  document.body.dataset.state = 'visitor';
  document.title = 'Sign in – obsidian-rag';
  const main = /** @type {HTMLElement} */ (document.getElementById('main'));
  const command = 'obsidian-rag open';
  replace(
    main,
    h('div', { class: 'visitor' },
      h('h1', {}, problem ? 'That link no longer works' : 'Your notes are one step away'),
      problem ? h('p', {}, problem) : h('p', {}, 'Only you may read your notes here, so this page asks for a sign-in link from your own machine.'),
      h('p', {}, 'Type this in a terminal:'),
      h('div', { class: 'command' }, h('code', {}, command), h('button', { type: 'button', class: 'bare', onclick: () => navigator.clipboard.writeText(command) }, icon('copy'), 'Copy')),
      h('p', { class: 'muted small' }, 'It opens the browser signed in. Each link works once, within two minutes; afterwards this browser stays signed in.')),
  );
}
