// The dot beside Health in the rail: filled, half or hollow, and a word.

import { get } from './api.js';
import { listen } from './events.js';

const WORDS = /** @type {Record<string, string>} */ ({
  healthy: 'healthy',
  degraded: 'degraded',
  unavailable: 'not available',
  starting: 'starting',
  away: 'the daemon does not answer',
});

/** Show the current health, and follow it. @param {{state: string, error: any}} health */
export function watchHealth(health) {
  let news = 0;
  show(health.state, health.error?.message);
  listen('health', (data) => {
    news += 1;
    show(data.state, data.message);
  });
  listen('away', () => show('away'));
  // Catch up; an event that arrives meanwhile is newer than the answer.
  listen('ready', async () => {
    const before = news;
    const now = await get('start').then(({ data }) => data.health, () => null);
    if (now && news === before) show(now.state, now.error?.message);
  });
}

/** @param {string} state @param {string} [reason] */
function show(state, reason) {
  const dot = document.getElementById('health-dot');
  const link = dot?.closest('a');
  if (!dot || !link) return;
  dot.dataset.health = state;
  const words = `Health: ${WORDS[state] ?? state}`;
  link.setAttribute('aria-label', words);
  link.title = reason ? `${words}. ${reason}` : words;
}
