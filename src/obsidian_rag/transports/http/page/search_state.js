// The search that the address names, and the last answer.

import { call } from './api.js';

const LISTS = ['tag', 'folder', 'prop'];

/** Only the parameters of a search. @param {URLSearchParams} query */
export function searchOf(query) {
  const kept = new URLSearchParams();
  for (const name of ['q', 'from', 'to', 'dates', 'vault', ...LISTS]) {
    for (const value of query.getAll(name)) if (value) kept.append(name, value);
  }
  return kept;
}

/** Whether there is anything to search for. @param {URLSearchParams} search */
export function isEmpty(search) {
  return !search.get('q')?.trim() && !LISTS.some((name) => search.has(name));
}

/** The arguments for the tool. @param {URLSearchParams} search @param {number} most */
function asked(search, most) {
  const question = search.get('q')?.trim() || search.getAll('tag').join(' ') || search.getAll('folder').join(' ') || search.getAll('prop').join(' ');
  /** @type {Record<string, any>} */
  const args = { query: question.slice(0, 2000), max_results: most, suggest_dates: search.get('dates') !== 'off' };
  if (search.has('vault')) args.vaults = search.getAll('vault');
  if (search.has('tag')) args.tags = search.getAll('tag');
  if (search.has('folder')) args.directory_filter = search.getAll('folder');
  if (search.has('prop')) args.properties = search.getAll('prop');
  if (search.get('from') || search.get('to')) args.date_range = { from: search.get('from') || null, to: search.get('to') || null };
  return args;
}

/** @type {{key: string, envelope: import('./api.js').Envelope} | null} */
let last = null;

/** The answer to a search; the last one is remembered. @param {URLSearchParams} search @param {AbortSignal} signal */
export async function answerTo(search, signal) {
  const key = search.toString();
  if (last?.key !== key) last = { key, envelope: await call('search', asked(search, 20), { signal }) };
  return last.envelope;
}

/** Forget the last answer, because notes have changed. */
export function forget() {
  last = null;
}
