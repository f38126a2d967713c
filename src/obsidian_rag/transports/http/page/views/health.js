// Health: the state of the index and why, the work under way, and the last syncs.

import { call, newOrder, post } from '../api.js';
import { coded, count, dialog, failed, h, plural, replace, time, toast, waiting } from '../dom.js';
import { listen } from '../events.js';

/** @typedef {import('../router.js').Context} Context */

const STATES = /** @type {Record<string, string>} */ ({ healthy: 'Healthy', degraded: 'Degraded', unavailable: 'Not available' });
const PHASES = /** @type {Record<string, string>} */ ({
  scanning: 'Scanning the vault', hashing: 'Comparing files', parsing: 'Reading notes', embedding: 'Making vectors', storing: 'Storing', optimising: 'Tidying up', relating: 'Relating notes', meaning: 'Adding meaning vectors',
});
const MODES = /** @type {Record<string, string>} */ ({ sync: 'Sync', full: 'Full index', reindex: 'Reindex' });
const REFRESH_MS = 400;
const MOST_FILES = 100;

/** A rounded duration. @param {number} seconds */
export function duration(seconds) {
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** One task: its name, a bar that never goes back, the progress, and the time left. */
export class ProgressLine {
  /** @param {string} words */
  constructor(words) {
    this.words = h('span', {}, words);
    this.far = h('span', { class: 'muted' });
    this.bar = h('i');
    this.track = h('div', { class: 'bar', role: 'progressbar', 'aria-label': words, 'aria-valuemin': 0, 'aria-valuemax': 100 }, this.bar);
    this.actions = h('span', { class: 'row' });
    this.element = h('div', { class: 'progress' }, h('span', {}, this.words, ' ', this.far), this.actions, this.track);
    this.share = 0;
    this.phase = words;
    this.begun = { at: Date.now(), current: 0 };
  }

  /** @param {{phase: string, current: number, total: number, seconds_left?: number | null, unit: string}} progress */
  update(progress) {
    const words = PHASES[progress.phase] ?? progress.phase;
    if (words !== this.phase) {
      this.phase = words;
      this.share = 0;
      this.begun = { at: Date.now(), current: progress.current };
      this.words.textContent = words;
      this.track.setAttribute('aria-label', words);
    }
    this.share = Math.max(this.share, progress.total ? Math.min(progress.current / progress.total, 1) : 0);
    this.bar.style.width = `${100 * this.share}%`;
    this.track.setAttribute('aria-valuenow', String(Math.round(100 * this.share)));
    const left = progress.seconds_left ?? this.#left(progress);
    const far = progress.total ? `${count(progress.current)} of ${count(progress.total)} ${progress.unit}` : '';
    this.far.textContent = [far, left ? `${duration(left)} left` : ''].filter(Boolean).join(' · ');
  }

  /** @param {{current: number, total: number}} progress */
  #left(progress) {
    const seconds = (Date.now() - this.begun.at) / 1000;
    const done = progress.current - this.begun.current;
    return seconds > 2 && done > 0 ? ((progress.total - progress.current) * seconds) / done : 0;
  }
}

class HealthView {
  /** @param {HTMLElement} main @param {Context} context */
  constructor(main, context) {
    this.context = context;
    this.head = h('div', { class: 'health-head' });
    this.work = h('section', { 'aria-label': 'Work', class: 'stack8' });
    this.facts = h('section', { 'aria-label': 'Index' });
    this.chart = h('section', { 'aria-label': 'Last syncs' });
    this.files = h('section', { 'aria-label': 'Files' });
    this.buttons = h('div', { class: 'row' },
      h('button', { type: 'button', class: 'primary', onclick: () => this.start('sync') }, 'Sync now'),
      h('button', { type: 'button', onclick: () => this.reindex() }, 'Reindex…'));
    /** @type {ProgressLine | null} */
    this.job = null;
    /** @type {ProgressLine | null} */
    this.meaning = null;
    this.timer = 0;
    this.order = newOrder();
    this.drawn = '';
    replace(main, h('div', { class: 'column stack' }, h('h1', {}, 'Health'), this.head, this.buttons, this.work, this.facts, this.chart, this.files));
  }

  async load() {
    const isNews = this.order();
    const stop = waiting(this.head, 'Checking the index …', this.context.signal);
    try {
      const { data, status, error } = await call('status', {}, { signal: this.context.signal });
      stop();
      if (isNews()) this.show(data, status, error);
    } catch (error) {
      stop();
      if (!this.context.signal.aborted && isNews()) replace(this.head, failed(error, () => this.load()));
    }
  }

  later() {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.load(), REFRESH_MS);
  }

  /** @param {any} data @param {string} status @param {any} error */
  show(data, status, error) {
    const since = data.health_changes.at(-1)?.at;
    replace(this.head,
      h('p', { class: 'health-state' }, h('i', { class: 'dot', 'data-health': status }), h('strong', {}, STATES[status] ?? status), data.left_out_files > 0 && h('span', {}, `${status === 'healthy' ? ': all that can be read' : ''}; ${plural(data.left_out_files, 'file')} left out`), since && h('span', { class: 'muted' }, ' since ', time(since))),
      error ? h('p', {}, coded(`${error.message} (${error.code})`)) : h('p', {}, `${data.left_out_files ? 'All that can be read' : 'Everything'} is searchable with the current settings.`),
      error?.suggestion && h('p', { class: 'muted' }, coded(error.suggestion)),
      data.searchable && h('p', { class: 'muted' }, `${count(data.searchable.searchable)} of ${count(data.searchable.notes)} notes can be found.`),
      data.restart_needed.length > 0 && h('p', { class: 'muted' }, `Takes effect when the daemon restarts: ${data.restart_needed.join(', ')}.`));
    if (data.active_job?.progress) this.onJob({ ...data.active_job.progress, job_id: data.active_job.id });
    else this.endJob();
    this.showMeaning(data.meaning);
    this.showFacts(data);
    this.showChart(data.recent_syncs ?? []);
    this.showFiles(data.notices, data.last_job);
  }

  /** @param {any} data */
  showFacts(data) {
    const { meaning, relations } = data;
    const rows = /** @type {[string, any][]} */ ([
      ['Notes', `${count(data.total_docs)} searchable, ${count(data.total_chunks)} passages`],
      ['Vault', h('code', {}, data.vault_path)],
      ['Last sync', data.last_sync ? time(data.last_sync) : 'never'],
      ['Waiting', data.unindexed_files ? plural(data.unindexed_files, 'changed file') : 'nothing'],
      ['Watching', data.is_watching ? 'edits are noticed at once' : (data.watch_trouble ?? 'off; sync by hand')],
      ...(data.livesync ? [['LiveSync', data.livesync.message]] : []),
      ['Embedder', h('code', {}, data.embedder)],
      ['Meaning vectors', meaning ? `${count(meaning.done)} of ${count(meaning.total)} passages, ${meaning.model}` : h('span', {}, 'no model; ', h('code', {}, 'obsidian-rag model get minilm'), ' adds one')],
      ['Related notes', relations ? h('span', {}, plural(relations.notes, 'note'), ', updated ', time(relations.updated_at)) : 'none yet'],
    ]);
    replace(this.facts, h('dl', { class: 'facts' }, rows.flatMap(([name, value]) => [h('dt', { class: 'muted' }, name), h('dd', {}, value)])));
  }

  // Work

  /** @param {any} progress */
  onJob(progress) {
    if (!this.job) {
      this.job = new ProgressLine(PHASES[progress.phase] ?? 'Working');
      this.job.actions.append(h('button', { type: 'button', class: 'bare', onclick: () => this.cancel() }, 'Stop'));
      this.work.prepend(this.job.element);
    }
    this.job.update({ ...progress, unit: 'files' });
  }

  endJob() {
    this.job?.element.remove();
    this.job = null;
  }

  /** @param {any} progress */
  showMeaning(progress) {
    const isDone = !progress || progress.done >= progress.total;
    if (isDone && !progress?.trouble) {
      this.meaning?.element.remove();
      this.meaning = null;
      return;
    }
    if (!this.meaning) {
      this.meaning = new ProgressLine('Adding meaning vectors');
      this.work.append(this.meaning.element);
    }
    this.meaning.update({ phase: 'meaning', current: progress.done, total: progress.total, seconds_left: progress.seconds_left ?? 0, unit: 'passages' });
    if (progress.is_paused) this.meaning.far.textContent += ' · paused';
    if (progress.trouble) this.meaning.far.textContent += ` · ${progress.trouble}`;
    replace(this.meaning.actions, h('button', { type: 'button', class: 'bare', onclick: () => this.pause(!progress.is_paused) }, progress.is_paused ? 'Resume' : 'Pause'));
  }

  /** @param {string} mode */
  async start(mode) {
    await this.doing(async () => {
      await call('index', { mode });
      toast(mode === 'sync' ? 'Sync started' : 'Reindex started; search still uses the old index');
    });
  }

  reindex() {
    const box = dialog('Build a new index?', [
      h('p', {}, 'All notes are read again and a new index is built beside the one in use. Search keeps working meanwhile. Do this after damage or a change of the embedder.'),
      h('div', { class: 'row end' },
        h('button', { type: 'button', onclick: () => box.close() }, 'Cancel'),
        h('button', { type: 'button', class: 'primary', onclick: () => { box.close(); this.start('reindex'); } }, 'Reindex')),
    ]);
  }

  cancel() {
    return this.doing(() => call('cancel'));
  }

  /** @param {boolean} isPaused */
  pause(isPaused) {
    return this.doing(() => post('settings', { changes: { 'meaning.paused': isPaused }, save: true }));
  }

  /** @param {() => Promise<any>} act */
  async doing(act) {
    try {
      await act();
    } catch (error) {
      toast(`${/** @type {Error} */ (error).message}`);
    }
    this.later();
  }

  // Last syncs

  /** Redrawn only when it changes: the user may be looking at one bar. @param {any[]} recent */
  showChart(recent) {
    const drawn = JSON.stringify(recent);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    if (!recent.length) return replace(this.chart);
    const looked = document.activeElement?.getAttribute('aria-label');
    const longest = Math.max(...recent.map((one) => one.duration_ms ?? 0), 1);
    const bars = recent.map((one) => {
      const words = syncWords(one);
      const height = 4 + 44 * Math.sqrt((one.duration_ms ?? longest / 4) / longest);
      return h('li', {}, h('button', { type: 'button', class: 'bare sync-bar', title: words, 'aria-label': words, onclick: () => replace(caption, words), onfocus: () => replace(caption, words), onmouseenter: () => replace(caption, words) }, h('i', { class: one.status, style: { height: `${height}px` } })));
    });
    const caption = h('p', { class: 'muted small', 'aria-live': 'polite' }, syncWords(recent[recent.length - 1]));
    replace(this.chart, h('h2', {}, 'Last syncs'), h('ol', { class: 'plain sync-bars' }, bars), caption);
    const again = [...this.chart.querySelectorAll('.sync-bar')].find((bar) => bar.getAttribute('aria-label') === looked);
    /** @type {HTMLElement | undefined} */ (again)?.focus();
  }

  /** @param {any[]} notices @param {any} last */
  showFiles(notices, last) {
    const failures = (last?.errors ?? []).filter((/** @type {any} */ one) => !notices.some((notice) => notice.file === one.file));
    const rows = [...notices, ...failures.map((/** @type {any} */ one) => ({ file: one.file, status: 'failed', reason: one.message || one.reason }))];
    if (!rows.length) return replace(this.files, h('h2', {}, 'Files'), h('p', { class: 'muted' }, 'No file was skipped and none failed.'));
    const kinds = ['failed', 'skipped', 'warning'].map((kind) => [kind, rows.filter((one) => one.status === kind)]).filter(([, some]) => some.length);
    replace(this.files, h('h2', {}, 'Files that are not searchable, or only in part'), kinds.map(([kind, some]) => h('details', { open: kind === 'failed' },
      h('summary', {}, `${plural(some.length, 'file')} ${kind === 'warning' ? 'with a warning' : kind}`),
      h('ul', { class: 'plain file-list' }, /** @type {any[]} */ (some).slice(0, MOST_FILES).map((one) => h('li', {}, h('span', {}, one.file), h('span', { class: 'muted small' }, reasonWords(one.reason))))),
      some.length > MOST_FILES && h('p', { class: 'muted small' }, coded(`and ${count(some.length - MOST_FILES)} more; \`obsidian-rag status\` lists all`)))));
  }
}

/** @param {string} reason */
function reasonWords(reason) {
  return /^[a-z_]+$/.test(reason) ? reason.replaceAll('_', ' ') : reason;
}

/** @param {any} one */
function syncWords(one) {
  const when = new Date(one.finished_at).toLocaleString();
  const took = one.duration_ms === undefined ? '' : one.duration_ms < 1000 ? `${one.duration_ms} ms` : duration(one.duration_ms / 1000);
  const changes = ['added', 'changed', 'removed', 'failed'].filter((name) => one[name]).map((name) => `${count(one[name])} ${name}`);
  const how = one.status === 'failed' ? `failed${one.error ? ` (${one.error})` : ''}` : one.status === 'cancelled' ? 'stopped' : changes.join(', ') || 'no changes';
  return [`${MODES[one.mode] ?? one.mode}, ${when}`, took, how].filter(Boolean).join(' · ');
}

/** @type {import('../router.js').View} */
export const view = {
  title: 'Health',
  async render(main, context) {
    const health = new HealthView(main, context);
    const ends = [
      listen('progress', (progress) => {
        if (progress.phase === 'meaning') health.showMeaning({ ...progress, done: progress.current });
        else health.onJob(progress);
      }),
      listen('job', () => health.later()),
      listen('health', () => health.later()),
      listen('livesync', () => health.later()),
      listen('changes', () => health.later()),
      listen('ready', () => health.later()),
    ];
    await health.load();
    return () => {
      clearTimeout(health.timer);
      for (const end of ends) end();
    };
  },
};
