// The views by the first part of their address: the module, and the stylesheet in css/.

/** @typedef {{load: () => Promise<any>, style?: string}} Row */

/** @type {Record<string, Row>} */
export const VIEWS = {
  search: { load: () => import('./views/search.js'), style: 'search' },
  note: { load: () => import('./views/note.js'), style: 'note' },
  map: { load: () => import('./views/map.js'), style: 'map' },
  health: { load: () => import('./views/health.js'), style: 'health' },
  vaults: { load: () => import('./views/vaults.js'), style: 'vaults' },
  livesync: { load: () => import('./views/livesync.js'), style: 'livesync' },
  memory: { load: () => import('./views/memory.js'), style: 'memory' },
  settings: { load: () => import('./views/settings.js'), style: 'settings' },
  welcome: { load: () => import('./views/welcome.js'), style: 'welcome' },
};

/** @type {Row} */
export const NOT_FOUND = { load: () => import('./views/not_found.js') };
