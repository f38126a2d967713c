// LiveSync: whether the vault is in sync, the conflicts, and the files that can be restored.

import { call, get, newOrder, post } from '../api.js';
import { coded, count, dialog, failed, h, plural, replace, state, time, toast, waiting } from '../dom.js';
import { listen } from '../events.js';
import { isScreened, screenedBar } from '../screen.js';

/** @typedef {import('../router.js').Context} Context */

const FOLDED_LINES = 3;

/** @type {import('../router.js').View} */
export const view = {
  title: 'LiveSync',
  async render(main, context) {
    const view = new LivesyncView(main, context);
    const ends = [listen('livesync', () => view.load()), listen('ready', () => view.load())];
    await view.load();
    return () => ends.forEach((end) => end());
  },
};

class LivesyncView {
  /** @param {HTMLElement} main @param {Context} context */
  constructor(main, context) {
    this.signal = context.signal;
    this.order = { status: newOrder(), conflicts: newOrder(), trash: newOrder() };
    /** The conflicts that are listed. @type {Map<string, HTMLElement>} */
    this.rows = new Map();
    this.head = h('div', { class: 'stack8' });
    this.conflicts = h('section', { 'aria-label': 'Conflicts' });
    this.trash = h('section', { 'aria-label': 'Trash' });
    replace(main, h('div', { class: 'column stack livesync' }, h('h1', {}, 'LiveSync'), this.head, this.conflicts, this.trash));
  }

  async load() {
    const isNews = this.order.status();
    const stop = waiting(this.head, 'Checking the sync …', this.signal);
    try {
      const { data } = await call('obsidian_sync_status', {}, { signal: this.signal });
      stop();
      if (isNews()) this.showStatus(data);
      if (data.configured) await Promise.all([this.loadConflicts(), this.loadTrash()]);
    } catch (error) {
      stop();
      if (!this.signal.aborted && isNews()) replace(this.head, failed(error, () => this.load()));
    }
  }

  /** @param {any} data */
  showStatus(data) {
    if (!data.configured) {
      replace(this.head, state('This vault is not synced with other devices.', 'LiveSync keeps it the same on your phone and laptop, through your own CouchDB server.', [h('span', { class: 'muted' }, 'In a terminal: '), h('code', {}, 'obsidian-rag livesync setup')]));
      return;
    }
    const { stats } = data;
    const health = data.trouble ? 'unavailable' : data.running && data.connected ? 'healthy' : 'degraded';
    const rows = /** @type {[string, any][]} */ ([
      ['Database', h('span', {}, h('code', {}, data.database), ' at ', h('code', {}, data.server))],
      ['Folder', h('code', {}, data.vault)],
      ['In sync', `${plural(data.files, 'file')}${data.read_only ? ', changes are only received' : ''}`],
      ['Received', `${count(stats.pulled)} changed, ${count(stats.deleted_here)} deleted`],
      ['Sent', `${count(stats.pushed)} changed, ${count(stats.deleted_there)} deleted`],
      ['Last change', stats.last_change_at ? time(stats.last_change_at) : 'none since it started'],
    ]);
    replace(this.head,
      h('p', { class: 'health-state' }, h('i', { class: 'dot', 'data-health': health }), h('strong', {}, coded(data.message))),
      data.trouble && h('p', { class: 'muted' }, coded(`${data.trouble.suggestion} (${data.trouble.code})`)),
      data.progress && h('p', { class: 'muted' }, `${data.progress.phase}: ${count(data.progress.current)} of ${count(data.progress.total)}`),
      h('dl', { class: 'facts' }, rows.flatMap(([name, value]) => [h('dt', { class: 'muted' }, name), h('dd', {}, value)])),
      data.not_synced.map((/** @type {any} */ one) => h('details', {}, h('summary', {}, `${plural(one.count, 'file')} not synced: ${one.reason ?? one.kind}`), h('ul', { class: 'plain file-list' }, (one.paths ?? []).map((/** @type {string} */ path) => h('li', {}, path))))));
  }

  // Conflicts

  async loadConflicts() {
    const isNews = this.order.conflicts();
    try {
      const { data } = await get('conflicts', {}, { signal: this.signal });
      if (isNews()) this.showConflicts(data.conflicts);
    } catch (error) {
      if (!this.signal.aborted && isNews()) replace(this.conflicts, failed(error, () => this.loadConflicts()));
    }
  }

  /** An open conflict stays open: the user is reading it. @param {any[]} some */
  showConflicts(some) {
    const before = this.rows;
    const rows = (this.rows = new Map(some.map((one) => [JSON.stringify(one), before.get(JSON.stringify(one)) ?? this.conflictRow(one)])));
    const isSame = some.length && [...before.keys()].join() === [...rows.keys()].join();
    if (isSame && this.conflicts.querySelector('.conflict-list')) return;
    replace(this.conflicts, h('h2', {}, some.length ? `${plural(some.length, 'note')} changed in two places` : 'Conflicts'), some.length ? h('ul', { class: 'plain conflict-list' }, [...rows.values()]) : h('p', { class: 'muted' }, 'There are no conflicts.'));
  }

  /** @param {any} conflict */
  conflictRow(conflict) {
    const body = h('div', {});
    const details = h('details', { ontoggle: () => details.open && !body.childElementCount && this.openConflict(conflict.path, body) },
      h('summary', {}, h('span', {}, conflict.path), h('span', { class: 'muted small' }, ' since ', time(conflict.since))), body);
    return h('li', {}, details);
  }

  /** @param {string} path @param {HTMLElement} body @param {boolean} [isRevealing] */
  async openConflict(path, body, isRevealing = !isScreened()) {
    if (!isRevealing) return replace(body, screenedBar('both versions', [['Show this one', () => this.openConflict(path, body, true)]]));
    const stop = waiting(body, 'Fetching both versions …', this.signal);
    try {
      const { data } = await get('conflicts', { path }, { signal: this.signal });
      stop();
      this.showConflict(data, body);
    } catch (error) {
      stop();
      if (!this.signal.aborted) replace(body, failed(error, () => this.openConflict(path, body)));
    }
  }

  /** @param {any} data @param {HTMLElement} body */
  showConflict(data, body) {
    const [ours, ...others] = data.sides;
    const theirs = others[0];
    const settle = (/** @type {string} */ keep) => this.settle(data.path, keep);
    const keepOther = others.length > 1
      ? others.map((/** @type {any} */ one, /** @type {number} */ at) => h('button', { type: 'button', onclick: () => settle(one.rev) }, `Keep other ${at + 1}`))
      : [h('button', { type: 'button', onclick: () => settle('theirs') }, 'Keep other')];
    replace(body,
      data.rows ? sideBySide(data.rows, ours, theirs) : h('div', { class: 'sides' }, [ours, ...others].map((one, at) => h('div', {}, sideHead(one, at), h('p', { class: 'muted' }, one.is_deleted ? 'Deleted here.' : 'It cannot be shown: it is too large, or not text.')))),
      h('div', { class: 'row' },
        h('button', { type: 'button', onclick: () => settle('ours') }, 'Keep this'),
        keepOther,
        h('button', { type: 'button', onclick: () => settle('both') }, 'Keep both'),
        data.rows && h('button', { type: 'button', onclick: () => this.merge(data) }, 'Merge…')),
      h('p', { class: 'muted small' }, 'The version that is not kept goes to the trash below.'));
  }

  /** @param {any} data */
  merge(data) {
    const lines = data.rows.flatMap((/** @type {any} */ row) => [...row.ours, ...row.theirs]);
    const text = h('textarea', { rows: 16, class: 'merge', 'aria-label': 'Merged text', value: `${lines.join('\n')}\n` });
    const box = dialog('Merge both versions', [
      h('p', { class: 'muted' }, 'This text has the lines of both versions. Edit it until it is right.'),
      text,
      h('div', { class: 'row end' },
        h('button', { type: 'button', onclick: () => box.close() }, 'Cancel'),
        h('button', { type: 'button', class: 'primary', onclick: () => { box.close(); this.settle(data.path, 'merge', text.value); } }, 'Save merge')),
    ], { class: 'large' });
  }

  /** @param {string} path @param {string} keep @param {string} [text] */
  async settle(path, keep, text) {
    try {
      const { data, error } = await post('conflicts/resolve', { path, keep, ...(text === undefined ? {} : { text }) });
      const beside = data.kept_as.length ? `; the other version is ${data.kept_as.join(', ')}` : '';
      toast(error ? `${path} is resolved here, and sent with the next sync` : `${path} is resolved${beside}`);
    } catch (error) {
      toast(/** @type {Error} */ (error).message);
    }
    this.rows = new Map(); // the other conflicts may have changed, too
    await this.load();
  }

  // Trash

  async loadTrash() {
    const isNews = this.order.trash();
    try {
      const { data } = await get('trash', {}, { signal: this.signal });
      if (!isNews()) return;
      const rows = data.files.map((/** @type {any} */ file) => h('li', {},
        h('span', {}, file.path, h('span', { class: 'muted small' }, ' · ', file.reason, ' · ', time(file.removed_at))),
        h('button', { type: 'button', class: 'bare', 'aria-label': `Restore ${file.path}`, onclick: () => this.restore(file) }, 'Restore')));
      replace(this.trash, h('h2', {}, 'Trash'), rows.length ? h('ul', { class: 'plain file-list' }, rows) : h('p', { class: 'muted' }, 'Sync has removed nothing from the vault.'));
    } catch (error) {
      if (!this.signal.aborted && isNews()) replace(this.trash, failed(error, () => this.loadTrash()));
    }
  }

  /** @param {any} file */
  async restore(file) {
    try {
      const { data } = await post('trash/restore', { id: file.id });
      toast(data.path === data.was ? `${data.path} is restored` : `Restored as ${data.path}`);
    } catch (error) {
      toast(/** @type {Error} */ (error).message);
    }
    await this.loadTrash();
  }
}

/** @param {any} side @param {number} at */
function sideHead(side, at) {
  const name = side.is_ours ? 'This device' : at > 1 ? `Other device ${at}` : 'Other device';
  return h('h3', {}, name, side.mtime_ms && h('span', { class: 'muted small' }, ' · written ', time(side.mtime_ms)));
}

/** @param {any[]} rows @param {any} ours @param {any} theirs */
function sideBySide(rows, ours, theirs) {
  const lines = rows.flatMap((row) => (row.is_same ? same(row.ours) : changed(row)));
  return h('div', { class: 'sides-scroll' }, h('div', { class: 'sides' }, sideHead(ours, 0), sideHead(theirs, 1), lines));
}

/** Lines that are equal, without the middle of a long run. @param {string[]} lines */
function same(lines) {
  const isLong = lines.length > 2 * FOLDED_LINES + 2;
  const shown = isLong ? [...lines.slice(0, FOLDED_LINES), null, ...lines.slice(-FOLDED_LINES)] : lines;
  return shown.map((line) => (line === null
    ? h('p', { class: 'sides-gap muted small' }, `${count(lines.length - 2 * FOLDED_LINES)} lines are the same`)
    : [h('pre', {}, line || ' '), h('pre', {}, line || ' ')])).flat();
}

/** @param {any} row */
function changed(row) {
  const cell = (/** @type {string[]} */ lines, /** @type {string} */ kind, /** @type {string} */ words) => lines.length
    ? h('pre', { class: kind }, h('span', { class: 'unseen' }, `${words}: `), lines.join('\n') || ' ')
    : h('pre', { class: 'none' }, ' ');
  return [cell(row.ours, 'ours', 'Only here'), cell(row.theirs, 'theirs', 'Only there')];
}
