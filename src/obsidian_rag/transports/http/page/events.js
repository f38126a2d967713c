// Events of the daemon, in one stream for all views. It is closed while the tab is hidden: a browser
// has six connections to a server, for all tabs together.

import { proof } from './api.js';

/** @typedef {(data: any) => void} Listener */
/** @type {Map<string, Set<Listener>>} */
const listeners = new Map();
/** @type {EventSource | null} */
let source = null;
/** @type {Set<string>} */
const followed = new Set();
let wasOpen = false;

/**
 * Call `listener` with the data of every event of a kind, until the returned function is called.
 * Besides the daemon's kinds: `ready` when the stream opens (again), so that a view can catch up, and
 * `away` when the daemon does not answer.
 * @param {string} kind @param {Listener} listener @returns {() => void}
 */
export function listen(kind, listener) {
  let group = listeners.get(kind);
  if (!group) listeners.set(kind, (group = new Set()));
  group.add(listener);
  followKind(kind);
  return () => group.delete(listener);
}

/** Open the stream, and follow the tab's visibility. */
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
  followed.clear();
  for (const kind of listeners.keys()) followKind(kind);
  source.addEventListener('ready', () => {
    wasOpen = true;
    publish('ready', {});
  });
  source.onerror = () => {
    if (wasOpen) publish('away', {});
    wasOpen = false;
    if (source?.readyState === EventSource.CLOSED) setTimeout(follow, 3000);
  };
}

/** @param {string} kind */
function followKind(kind) {
  if (!source || followed.has(kind) || kind === 'ready' || kind === 'away') return;
  followed.add(kind);
  source.addEventListener(kind, (event) => publish(kind, JSON.parse(/** @type {MessageEvent} */ (event).data)));
}

/** @param {string} kind @param {any} data */
function publish(kind, data) {
  for (const listener of listeners.get(kind) ?? []) listener(data);
}
