// Vaults: the primary one, the linked ones, and their progress.

import { call, newOrder } from '../api.js';
import { coded, count, dialog, failed, h, plural, replace, time, toast, waiting } from '../dom.js';
import { listen } from '../events.js';
import { duration } from './health.js';

/** @typedef {import('../router.js').Context} Context */

const PHASES = /** @type {[string, string][]} */ ([['scan', 'Scan'], ['hash', 'Compare'], ['parse', 'Read'], ['embed', 'Embed']]);
const QUIET_MS = 500;

/** @type {import('../router.js').View} */
export const view = {
  title: 'Vaults',
  async render(main, context) {
    const vaults = new VaultsView(main, context);
    const ends = ['job', 'progress', 'health', 'ready'].map((kind) => listen(kind, () => vaults.later()));
    await vaults.load();
    return () => {
      clearTimeout(vaults.timer);
      for (const end of ends) end();
    };
  },
};

class VaultsView {
  /** @param {HTMLElement} main @param {Context} context */
  constructor(main, context) {
    this.signal = context.signal;
    this.list = h('div', { 'aria-live': 'off' });
    this.timer = 0;
    this.order = newOrder();
    replace(main, h('div', { class: 'column stack' },
      h('div', { class: 'row spread' }, h('h1', {}, 'Vaults'), h('button', { type: 'button', class: 'primary', onclick: () => this.add() }, 'Link a vault…')),
      h('p', { class: 'muted' }, 'Linked vaults are searched where they are. Nothing is ever written to them.'),
      this.list));
  }

  later() {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.load(), QUIET_MS);
  }

  async load() {
    const isNews = this.order();
    const stop = this.list.childElementCount ? () => {} : waiting(this.list, 'Checking the vaults …', this.signal);
    try {
      const { data } = await call('obsidian_link_list', {}, { signal: this.signal });
      stop();
      if (!isNews()) return;
      const focused = this.focused();
      replace(this.list, h('ul', { class: 'plain vault-list' }, data.links.map((/** @type {any} */ link) => this.row(link))));
      if (focused) /** @type {HTMLElement | null} */ (this.list.querySelector(focused))?.focus();
    } catch (error) {
      stop();
      if (!this.signal.aborted && isNews()) replace(this.list, failed(error, () => this.load()));
    }
  }

  /** The focused element of the list, to focus it again after a redraw. */
  focused() {
    const { activeElement } = document;
    const row = this.list.contains(activeElement) ? activeElement?.closest('[data-link]') : null;
    return row instanceof HTMLElement ? `[data-link="${CSS.escape(row.dataset.link ?? '')}"] [data-act="${activeElement?.getAttribute('data-act')}"]` : null;
  }

  /** @param {any} link */
  row(link) {
    const act = (/** @type {string} */ tool, /** @type {object} */ args, /** @type {string} */ done) => this.act(tool, { link_id: link.link_id, ...args }, done);
    return h('li', { class: 'panel', 'data-link': link.link_id },
      h('div', { class: 'row spread' }, h('h2', {}, link.name), h('span', { class: 'chip on' }, link.label)),
      h('p', { class: 'muted' }, h('code', {}, link.root_path)),
      this.phases(link),
      h('p', {}, totalsText(link.totals)),
      link.trouble && h('p', { class: 'vault-error' }, coded(`${link.trouble.message} (${link.trouble.code}) ${link.trouble.suggestion}`)),
      h('p', { class: 'muted small' }, link.last_scan_at ? h('span', {}, 'Last checked ', time(link.last_scan_at)) : 'Not checked yet', rules(link)),
      h('div', { class: 'row' },
        h('button', { type: 'button', 'data-act': 'sync', disabled: link.paused, onclick: () => act('obsidian_sync_now', {}, `${link.name} is being synced`) }, 'Sync now'),
        !link.is_primary && h('button', { type: 'button', 'data-act': 'pause', onclick: () => act('obsidian_link_set_mode', { paused: !link.paused }, link.paused ? `${link.name} continues` : `${link.name} is paused; it stays searchable`) }, link.paused ? 'Resume' : 'Pause'),
        !link.is_primary && h('button', { type: 'button', 'data-act': 'remove', class: 'bare danger', onclick: () => this.remove(link) }, 'Remove…')));
  }

  /** @param {any} link */
  phases(link) {
    const { progress } = link;
    if (progress.phase === 'done') return h('p', { class: 'vault-phases' }, h('span', { class: 'chip vault-done' }, link.paused ? 'Paused' : 'Up to date'));
    const at = PHASES.findIndex(([phase]) => phase === progress.phase);
    const steps = PHASES.map(([, words], step) => h('li', { class: step < at ? 'past' : step === at ? 'now' : '', 'aria-current': step === at ? 'step' : null }, words));
    const far = progress.total ? `${count(progress.current)} of ${count(progress.total)} files` : '';
    const left = progress.seconds_left ? `${duration(progress.seconds_left)} left` : '';
    const words = link.paused ? 'paused' : [far, left].filter(Boolean).join(' · ');
    return h('div', { class: 'vault-phases' }, h('ol', { class: 'plain' }, steps), words && h('span', { class: 'muted small' }, words));
  }

  add() {
    const path = h('input', { required: true, placeholder: '/home/me/Other vault', 'aria-describedby': 'vault-problem' });
    const name = h('input', { placeholder: 'the name of the folder' });
    const include = h('textarea', { rows: 2, placeholder: 'Projects' });
    const exclude = h('textarea', { rows: 2, placeholder: 'Archive' });
    const problem = h('p', { id: 'vault-problem', role: 'alert', class: 'vault-error' });
    const submit = async (/** @type {Event} */ event) => {
      event.preventDefault();
      replace(problem);
      try {
        const asked = { root_path: path.value.trim(), ...listed('include', include.value), ...listed('exclude', exclude.value), ...(name.value.trim() ? { name: name.value.trim() } : {}) };
        const { data } = await call('obsidian_link_add', asked);
        box.close();
        toast(`${data.name} is linked; its notes appear as they are read`);
        await this.load();
      } catch (error) {
        const { message, suggestion } = /** @type {any} */ (error);
        replace(problem, ...coded(`${message} ${suggestion ?? ''}`));
      }
    };
    const field = (/** @type {string} */ words, /** @type {HTMLElement} */ input, /** @type {string} */ hint = '') => h('label', { class: 'field' }, h('span', {}, words, hint && h('span', { class: 'muted small' }, ` ${hint}`)), input);
    const box = dialog('Link a vault', [
      h('form', { class: 'stack12', onsubmit: submit },
        field('Folder', path, 'full path'),
        field('Name', name),
        field('Only these', include, 'folders, one per line'),
        field('Not these', exclude, 'folders, one per line'),
        problem,
        h('div', { class: 'row end' }, h('button', { type: 'button', onclick: () => box.close() }, 'Cancel'), h('button', { class: 'primary' }, 'Link vault'))),
    ]);
  }

  /** @param {any} link */
  remove(link) {
    const box = dialog(`Remove “${link.name}”?`, [
      h('p', {}, `Its ${plural(link.totals.indexed, 'note')} can no longer be found here. Its files are not touched.`),
      h('div', { class: 'row end' },
        h('button', { type: 'button', onclick: () => box.close() }, 'Cancel'),
        h('button', { type: 'button', class: 'danger', onclick: () => { box.close(); this.act('obsidian_link_remove', { link_id: link.link_id }, `${link.name} is removed`); } }, 'Remove')),
    ]);
  }

  /** @param {string} tool @param {object} args @param {string} done */
  async act(tool, args, done) {
    try {
      await call(tool, args);
      toast(done);
    } catch (error) {
      toast(/** @type {Error} */ (error).message);
    }
    await this.load();
  }
}

/** @param {any} totals */
function totalsText(totals) {
  const parts = [`${plural(totals.indexed, 'note')} searchable`, totals.pending && `${count(totals.pending)} waiting`, totals.failed && `${count(totals.failed)} failed`, totals.skipped && `${count(totals.skipped)} skipped`];
  return parts.filter(Boolean).join(' · ');
}

/** @param {any} link */
function rules(link) {
  const parts = [link.include?.length ? `only ${link.include.join(', ')}` : '', link.exclude?.length ? `without ${link.exclude.join(', ')}` : ''].filter(Boolean);
  return parts.length ? ` · ${parts.join(' · ')}` : '';
}

/** @param {string} name @param {string} text */
function listed(name, text) {
  const found = text.split('\n').map((line) => line.trim()).filter(Boolean);
  return found.length ? { [name]: found } : {};
}
