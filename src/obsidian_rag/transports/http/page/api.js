// Asks the daemon. Every answer is an envelope; one without data is thrown as a Problem.

/** @typedef {{code: string, message: string, recoverable: boolean, suggestion: string}} ErrorBody */
/** @typedef {{signal?: AbortSignal, isRevealing?: boolean}} Options `isRevealing`: in spite of the privacy screen */
/** @typedef {{status: string, data: any, error: ErrorBody | null, meta: any}} Envelope */

export class Problem extends Error {
  /** @param {ErrorBody} body @param {number} status */
  constructor(body, status) {
    super(body.message);
    this.code = body.code;
    this.suggestion = body.suggestion;
    this.status = status;
  }
}

const GONE = { code: '', message: 'obsidian-rag does not answer.', recoverable: true, suggestion: 'Start it with `obsidian-rag serve --detach`; this page reconnects on its own.' };

/** @type {() => void} */
let onVisitor = () => {};

/** Set what to do when there is no session, or no longer one. @param {() => void} act */
export function whenVisitor(act) {
  onVisitor = act;
}

/** @param {string} path @param {RequestInit} init @returns {Promise<Envelope>} */
async function ask(path, init) {
  /** @type {Response} */
  let response;
  /** @type {Envelope} */
  let envelope;
  try {
    response = await fetch(path, { credentials: 'same-origin', ...init });
    envelope = await response.json();
  } catch (error) {
    if (/** @type {Error} */ (error).name === 'AbortError') throw error;
    throw new Problem(GONE, 0);
  }
  if (response.status === 401) onVisitor();
  if (envelope.data === null || envelope.data === undefined) {
    throw new Problem(envelope.error ?? GONE, response.status);
  }
  return envelope;
}

/**
 * Read from the page's own routes: `get('note', {path})` requests `/page/note?path=…`.
 * @param {string} name @param {Record<string, string>} [query] @param {Options} [options]
 */
export function get(name, query = {}, options = {}) {
  const asked = new URLSearchParams(query).toString();
  const { isRevealing, ...rest } = options;
  return ask(`/page/${name}${asked ? `?${asked}` : ''}`, { headers: headers(isRevealing), ...rest });
}

/**
 * Change something through the page's own routes.
 * @param {string} name @param {object} [body] @param {Options} [options]
 */
export function post(name, body = {}, options = {}) {
  return ask(`/page/${name}`, written(body, options));
}

/**
 * Call a tool as the owner of the notes: `call('search', {query})` calls `obsidian_rag_search`.
 * @param {string} tool @param {object} [args] @param {Options} [options]
 */
export function call(tool, args = {}, options = {}) {
  return ask(`/tools/${tool.startsWith('obsidian_') ? tool : `obsidian_rag_${tool}`}`, written(args, options));
}

/** @param {object} body @param {Options} options @returns {RequestInit} */
function written(body, options) {
  const { isRevealing, ...rest } = options;
  return { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers(isRevealing) }, body: JSON.stringify(body), ...rest };
}

/** The half of the session that other servers never get: storage belongs to one origin, port included. */
export function proof() {
  return localStorage.getItem('proof') ?? '';
}

/** @param {boolean} [isRevealing] @returns {Record<string, string>} */
export function headers(isRevealing) {
  const screen = localStorage.getItem('privacy-screen') === 'on' && !isRevealing;
  return { 'X-Obsidian-Rag-Page': proof() || '1', ...(screen ? { 'X-Obsidian-Rag-Screen': '1' } : {}) };
}

/**
 * For a view with several requests under way: `const isNews = order()` with a request, and `isNews()`
 * with its answer, which is false if a later request was answered first.
 */
export function newOrder() {
  let asked = 0;
  let shown = 0;
  return () => {
    const mine = ++asked;
    return () => mine > shown && Boolean((shown = mine));
  };
}

/** Whether an error only means that the request was aborted. @param {any} error */
export function isAborted(error) {
  return error?.name === 'AbortError';
}
