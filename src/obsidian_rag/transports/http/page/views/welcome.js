// The first run: choose a vault, watch it being indexed, continue to the search.

import { call, get, isAborted, post } from '../api.js';
import { count, failed, h, icon, replace } from '../dom.js';
import * as events from '../events.js';

const PHASES = /** @type {Record<string, string>} */ ({
  scanning: 'Scanning the vault',
  parsing: 'Reading notes',
  embedding: 'Making vectors',
  storing: 'Storing passages',
  optimising: 'Tidying up',
  relating: 'Comparing notes',
});

/** @type {import('../router.js').View} */
export const view = {
  title: 'Welcome',
  async render(main, context) {
    document.body.dataset.state = 'welcome';
    const place = h('div', { class: 'welcome' });
    replace(main, place);
    if (context.start.vaults.length) return watch(place, context.signal);
    await choose(place, context.signal);
  },
};

/** @param {HTMLElement} place @param {AbortSignal} signal */
async function choose(place, signal) {
  let offered = [];
  try {
    offered = (await get('welcome', {}, { signal })).data.vaults;
  } catch (error) {
    if (!isAborted(error)) replace(place, failed(error, () => choose(place, signal)));
    return;
  }
  const problem = h('div', { role: 'alert' });
  const field = h('input', { type: 'text', name: 'path', placeholder: '/home/you/Notes', 'aria-label': 'Folder of your vault', spellcheck: 'false', autocomplete: 'off' });
  /** @param {string} path @param {boolean} [isSure] */
  const take = async (path, isSure = false) => {
    replace(problem);
    try {
      await post('welcome', { path, replace: isSure });
      await watch(place, signal);
    } catch (error) {
      const refused = /** @type {any} */ (error);
      const mayReplace = refused.code === 'INVALID_ARGUMENT' && /another vault/.test(refused.message);
      replace(problem, failed(refused), mayReplace && h('button', { type: 'button', class: 'danger', onclick: () => take(path, true) }, 'Replace that index'));
    }
  };
  replace(place,
    h('h1', {}, 'Which notes do you want to search?'),
    h('p', {}, 'Choose the folder of your Obsidian vault. It is only read; the index is stored elsewhere on this machine.'),
    offered.length > 0 && h('ul', { class: 'plain offers' }, offered.map((/** @type {any} */ one) => h('li', {}, h('button', { type: 'button', class: 'offer', onclick: () => take(one.path) }, icon('vaults'), h('span', {}, h('strong', {}, one.name), h('span', { class: 'muted small' }, one.path)))))),
    h('form', { class: 'row', onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); take(field.value); } }, field, h('button', { type: 'submit', class: offered.length ? '' : 'primary' }, 'Use this folder')),
    offered.length > 0 ? h('p', { class: 'muted small' }, 'The vaults above are from Obsidian\'s list.') : null,
    problem);
  /** @type {HTMLElement} */ (place.querySelector('.offer') ?? field).focus();
}

/** Show the first index run until search is useful. @param {HTMLElement} place @param {AbortSignal} signal */
async function watch(place, signal) {
  const words = h('span', {}, 'Starting …');
  const figures = h('span', { class: 'muted' });
  const bar = h('i', { style: { width: '0%' } });
  const done = h('a', { class: 'button primary', href: '/search', hidden: true }, 'Search your notes');
  const leave = () => location.assign('/search');
  replace(place,
    h('h1', {}, 'Your notes are being read'),
    h('p', {}, 'A few thousand notes take about a minute. You can search as soon as the first are in.'),
    h('div', { class: 'progress', role: 'progressbar', 'aria-label': 'Indexing', 'aria-valuemin': '0', 'aria-valuemax': '100' }, words, figures, h('div', { class: 'bar' }, bar)),
    h('div', { class: 'row' }, done));
  await ready(signal);
  if (signal.aborted) return;
  let most = 0;
  const stops = [
    events.listen('progress', (data) => {
      const found = data.progress ?? data;
      const share = found.total ? found.current / found.total : 0;
      const order = Object.keys(PHASES).indexOf(found.phase);
      most = Math.max(most, (Math.max(0, order) + share) / Object.keys(PHASES).length);
      bar.style.width = `${Math.round(100 * most)}%`;
      words.textContent = PHASES[found.phase] ?? 'Working';
      figures.textContent = found.total ? `${count(found.current)} of ${count(found.total)}` : '';
      if (order >= 3) done.hidden = false;
    }),
    events.listen('job', (data) => data.finished_at && leave()),
  ];
  signal.addEventListener('abort', () => stops.forEach((stop) => stop()));
  events.start();
  while (!signal.aborted) {
    try {
      // The daemon indexes first; if nothing runs, it finished before this page listened.
      if (!(await call('status', {}, { signal })).data.active_job) return leave();
    } catch (error) {
      if (isAborted(error)) return;
    }
    await new Promise((next) => setTimeout(next, 1000));
  }
}

/** Wait until the daemon has started. @param {AbortSignal} signal */
async function ready(signal) {
  while (!signal.aborted) {
    try {
      if ((await get('start', {}, { signal })).data.vaults.length) return;
    } catch (error) {
      if (isAborted(error)) return;
    }
    await new Promise((next) => setTimeout(next, 300));
  }
}
