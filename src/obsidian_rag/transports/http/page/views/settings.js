// The settings, each with its help. The consequences of a change are shown before it is saved.

import { get, isAborted, post } from '../api.js';
import { failed, h, icon, replace, state, toast } from '../dom.js';

const TITLES = /** @type {Record<string, string>} */ ({
  vault: 'Vault',
  embedding: 'Vectors',
  meaning: 'Meaning vectors',
  vector_store: 'Store',
  indexing: 'Indexing',
  security: 'Privacy',
  memory: 'Memory',
  server: 'Daemon',
  watcher: 'Watching',
  relations: 'Related notes',
  livesync: 'LiveSync',
});

/** @type {import('../router.js').View} */
export const view = {
  title: 'Settings',
  async render(main, context) {
    const place = h('div', { class: 'column settings' }, h('h1', {}, 'Settings'));
    replace(main, place);
    try {
      const { data } = await get('settings', {}, { signal: context.signal });
      new Settings(place, data);
    } catch (error) {
      if (!isAborted(error)) place.append(failed(error, () => view.render(main, context)));
    }
  },
};

class Settings {
  /** @param {HTMLElement} place @param {any} data */
  constructor(place, data) {
    /** @type {Map<string, any>} */
    this.changes = new Map();
    /** @type {AbortController | undefined} */
    this.tried = undefined;
    this.notes = h('ul', { class: 'notes' });
    this.save = h('button', { type: 'button', class: 'primary', onclick: () => this.keep() }, 'Save');
    this.bar = h('div', { class: 'save-bar', hidden: true, role: 'region', 'aria-label': 'Unsaved changes' }, this.notes, h('div', { class: 'row' }, this.save, h('button', { type: 'button', onclick: () => this.reload() }, 'Discard')));
    const filter = h('input', { type: 'search', placeholder: 'Find a setting', 'aria-label': 'Find a setting', oninput: () => this.filter(filter.value) });
    this.sections = data.sections.map((/** @type {any} */ section) => this.section(section));
    this.empty = h('div', { hidden: true }, state('No setting has that name.'));
    replace(place, h('h1', {}, 'Settings'), h('p', { class: 'muted small' }, 'Kept in ', h('code', {}, data.file), '. Most take effect at once.'), this.look(), filter, this.sections, this.empty, this.bar);
    this.place = place;
  }

  /** How notes look; stored in this browser, not in the file. */
  look() {
    const chosen = localStorage.getItem('note-font') ?? 'ui';
    const select = h('select', { onchange: () => {
      localStorage.setItem('note-font', select.value);
      document.documentElement.dataset.noteFont = select.value;
    } }, [['ui', 'Plain'], ['serif', 'Serif']].map(([value, words]) => h('option', { value, selected: value === chosen }, words)));
    return h('label', { class: 'setting' }, h('span', { class: 'name' }, 'Font of notes'), select, h('span', { class: 'help muted small' }, 'In this browser'));
  }

  /** @param {any} section */
  section(section) {
    const isLong = !['vault', 'security', 'indexing', 'meaning'].includes(section.name);
    return h('details', { class: 'section', open: !isLong }, h('summary', {}, h('h2', {}, TITLES[section.name] ?? section.name), h('span', { class: 'muted small' }, section.help)), section.settings.map((/** @type {any} */ setting) => this.row(setting)));
  }

  /** @param {any} setting */
  row(setting) {
    const id = `setting-${setting.name}`;
    const short = setting.name.split('.').at(-1);
    const field = this.field(setting, id);
    const isDefault = JSON.stringify(setting.value) === JSON.stringify(setting.default);
    const reset = h('button', { type: 'button', class: 'bare small', hidden: isDefault || setting.kind === 'secret', onclick: () => this.change(setting, null, reset) }, 'Default');
    const needs = setting.needs === 'reindex' ? 'needs a rebuild of the index' : setting.needs === 'restart' ? 'needs a restart of the daemon' : '';
    return h('div', { class: 'setting', 'data-name': `${setting.name} ${setting.help}`.toLowerCase() },
      h('label', { class: 'name', for: id }, short.replaceAll('_', ' ')),
      h('div', { class: 'value' }, field, reset),
      h('p', { class: 'help muted small' }, setting.help, needs && h('span', { class: 'needs' }, ` · ${needs}`), setting.is_overridden && ' · set by the environment'));
  }

  /** @param {any} setting @param {string} id */
  field(setting, id) {
    const off = setting.is_overridden || setting.kind === 'secret';
    const said = (/** @type {any} */ value) => this.change(setting, value);
    if (setting.kind === 'secret') return h('span', { id, class: 'muted' }, 'stored separately; set it with `livesync setup`');
    if (setting.kind === 'flag') return h('input', { id, type: 'checkbox', checked: setting.value === true, disabled: off, onchange: (/** @type {any} */ event) => said(event.target.checked) });
    if (setting.choices.length) return h('select', { id, disabled: off, onchange: (/** @type {any} */ event) => said(event.target.value) }, setting.choices.map((/** @type {string} */ word) => h('option', { value: word, selected: word === setting.value }, word)));
    if (setting.kind === 'number') return h('input', { id, type: 'number', step: 'any', disabled: off, value: setting.value ?? '', placeholder: setting.default ?? 'set by the profile', onchange: (/** @type {any} */ event) => said(event.target.value === '' ? null : Number(event.target.value)) });
    if (setting.kind === 'list') return h('textarea', { id, rows: String(Math.max(2, (setting.value ?? []).length)), disabled: off, spellcheck: 'false', onchange: (/** @type {any} */ event) => said(event.target.value.split('\n').map((/** @type {string} */ line) => line.trim()).filter(Boolean)) }, (setting.value ?? []).join('\n'));
    if (setting.kind === 'json') return h('textarea', { id, rows: '5', disabled: off, spellcheck: 'false', class: 'code', onchange: (/** @type {any} */ event) => said(parsed(event.target.value)) }, JSON.stringify(setting.value, null, 1));
    return h('input', { id, type: 'text', disabled: off, value: setting.value ?? '', placeholder: setting.default ?? '', spellcheck: 'false', onchange: (/** @type {any} */ event) => said(event.target.value === '' ? null : event.target.value) });
  }

  /** @param {any} setting @param {any} value @param {HTMLElement} [reset] */
  async change(setting, value, reset) {
    if (reset) {
      const field = /** @type {any} */ (document.getElementById(`setting-${setting.name}`));
      if (setting.kind === 'flag') field.checked = setting.default;
      else field.value = setting.kind === 'list' ? setting.default.join('\n') : setting.kind === 'json' ? JSON.stringify(setting.default, null, 1) : (setting.default ?? '');
      reset.hidden = true;
    }
    if (JSON.stringify(value) === JSON.stringify(setting.value)) this.changes.delete(setting.name);
    else this.changes.set(setting.name, value);
    await this.try();
  }

  async try() {
    this.tried?.abort();
    this.bar.hidden = this.changes.size === 0;
    if (!this.changes.size) return;
    this.tried = new AbortController();
    try {
      const { data } = await post('settings', { changes: Object.fromEntries(this.changes) }, { signal: this.tried.signal });
      replace(this.notes, data.notes.map((/** @type {string} */ note) => h('li', {}, icon('warning'), note)), !data.notes.length && h('li', {}, icon('check'), 'Takes effect at once.'));
      this.save.disabled = false;
    } catch (error) {
      if (isAborted(error)) return;
      replace(this.notes, h('li', { class: 'bad' }, icon('warning'), `${/** @type {any} */ (error).message} ${/** @type {any} */ (error).suggestion ?? ''}`));
      this.save.disabled = true;
    }
  }

  /** Save. The form is inert meanwhile: it is replaced, and changes would be lost. */
  async keep() {
    this.place.inert = true;
    try {
      await post('settings', { changes: Object.fromEntries(this.changes), save: true });
      await this.reload();
      toast('Saved');
    } catch (error) {
      this.place.inert = false;
      this.save.disabled = true;
      replace(this.notes, h('li', { class: 'bad' }, icon('warning'), /** @type {any} */ (error).message));
    }
  }

  async reload() {
    const { data } = await get('settings');
    new Settings(this.place, data);
    this.place.inert = false;
  }

  /** @param {string} typed */
  filter(typed) {
    const wanted = typed.trim().toLowerCase();
    let count = 0;
    for (const section of this.sections) {
      let found = 0;
      for (const row of section.querySelectorAll('.setting')) {
        const fits = !wanted || row.dataset.name.includes(wanted);
        row.hidden = !fits;
        found += Number(fits);
      }
      section.hidden = !found;
      if (wanted) section.open = true;
      count += found;
    }
    this.empty.hidden = count > 0;
  }
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
