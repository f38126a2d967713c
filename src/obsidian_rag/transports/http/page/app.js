// Starts the page: session, frame, views.

import { get, whenVisitor } from './api.js';
import { failed, replace } from './dom.js';
import { catchEarly, typedEarly } from './early_keys.js';
import * as events from './events.js';
import { watchHealth } from './health_dot.js';
import { useKeys } from './keys.js';
import { begin } from './router.js';
import { useScreen } from './screen.js';
import { signIn, welcome } from './visitor.js';

const main = /** @type {HTMLElement} */ (document.getElementById('main'));

async function start() {
  whenVisitor(() => welcome(''));
  let found;
  try {
    found = (await get('start')).data;
  } catch (error) {
    if (/** @type {any} */ (error).status !== 401) {
      replace(main, failed(error, start));
      setTimeout(() => main.querySelector('.state.bad') && start(), 3000);
    }
    return;
  }
  document.documentElement.dataset.noteFont = localStorage.getItem('note-font') ?? 'ui';
  if (!found.vaults.length) history.replaceState(null, '', '/welcome');
  document.body.dataset.state = found.vaults.length ? 'ready' : 'welcome';
  if (found.vaults.length) {
    events.start();
    watchHealth(found.health);
  }
  useKeys();
  useScreen();
  await begin(found);
}

if (location.pathname === '/signin') signIn();
else {
  if (['/', '/search'].includes(location.pathname)) catchEarly();
  start().finally(typedEarly);
}
