// What happens in the daemon, heard once for all views. Closed while nobody looks: a browser has
// six connections to a server, for all tabs together.

import { proof } from './api.js';

/** @typedef {(data: any) => void} Listener */
/** @type {Map<string, Set<Listener>>} */
const listeners = new Map();
/** @type {EventSource | null} */
let source = null;
/** @type {Set<string>} */
const heard = new Set();
let wasOpen = false;

/**
 * Call `listener` with the data of every event of a kind, until the returned function is called.
 * Besides the daemon's kinds: `ready` when listening begins (again), so that a view can look at
 * what it missed, and `away` when the daemon does not answer.
 * @param {string} kind @param {Listener} listener @returns {() => void}
 */
export function listen(kind, listener) {
  let group = listeners.get(kind);
  if (!group) listeners.set(kind, (group = new Set()));
  group.add(listener);
  hear(kind);
  return () => group.delete(listener);
}

/** Begin; later only the tab's visibility decides. */
export function start() {
  document.addEventListener('visibilitychange', follow);
  follow();
}

function follow() {
  if (document.hidden) {
    source?.close();
    source = null;
  } else if (!source || source.readyState === EventSource.CLOSED) {
    open();
  }
}

function open() {
  source = new EventSource(`/events?proof=${encodeURIComponent(proof())}`);
  heard.clear();
  for (const kind of listeners.keys()) hear(kind);
  source.addEventListener('ready', () => {
    wasOpen = true;
    tell('ready', {});
  });
  source.onerror = () => {
    if (wasOpen) tell('away', {});
    wasOpen = false;
    if (source?.readyState === EventSource.CLOSED) setTimeout(follow, 3000);
  };
}

/** @param {string} kind */
function hear(kind) {
  if (!source || heard.has(kind) || kind === 'ready' || kind === 'away') return;
  heard.add(kind);
  source.addEventListener(kind, (event) => tell(kind, JSON.parse(/** @type {MessageEvent} */ (event).data)));
}

/** @param {string} kind @param {any} data */
function tell(kind, data) {
  for (const listener of listeners.get(kind) ?? []) listener(data);
}
