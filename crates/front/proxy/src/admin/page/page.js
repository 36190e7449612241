'use strict';
// Draws what /api/v1 tells, once a second while the page is visible. Names, reasons and paths come from
// files and from clients: they enter the page as text only, never as markup.

const PERIOD_MS = 1000;
const HISTORY = 120;
const EVENTS_MAX = 200;
const SLOW_MS = 1000;
const ROUTES_MAX = 500;

const $ = id => document.getElementById(id);

/** An element; `children` are elements or texts. */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  const { data, ...others } = properties;
  Object.assign(element, others);
  Object.assign(element.dataset, data);
  element.append(...children.filter(child => child != null));
  return element;
}

function drawing(tag, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// What did not change is not touched: a reader, a selection and a focus stay where they are.
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
function setClass(element, name) {
  if (element.className !== name) element.className = name;
}

// ---- Asking ----

class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail || `the front answered ${status}`);
    this.status = status;
    this.token = problem.token || '';
  }
}

let token = sessionStorage.getItem('token') || '';

async function ask(method, path, body, version) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (method !== 'GET') headers['Content-Type'] = 'application/json';
  if (version) headers['If-Match'] = `"${version}"`;
  // The user and the password that the browser asked for are sent, too, unless there is a token. They may stand in the
  // page's own URL, to which nothing can be fetched, so the path is not relative.
  const answer = await fetch(`${location.origin}/api/v1/${path}`, {
    method, headers, body: body && JSON.stringify(body), cache: 'no-store', credentials: 'same-origin',
    signal: AbortSignal.timeout(15000),
  });
  let value = {};
  try { value = await answer.json(); } catch { /* Not JSON: the status says enough. */ }
  if (!answer.ok) throw new Refused(answer.status, value);
  return value;
}

/** Whether the token is what the front misses, and not a user of its sign-on. */
const lacksToken = error => error instanceof Refused && error.status === 401 && error.token === 'token';

const pathOf = backend =>
  `upstreams/${encodeURIComponent(backend.upstream)}/backends/${encodeURIComponent(backend.name)}`;

// ---- Numbers and words ----

const count = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const many = (number, one, more = `${one}s`) => `${count.format(number)} ${number === 1 ? one : more}`;
const rate = number => number >= 1000 ? short.format(number) : number >= 10 || number === 0 ? number.toFixed(0) : number.toFixed(1);

function bytes(number) {
  for (const unit of ['B', 'kB', 'MB', 'GB']) {
    if (number < 1000 || unit === 'GB') return `${number < 10 && unit !== 'B' ? number.toFixed(1) : number.toFixed(0)} ${unit}`;
    number /= 1000;
  }
}
function millis(value) {
  if (value >= 10000) return `${(value / 1000).toFixed(0)} s`;
  if (value >= 1000) return `${(value / 1000).toFixed(1)} s`;
  return `${value >= 10 ? value.toFixed(0) : value.toFixed(value >= 1 ? 1 : 2)} ms`;
}
/** Two times with one unit, if they have the same. */
function pair(less, more) {
  const [low, high] = [millis(less), millis(more)];
  const unit = high.replace(/^\S+/, '');
  return `${low.endsWith(unit) ? low.slice(0, -unit.length) : low} / ${high}`;
}
function span(seconds) {
  if (seconds < 120) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}
let serverNow = Date.now();
const ago = moment => `${span((serverNow - Date.parse(moment)) / 1000)} ago`;
const clock = moment => new Date(moment).toLocaleTimeString([], { hour12: false });
const at = moment => Math.abs(Date.parse(moment) - serverNow) < 12 * 3600000 ? clock(moment) : day(moment);
const day = moment => new Date(moment).toLocaleString([], { hour12: false });

const MARKS = { up: 'good', ramping: 'warn', verifying: 'warn', suspect: 'warn', out: 'bad' };
const ACTIVATIONS = { active: 'good', drain: 'drain', stopped: 'off' };
function markOf(backend) {
  const activation = backend.settings.activation;
  if (activation !== 'active') return ACTIVATIONS[activation];
  return MARKS[backend.condition] || 'warn';
}
const isFailing = backend => Boolean(backend.server_errors?.mostly);
/** How bad a backend fares: out, answering mostly 5xx, not up and active, or well. */
function rankOf(backend) {
  if (backend.condition === 'out') return 3;
  if (isFailing(backend)) return 2;
  return markOf(backend) !== 'good' || backend.condition !== 'up' ? 1 : 0;
}
const isTrouble = backend => rankOf(backend) > 0;

// ---- Histories ----

// Requests a second and the state of each backend, as [moment, rate, mark]. A reload of the page keeps them.
const histories = new Map();
const HISTORIES = 'histories';

function restoreHistories() {
  try {
    for (const [key, samples] of JSON.parse(sessionStorage.getItem(HISTORIES) || '[]')) histories.set(key, samples);
  } catch { /* Written by another version of the page: it begins anew. */ }
}
function saveHistories() {
  try { sessionStorage.setItem(HISTORIES, JSON.stringify([...histories])); } catch { /* No room: a reload begins anew. */ }
}

/** Adds a sample to the history of a backend, and forgets what is too old to be drawn. */
function remember(key, value, mark) {
  const samples = histories.get(key) || [];
  samples.push([serverNow, value, mark]);
  while (serverNow - samples[0][0] > HISTORY * 1000) samples.shift();
  histories.set(key, samples);
  return samples;
}

/** Draws samples into a field of so much height: a line of the rates, above a strip of the states. */
function drawSamples(path, strip, samples, height) {
  const most = Math.max(1, ...samples.map(([, value]) => value));
  const at = moment => HISTORY - (serverNow - moment) / 1000;
  const top = height - 6;
  let last = 0;
  path.setAttribute('d', samples.map(([moment, value]) => {
    // What was not seen, while the page was hidden or loaded anew, is a gap.
    const step = moment - last > 4 * PERIOD_MS ? 'M' : 'L';
    last = moment;
    return `${step}${at(moment).toFixed(1)},${(top - (top - 1) * value / most).toFixed(1)}`;
  }).join(''));
  strip.replaceChildren(...samples.map(([moment, , kind]) => drawing('rect', {
    // Trouble is taller, so that it is seen without colours.
    class: kind, x: (at(moment) - 1).toFixed(1), width: 1.2, y: height - (kind === 'good' ? 2 : 4), height: kind === 'good' ? 2 : 4,
  })));
  return most;
}

// ---- Backends ----

/** What the table of an upstream shows of each backend: a key, its head, and what the head means. */
const COLUMNS = [
  ['sessions', 'Sessions', 'application sessions seen within session_timeout'],
  ['flight', 'In flight', 'requests that wait for their response; + those that wait for a connection'],
  ['connections', 'Connections', 'open connections of those that are allowed'],
  ['requests', 'Requests/s', 'over the last 5 s, and a chart of the last 2 min'],
  ['latency', 'p50 / p99', 'time to the head of a response, over the last minute'],
  ['answers', '5xx', 'responses 5xx of the last minute: the application answers, and fails'],
  ['failures', 'Failures', 'attempts that failed in the last minute'],
  ['check', 'Last check', 'when its health was last asked, and what came of it'],
  ['outages', 'Outages', 'how often it was out since the start, and how long in all'],
  ['weight', 'Weight', 'its share of new sessions, relative to the others'],
];

/** The rows of one backend. They are made once and changed in place. */
class Row {
  constructor(backend) {
    this.open = false;
    this.key = `${backend.upstream}/${backend.name}`;
    this.name = make('button', { type: 'button', className: 'name', ariaExpanded: 'false' });
    this.name.addEventListener('click', () => this.toggle());
    this.state = make('span');
    this.activation = make('span');
    this.failing = make('span', { className: 'pill bad', textContent: '5xx', title: 'it answers, and most of its responses are 5xx' });
    this.words = make('span', { className: 'words quiet' });
    this.cells = Object.fromEntries(COLUMNS.map(([key, label]) => [key, make('td', { className: 'num', data: { label } }, make('span'))]));
    this.path = drawing('path', {});
    this.strip = drawing('g', { class: 'strip' });
    this.spark = drawing('svg', { class: 'spark', viewBox: `0 0 ${HISTORY} 18`, preserveAspectRatio: 'none', role: 'img' }, this.path, this.strip);
    this.cells.requests.append(this.spark);
    this.more = make('button', { type: 'button', className: 'more', textContent: '⋯', title: 'Actions', data: { action: 'menu' } });
    this.more.setAttribute('aria-haspopup', 'menu');
    this.more.setAttribute('aria-label', `Actions on ${backend.name} of ${backend.upstream}`);
    this.more.addEventListener('click', () => openMenu(this.more, this.backend, this.writable));
    this.one = make('tr', { className: 'one', data: { backend: backend.name } },
      make('td', { className: 'who' }, this.name),
      make('td', { className: 'how' }, make('div', {}, this.state, this.failing, this.activation)),
      ...Object.values(this.cells), make('td', { className: 'do' }, this.more));
    const columns = COLUMNS.length + 3;
    this.why = make('tr', { className: 'extra why-row', hidden: true }, make('td', { colSpan: columns }, this.words));
    this.progress = make('progress');
    this.progressWords = make('span');
    const cancel = make('button', { type: 'button', textContent: 'Cancel the drain', data: { action: 'cancel' } });
    cancel.addEventListener('click', () => change('cancel', this.backend));
    this.drain = make('tr', { className: 'extra drain-row', hidden: true },
      make('td', { colSpan: columns }, make('div', { className: 'draining' }, this.progress, this.progressWords, cancel)));
    this.detail = make('div', { className: 'detail' });
    this.chart = new Chart();
    this.extra = make('tr', { className: 'extra', hidden: true }, make('td', { colSpan: columns }, this.chart.element, this.detail));
  }

  elements() {
    return [this.one, this.why, this.drain, this.extra];
  }

  toggle() {
    this.open = !this.open;
    this.name.ariaExpanded = String(this.open);
    this.extra.hidden = !this.open;
    if (this.open) this.drawDetail();
  }

  update(backend, writable) {
    this.backend = backend;
    this.writable = writable;
    const { settings, connections, rates, latency } = backend;
    setText(this.name, backend.name);
    this.name.title = `${backend.protocol}://${backend.address}`;
    setText(this.state, backend.condition === 'ramping' ? backend.state : backend.condition);
    setClass(this.state, `pill ${MARKS[backend.condition] || 'warn'}`);
    this.failing.hidden = !isFailing(backend);
    this.activation.hidden = settings.activation === 'active';
    setText(this.activation, settings.activation === 'drain' ? 'draining' : settings.activation);
    setClass(this.activation, `pill ${ACTIVATIONS[settings.activation]}`);
    const said = backend.override;
    const words = [
      backend.cause ? `${backend.cause}, ${backend.state.replace(/^out (for \S+):.*/s, '$1')}` : '', ...backend.remarks,
      said ? `${said.reason ? `“${said.reason}” ` : ''}changed by ${said.by}, ${ago(said.at)}${said.until ? `; until ${day(said.until)}` : ''}` : ''].filter(Boolean).join('; ');
    setText(this.words, words);
    this.why.hidden = !words;
    const put = (key, text, title = '') => {
      setText(this.cells[key].firstChild, text);
      if (this.cells[key].title !== title) this.cells[key].title = title;
    };
    put('sessions', backend.sessions == null ? '–' : count.format(backend.sessions));
    put('flight', count.format(backend.in_flight) + (backend.waiting ? ` + ${backend.waiting}` : ''),
      backend.waiting ? `${backend.waiting} wait for a connection, at most ${backend.queue_max}` : '');
    put('connections', `${connections.open} / ${connections.max}`, `${connections.idle} idle`);
    put('requests', rates ? rate(rates.requests_s) : '–', rates ? `${bytes(rates.sent_s)}/s to it, ${bytes(rates.received_s)}/s from it` : '');
    put('latency', latency ? pair(latency.p50_ms, latency.p99_ms) : '–');
    const answers = backend.server_errors;
    put('answers', answers ? count.format(answers.minute) : '–',
      answers ? `${answers.minute} of ${many(answers.responses_minute, 'response')} in the last minute; ${count.format(answers.total)} since the start` : '');
    setClass(this.cells.answers.firstChild, answers?.minute ? 'bad-text' : '');
    const failures = failuresOf(backend);
    put('failures', count.format(failures), Object.entries(backend.errors).filter(([, counts]) => counts.minute > 0)
      .map(([reason, counts]) => `${counts.minute}× ${reason.replace(/^backend:/, '')}`).join(', '));
    setClass(this.cells.failures.firstChild, failures ? 'bad-text' : '');
    const probe = backend.last_probe;
    put('check', probe ? `${probe.answered ? '✓' : '✕'} ${ago(probe.at)}` : '–', probe ? `${probe.kind}: ${probe.found}` : 'no check was made');
    setClass(this.cells.check.firstChild, probe && !probe.answered ? 'bad-text' : '');
    put('outages', backend.ejections ? `${backend.ejections}× ${span(backend.down_s)}` : '0',
      backend.ejections ? `out ${many(backend.ejections, 'time')}, ${span(backend.down_s)} in all` : '');
    put('weight', String(settings.weight), [
      settings.weight === backend.file.weight ? '' : `${backend.file.weight} ${backend.found ? 'by its source' : 'in the file'}`,
      settings.distance ? `distance ${settings.distance}` : ''].filter(Boolean).join(', '));
    const samples = remember(this.key, rates ? rates.requests_s : 0, markOf(backend));
    const most = drawSamples(this.path, this.strip, samples, 18);
    this.spark.setAttribute('aria-label', `requests a second in the last 2 minutes, at most ${rate(most)}`);
    this.drawDrain(backend.drain);
    if (this.open) this.drawDetail();
  }

  drawDrain(drain) {
    this.drain.hidden = !drain;
    if (!drain) return;
    const { sessions_at_start: before, sessions_now: now, then, deadline, earliest, in_flight: flight } = drain;
    if (now == null) this.progress.removeAttribute('value');
    else {
      this.progress.max = Math.max(before, now, 1);
      this.progress.value = this.progress.max - now;
    }
    setText(this.progressWords, [
      now == null ? 'sessions are not counted' : `${now} of ${many(Math.max(before, now), 'session')} left`,
      `${many(flight, 'request')} in flight`,
      earliest && now ? `the last session can expire at ${at(earliest)}` : '',
      deadline ? `the drain ends by ${at(deadline)}` : '',
      `then ${then}`].filter(Boolean).join('; '));
  }

  drawDetail() {
    const { backend } = this;
    this.chart.draw(histories.get(this.key) || []);
    const block = (title, lines) => make('div', {}, make('h4', { textContent: title }),
      make('ul', {}, ...(lines.length ? lines : ['none']).map(line => make('li', { textContent: line }))));
    const failure = backend.last_failure;
    const probe = backend.last_probe;
    const { connections: c, probes } = backend;
    const blocks = [
      block('Last failure', failure ? [
        `${failure.culprit}:${failure.token} (${failure.stage}), ${ago(failure.at)}`, failure.detail, `request ${failure.request}`] : []),
      block('Failures since the start', Object.entries(backend.errors).map(([reason, { total }]) => `${count.format(total)}× ${reason}`)),
      block('Checks of its health', [
        `${count.format(probes.answered)} answered, ${count.format(probes.failed)} failed`,
        probe ? `last ${ago(probe.at)}: ${probe.found}` : null,
        probe?.unproved || null,
        `out ${many(backend.ejections, 'time')}, ${span(backend.down_s)} in all; suspect ${many(backend.suspicions, 'time')}`].filter(Boolean)),
      block('Sessions', backend.sessions == null ? [] : [`${many(backend.sessions, 'session')} seen lately`]),
      block('Requests by session', Object.entries(backend.sticky).filter(([, n]) => n).map(([outcome, n]) => `${count.format(n)} ${outcome}`)),
      block('Connections', [
        `${c.open} open, ${c.idle} idle, at most ${c.max}`, `${count.format(c.dialled)} dialled, ${count.format(c.reused)} reused, ${count.format(c.stale)} found closed`]),
      block('Since the start', [
        `${many(backend.requests, 'request')}, retries included`, `${bytes(backend.bytes.sent)} sent, ${bytes(backend.bytes.received)} received`,
        backend.abandoned ? `${many(backend.abandoned, 'request')} whose client left are still with the backend` : null].filter(Boolean)),
      block(backend.found ? `Found by ${backend.found.from}` : 'In the file', [
        backend.found ? FOUND[backend.found.state] + (backend.found.gone_in_s == null ? '' : `, gone in ${span(backend.found.gone_in_s)}`) : null,
        `${backend.protocol}://${backend.address}`, `jvm_route ${backend.jvm_route}`,
        backend.domain ? `domain ${backend.domain}` : null, backend.fallback ? `fallback ${backend.fallback}` : null,
        `${backend.file.activation}, weight ${backend.file.weight}, distance ${backend.file.distance}`].filter(Boolean)),
    ];
    const text = blocks.map(it => it.textContent).join('\n');
    if (text !== this.shownDetail || !this.detail.firstChild) {
      this.shownDetail = text;
      this.detail.replaceChildren(...blocks);
    }
  }
}

const failuresOf = backend => Object.values(backend.errors).reduce((sum, counts) => sum + counts.minute, 0);

/** The requests a second of one backend in the last two minutes, with its axes in words. */
class Chart {
  constructor() {
    this.path = drawing('path', {});
    this.strip = drawing('g', { class: 'strip' });
    this.picture = drawing('svg', { class: 'chart', viewBox: `0 0 ${HISTORY} 60`, preserveAspectRatio: 'none', role: 'img' }, this.path, this.strip);
    this.most = make('span', { className: 'num quiet' });
    this.element = make('figure', { className: 'history' },
      make('figcaption', { className: 'quiet', textContent: 'Requests a second' }),
      make('div', { className: 'scale quiet' }, this.most, make('span', { textContent: '0' })), this.picture,
      make('div', { className: 'moments quiet' }, make('span', { textContent: '2 min ago' }), make('span', { textContent: 'now' })));
  }

  draw(samples) {
    const most = drawSamples(this.path, this.strip, samples, 60);
    setText(this.most, rate(most));
    this.picture.setAttribute('aria-label', `requests a second in the last 2 minutes, at most ${rate(most)}`);
  }
}

// ---- The menu of a backend ----

let menuOf = null;

function openMenu(button, backend, writable) {
  const { activation } = backend.settings;
  const actions = [
    activation === 'active' ? ['drain', 'Drain…'] : ['activate', 'Activate…'],
    activation === 'stopped' ? null : ['stop', 'Stop…'],
    ['weight', 'Weight…'],
    ['probe', 'Check now…'],
    backend.override ? ['reset', 'Undo changes…'] : null].filter(Boolean);
  const menu = $('menu');
  menuOf = button;
  menu.dataset.backend = backend.name;
  menu.replaceChildren(...actions.map(([action, word]) => {
    const item = make('button', { type: 'button', textContent: word, disabled: !writable, data: { action } });
    item.setAttribute('role', 'menuitem');
    item.addEventListener('click', () => { menu.hidePopover(); change(action, backend); });
    return item;
  }));
  if (!writable) menu.append(make('p', { className: 'quiet', textContent: 'This front is read-only.' }));
  menu.showPopover();
  const at = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  menu.style.left = `${Math.max(8, Math.min(at.right - width, innerWidth - width - 8))}px`;
  menu.style.top = `${at.bottom + height > innerHeight ? Math.max(8, at.top - height) : at.bottom}px`;
  menu.querySelector('button:not(:disabled)')?.focus();
}

/** Arrows move within the menu. */
function moveInMenu(event) {
  const items = [...$('menu').querySelectorAll('button:not(:disabled)')];
  const at = items.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (to === undefined || !items.length) return;
  event.preventDefault();
  items[(to + items.length) % items.length].focus();
}

// ---- Upstreams ----

const rowsOpen = new Map(Object.entries(JSON.parse(sessionStorage.getItem('upstreams') || '{}')));

/** What is not obvious of a policy. */
const POLICIES = {
  'least-in-flight': 'a new session goes to the backend with the fewest requests in flight per weight; where they are equal, such as when nobody else is there, in turn by weight',
};

/** So many backends are shown without being asked for. */
const OPEN_MAX = 12;

/** How a member stands that was found. */
const FOUND = {
  active: 'named, and active',
  drain: 'named, and draining',
  stopped: 'named, and stopped',
  doubted: 'one of too many that the last answer lacks',
  leaving: 'no longer named: it drains',
};

/** Where an upstream finds members, in a few words. */
function foundOf(members) {
  if (!members) return '';
  if (members.age_s == null) return `; none from ${members.from} yet`;
  return members.failed ? `; ${members.from} fails, last answer ${span(members.age_s)} ago` : `; members from ${members.from}`;
}

/** The panel of one upstream: a line with its totals, and a table of its backends. */
class Panel {
  constructor(name) {
    this.upstream = name;
    this.rows = new Map();
    this.title = make('button', { type: 'button', className: 'title' }, make('h3', { textContent: name }));
    this.title.addEventListener('click', () => { keepOpen(name, !this.isOpen); draw(); });
    this.state = make('span', { className: 'pill' });
    this.panic = make('span', { className: 'pill bad', textContent: 'panic: all are used', title: 'so many backends fail their checks (unwell_max) that the front uses them all the same' });
    this.facts = make('div', { className: 'facts' });
    this.policy = make('span', { className: 'quiet policy' });
    this.share = make('div', { className: 'share', role: 'img' });
    this.body = make('tbody');
    const head = (text, title, num) => make('th', { textContent: text, title, scope: 'col', className: num ? 'num' : '' });
    this.table = make('table', { className: 'backends' },
      make('thead', {}, make('tr', {}, head('Backend', 'its name in the file, or by its source'), head('State', 'its health, and what operators said'),
        ...COLUMNS.map(([, text, title]) => head(text, title, true)), head('', 'actions'))), this.body);
    this.element = make('section', { className: 'upstream', data: { upstream: name } },
      make('div', { className: 'head' }, this.title, this.state, this.panic, this.share, this.facts, this.policy), this.table);
    this.element.setAttribute('aria-label', `upstream ${name}`);
  }

  update(upstream, wanted, { writable, isSearch, isSmall }) {
    this.panic.hidden = !upstream.panic;
    const backends = upstream.backends;
    const shown = backends.filter(wanted);
    this.element.hidden = shown.length === 0;
    this.drawTotals(upstream);
    this.isOpen = isSearch || (rowsOpen.get(this.upstream) ?? (isSmall || backends.some(isTrouble)));
    this.title.ariaExpanded = String(this.isOpen);
    this.table.hidden = !this.isOpen;
    const names = new Set(backends.map(it => it.name));
    for (const name of this.rows.keys()) if (!names.has(name)) this.remove(name);
    for (const backend of backends) {
      let row = this.rows.get(backend.name);
      if (!row) {
        row = new Row(backend);
        this.rows.set(backend.name, row);
        this.body.append(...row.elements());
      }
      row.update(backend, writable);
      const isShown = shown.includes(backend);
      row.one.hidden = !isShown;
      row.drain.hidden ||= !isShown;
      row.extra.hidden = !(isShown && row.open);
    }
    this.sort(backends);
    return shown.length;
  }

  /** The worst first; nothing moves under a pointer, a focus or a menu. */
  sort(backends) {
    const order = worstFirst(backends, rankOf).map(it => it.name);
    const key = order.join('\n');
    if (key === this.order || this.element.matches(':hover, :focus-within') && this.order) return;
    this.order = key;
    this.body.append(...order.flatMap(name => this.rows.get(name).elements()));
  }

  remove(name) {
    this.rows.get(name).elements().forEach(it => it.remove());
    this.rows.delete(name);
    this.order = '';
  }

  drawTotals(upstream) {
    const { backends, sticky_outcomes: outcomes, retry_budget: budget } = upstream;
    const serving = backends.filter(it => !isTrouble(it)).length;
    const having = (what, word) => {
      const number = backends.filter(what).length;
      return number ? `, ${number} ${word}` : '';
    };
    setText(this.state, `${backends.filter(it => it.condition === 'up').length} of ${backends.length} up`
      + having(it => it.condition === 'up' && isFailing(it), 'mostly 5xx') + having(it => it.settings.activation === 'drain', 'draining') + having(it => it.settings.activation === 'stopped', 'stopped'));
    setClass(this.state, `pill ${serving === backends.length ? 'good' : serving ? 'warn' : 'bad'}`);
    this.drawShare(backends, serving);
    const sum = value => backends.reduce((total, it) => total + (value(it) || 0), 0);
    const answers = sum(it => it.server_errors?.minute);
    const failures = sum(failuresOf);
    const facts = [
      ['requests/s', rate(sum(it => it.rates?.requests_s)), ''],
      ['in flight', count.format(sum(it => it.in_flight)), ''],
      ['sessions', backends.some(it => it.sessions != null) ? count.format(sum(it => it.sessions)) : '–', ''],
      ['5xx', count.format(answers), answers ? 'bad-text' : ''],
      ['failures in the last minute', count.format(failures), failures ? 'bad-text' : '']];
    while (this.facts.children.length < facts.length) this.facts.append(make('div', {}, make('strong'), make('span', { className: 'quiet' })));
    facts.forEach(([word, number, name], at) => {
      const [value, label] = this.facts.children[at].children;
      setText(value, number);
      setClass(value, name);
      setText(label, word);
    });
    const kept = outcomes && Object.entries(outcomes).filter(([, n]) => n).map(([word, n]) => `${short.format(n)} ${word}`).join(', ');
    setText(this.policy, `${upstream.policy}, ${outcomes ? 'sticky' : 'not sticky'}${foundOf(upstream.members)}`);
    this.policy.title = [
      upstream.members?.failed || '',
      POLICIES[upstream.policy] || '',
      kept ? `requests by session: ${kept}` : '',
      `a request is tried at most ${upstream.retries + 1} times; ${Math.round(100 * budget.left / budget.max)} % of the retry budget, which limits the retries of all requests together, is left`].filter(Boolean).join('; ');
  }

  drawShare(backends, serving) {
    while (this.share.children.length > backends.length) this.share.lastChild.remove();
    while (this.share.children.length < backends.length) this.share.append(make('span'));
    backends.forEach((backend, at) => {
      const part = this.share.children[at];
      setClass(part, markOf(backend));
      part.style.flexGrow = backend.settings.weight;
      part.title = `${backend.name}: ${backend.state}, weight ${backend.settings.weight}`;
    });
    this.share.setAttribute('aria-label', `${serving} of ${backends.length} backends are up and active`);
  }
}

/** The worst first, else as in the file. */
const worstFirst = (all, rank) => all.map((it, at) => [rank(it), at, it]).sort(([one, a], [other, b]) => other - one || a - b).map(([, , it]) => it);

function keepOpen(name, isOpen) {
  rowsOpen.set(name, isOpen);
  sessionStorage.setItem('upstreams', JSON.stringify(Object.fromEntries(rowsOpen)));
}
function keepAll(isOpen) {
  for (const name of panels.keys()) keepOpen(name, isOpen);
  draw();
}

// ---- Drawing all ----

const panels = new Map();
let status = null;

function draw() {
  if (!status) return;
  const text = $('filter').value.trim().toLowerCase();
  const only = $('only-trouble').checked;
  const wanted = backend => (!only || isTrouble(backend))
    && (!text || `${backend.upstream}/${backend.name} ${backend.address}`.toLowerCase().includes(text));
  const isSmall = status.upstreams.reduce((sum, it) => sum + it.backends.length, 0) <= OPEN_MAX;
  const how = { writable: !status.read_only, isSearch: Boolean(text) || only, isSmall };
  let shown = 0;
  const names = new Set(status.upstreams.map(it => it.name));
  for (const [name, panel] of panels) if (!names.has(name)) { panel.element.remove(); panels.delete(name); }
  for (const upstream of status.upstreams) {
    let panel = panels.get(upstream.name);
    if (!panel) {
      panel = new Panel(upstream.name);
      panels.set(upstream.name, panel);
      $('list').append(panel.element);
    }
    shown += panel.update(upstream, wanted, how);
  }
  sortPanels();
  $('none').hidden = shown > 0;
  drawHeader();
  drawRetired();
  drawFlight();
}

let panelOrder = '';
/** Upstreams with the worst backends come first. */
function sortPanels() {
  const order = worstFirst(status.upstreams, it => Math.max(0, ...it.backends.map(rankOf))).map(it => it.name);
  const key = order.join('\n');
  if (key === panelOrder || panelOrder && $('list').matches(':hover, :focus-within')) return;
  panelOrder = key;
  $('list').append(...order.map(name => panels.get(name).element));
}

/** What is counted since when, where the word is short. */
const FACTS = {
  requests: 'over the last 5 s', total: 'requests since the start', '5xx': 'responses 5xx since the start',
  clients: 'connections of clients that are open, of those that may be', up: 'since this process started',
};

function drawHeader() {
  setText($('version'), status.version);
  const deaf = status.upstreams.filter(it => !it.ready).map(it => it.name);
  const noNew = deaf.length ? `no new clients: ${deaf.join(', ')}` : '';
  const turning = status.limits.filter(it => it.whom !== 'administrators');
  const [word, mark] = status.draining ? ['draining', 'drain']
    : status.leaving ? ['about to drain', 'drain']
    : !status.ready ? [`not ready; ${noNew}`, 'bad']
    : turning.length ? [`ready, but turns clients away: ${turning.map(it => it.reason.replace('front:', '')).join(', ')}`,
      turning.some(it => it.whom === 'clients') ? 'bad' : 'warn']
    : status.troubles.length ? [`ready, but ${status.troubles[0]}`, 'warn']
    : deaf.length ? [`ready; ${noNew}`, 'warn']
    : ['ready', 'good'];
  setText($('ready'), word);
  setClass($('ready'), `pill ${mark}`);
  $('ready').title = status.limits.map(it => `${count.format(it.clients)} turned away: ${it.text}`)
    .concat(status.troubles).join('\n');
  const backends = status.upstreams.flatMap(it => it.backends);
  const perSecond = backends.reduce((sum, it) => sum + (it.rates?.requests_s || 0), 0);
  const facts = {
    requests: `${rate(perSecond)}/s`,
    total: short.format(status.requests),
    '5xx': short.format(status.responses['5xx']),
    clients: `${count.format(status.connections.open)} / ${count.format(status.connections.max)}`,
    up: span(status.uptime_s),
    reloads: `${status.reloads.applied}${status.reloads.refused ? `, ${status.reloads.refused} refused` : ''}`,
  };
  if (status.read_only) facts.changes = 'not allowed';
  const totals = $('totals');
  for (const [name, value] of Object.entries(facts)) {
    let entry = totals.querySelector(`[data-fact="${name}"]`);
    if (!entry) totals.append(entry = make('div', { title: FACTS[name] || '', data: { fact: name } }, make('dt', { textContent: name }), make('dd')));
    setText(entry.lastChild, value);
  }
}

/** Makes so many rows of so many cells of it. */
function fit(rows, length, cells) {
  while (rows.children.length > length) rows.lastChild.remove();
  while (rows.children.length < length) rows.append(make('tr', {}, ...Array.from({ length: cells }, () => make('td'))));
}

function drawRetired() {
  const { retired } = status;
  $('retired').hidden = retired.length === 0;
  const rows = $('retired-rows');
  fit(rows, retired.length, 4);
  retired.forEach((backend, at) => {
    const [name, address, flight, connections] = rows.children[at].children;
    setText(name, `${backend.upstream}/${backend.name}`);
    setText(address, `${backend.protocol}://${backend.address}`);
    setText(flight, count.format(backend.in_flight));
    setText(connections, `${backend.connections.open} / ${backend.connections.max}`);
    [flight, connections].forEach(it => setClass(it, 'num'));
  });
}

function drawFlight() {
  const { count: total, slowest } = status.in_flight;
  setText($('flight-count'), many(total, 'request'));
  const rows = $('flight-rows');
  fit(rows, slowest.length, 5);
  slowest.forEach((request, at) => {
    const [age, phase, what, where, id] = rows.children[at].children;
    setText(age, millis(request.age_ms));
    setClass(age, request.age_ms >= SLOW_MS ? 'num slow' : 'num');
    setText(phase, request.phase);
    setText(what, `${request.method} ${request.path}${request.path_cut ? '…' : ''}`);
    setText(where, request.backend ? `${request.upstream}/${request.backend}` : '–');
    setText(id, request.id);
    setClass(id, 'code');
  });
}

// ---- Caches ----

/** Draws what caches did; which keys are asked for most is asked for when somebody wants to know. */
async function drawCaches() {
  const { caches } = await ask('GET', 'caches');
  $('caches').hidden = $('caches-link').hidden = caches.length === 0;
  const rows = $('caches-rows');
  fit(rows, caches.length, 7);
  caches.forEach((cache, at) => {
    const [name, hits, requests, memory, keys, evictions, most] = rows.children[at].children;
    const results = Object.entries(cache.requests).filter(([, number]) => number > 0);
    setText(name, cache.name);
    setText(hits, cache.hit_ratio == null ? '–' : `${(Math.floor(cache.hit_ratio * 1000) / 10).toFixed(1)} %`);
    setText(requests, count.format(results.reduce((sum, [, number]) => sum + number, 0)));
    requests.title = results.map(([result, number]) => `${result} ${count.format(number)}`).join(', ');
    setText(memory, `${bytes(cache.bytes)} / ${bytes(cache.memory)}`);
    setText(keys, count.format(cache.objects));
    setText(evictions, count.format(cache.evictions));
    [hits, requests, memory, keys, evictions].forEach(it => setClass(it, 'num'));
    if (!most.firstChild) most.append(make('button', { type: 'button', textContent: 'Show keys' }));
    most.firstChild.onclick = () => showKeys(cache.name);
  });
}

async function showKeys(cache) {
  $('keys').hidden = false;
  setText($('keys-title'), `Keys of ${cache} that are asked for most`);
  try {
    const { keys } = await ask('GET', `caches/${encodeURIComponent(cache)}/keys`);
    $('keys-error').hidden = keys.length > 0;
    setText($('keys-error'), keys.length ? '' : 'Nothing was answered from memory.');
    fit($('keys-rows'), keys.length, 4);
    keys.forEach((it, at) => {
      const [hits, memory, responses, key] = $('keys-rows').children[at].children;
      setText(hits, count.format(it.hits));
      setText(memory, bytes(it.bytes));
      setText(responses, count.format(it.responses));
      setText(key, it.key);
      [hits, memory, responses].forEach(cell => setClass(cell, 'num'));
      setClass(key, 'code');
    });
  } catch (error) {
    fit($('keys-rows'), 0, 4);
    $('keys-error').hidden = false;
    setText($('keys-error'), error.message);
    if (lacksToken(error)) openToken(token ? error.message : '');
  }
}

// ---- Configuration ----

let configured = { generation: -1, at: 0 };

/** Asks for listeners, routes and certificates when the configuration is another one, and once a minute. */
async function configuration() {
  const isNew = configured.generation !== status.generation;
  if (!isNew && Date.now() - configured.at < 60000) return;
  configured = { generation: status.generation, at: Date.now() };
  const [{ listeners }, { routes }, { profiles }] = await Promise.all(['listeners', 'routes', 'tls'].map(path => ask('GET', path)));
  const draw = (name, rows) => {
    setText($(`${name}-count`), count.format(rows.length));
    fit($(`${name}-rows`), rows.length, 5);
    rows.forEach((cells, at) => cells.forEach((cell, column) => {
      const [text, style] = Array.isArray(cell) ? cell : [cell, ''];
      setText($(`${name}-rows`).children[at].children[column], text || '–');
      setClass($(`${name}-rows`).children[at].children[column], style);
    }));
  };
  draw('listeners', listeners.map(it => [it.address, it.name, it.protocols.join(', '), it.tls,
    [it.proxy_protocol ? 'PROXY protocol' : '', it.redirect_https ? `redirects to https, port ${it.redirect_https}` : ''].filter(Boolean).join(', ')]));
  draw('routes', routes.slice(0, ROUTES_MAX).map(it => [
    [it.scheme ? `${it.scheme}:` : '', it.hosts.join(' ') || 'any'].filter(Boolean).join(' '),
    it.pattern || it.path + (it.exact ? ' (exact)' : '') + (it.suffix ? ` *${it.suffix}` : ''), it.target, it.listen.join(', ') || 'any', it.place]));
  setText($('routes-count'), routes.length > ROUTES_MAX ? `${count.format(routes.length)}, the first ${count.format(ROUTES_MAX)} are shown` : count.format(routes.length));
  const certificates = profiles.flatMap(profile => profile.certificates.map(it => ({ ...it, profile: profile.name })));
  draw('certificates', certificates.map(it => [it.names.join(', '), endOf(it.not_after), it.profile, it.issuer, it.file]));
  const refused = profiles.filter(profile => profile.refused);
  if (refused.length) setText($('certificates-count'), `${count.format(certificates.length)}, and changed files are refused`);
  setClass($('certificates-count'), refused.length ? 'bad-text' : 'quiet');
  $('refused').replaceChildren(...refused.map(profile => make('p', { className: 'error',
    textContent: `The changed files of [tls.${profile.name}] cannot be used, and the certificates above are served: ${profile.refused}` })));
}

/** When a certificate ends, and how bad that is. */
function endOf(moment) {
  const days = (Date.parse(moment) - serverNow) / 86400000;
  const date = new Date(moment).toISOString().slice(0, 10);
  if (days < 0) return [`✕ expired ${date}`, 'bad-text'];
  return [`${days < 21 ? '▲ ' : ''}${date}, in ${span(days * 86400)}`, days < 7 ? 'bad-text' : days < 21 ? 'warn-text' : ''];
}

let events = [];
function drawEvents() {
  const kind = $('events-kind').value;
  const shown = events.filter(event => !kind || event.kind === kind);
  $('events-rows').replaceChildren(...shown.map(event => make('li', {},
    make('time', { dateTime: event.at, title: event.at, textContent: clock(event.at) }),
    make('span', { className: event.kind, textContent: event.kind }),
    make('span', { textContent: `${event.upstream}/${event.backend}: ${event.text}` }))));
}

// ---- Polling ----

let timer = 0;
let asking = false;
let lastAnswer = 0;

async function poll() {
  if (asking) return;
  asking = true;
  clearTimeout(timer);
  try {
    status = await ask('GET', 'status');
    serverNow = Date.parse(status.now);
    lastAnswer = Date.now();
    const last = events.length ? events[0].number : 0;
    const more = (await ask('GET', `events?after=${last}`)).events;
    if (last && more.length && more[0].number > last + 1) events = [];
    if (more.length) {
      events = [...more.reverse(), ...events].slice(0, EVENTS_MAX);
      drawEvents();
    }
    trouble('');
    draw();
    await drawCaches();
    await configuration();
  } catch (error) {
    await explainTrouble(error);
  } finally {
    asking = false;
    if (!document.hidden) timer = setTimeout(poll, PERIOD_MS);
  }
}

async function explainTrouble(error) {
  if (lacksToken(error)) {
    trouble('The front asks for its token before it shows anything.');
    if (!$('token').open && !askedForToken) openToken(token ? error.message : '');
    askedForToken = true;
    return;
  }
  if (error instanceof Refused && error.status === 401) {
    trouble('The front asks for a user and a password before it shows anything. Load this page again to enter them, or give the token.');
    return;
  }
  const since = lastAnswer ? ` What is shown is from ${clock(lastAnswer)}.` : '';
  trouble(error instanceof Refused ? error.message : `The front does not answer.${since} Asking again each second.`);
}

function trouble(text) {
  $('trouble').hidden = !text;
  setText($('trouble'), text);
  document.body.classList.toggle('stale', Boolean(text));
}

// ---- Changes ----

/** What each action does, in words, and its request. */
const CHANGES = {
  drain: {
    title: b => `Drain ${b.name}`,
    effect: b => `${b.name} gets no new sessions from now on. ${b.sessions === 1 ? 'Its one session stays with it until it ends' : `${b.sessions == null ? 'Its own sessions' : `Its ${many(b.sessions, 'session')}`} stay with it until they end`}.`,
    fields: b => [
      choice('then', 'When nothing is left, it is', [['stopped', 'stopped'], ['active', 'active again'], ['', 'left draining']]),
      line('deadline', 'End the drain after', '2h', 'a time from now, or empty: after 24 h'), ...common(b)],
    body: form => {
      const body = { activation: 'drain', ...commonOf(form) };
      if (form.then.value) body.then = form.then.value;
      if (form.then.value && form.deadline.value.trim()) body.deadline = form.deadline.value.trim();
      return body;
    },
  },
  cancel: {
    title: b => `Cancel the drain of ${b.name}`,
    effect: b => `${b.name} takes new sessions again.`,
    body: () => ({ activation: 'active' }),
  },
  stop: {
    title: b => `Stop ${b.name}`,
    effect: b => `${b.name} gets no requests from now on, not even of its own sessions: ${b.sessions == null ? 'sessions that only it has' : `as many of its ${many(b.sessions, 'session')} as only it has`} are lost. ${b.in_flight === 1 ? 'One request in flight ends' : `${count.format(b.in_flight)} requests in flight end`} first.`,
    danger: true,
    fields: common,
    body: form => ({ activation: 'stopped', ...commonOf(form) }),
  },
  activate: {
    title: b => `Activate ${b.name}`,
    effect: b => `The front checks ${b.name} first. When the check is answered, ${b.name} takes new sessions, by its weight of ${b.settings.weight}.`,
    fields: b => [...common(b), make('label', {}, make('input', { type: 'checkbox', name: 'unchecked' }), 'activate it without a good check')],
    isFit: backend => becomesFit(backend),
    body: form => ({ activation: 'active', ...commonOf(form) }),
  },
  weight: {
    title: b => `Weight of ${b.name}`,
    effect: b => `Its share of what is new changes, in proportion to the weights of the others. The file says ${b.file.weight}.`,
    fields: b => [line('weight', 'Weight', '', 'a whole number from 1', { type: 'number', min: 1, step: 1, required: true, value: b.settings.weight }), ...common(b)],
    body: form => ({ weight: Number(form.weight.value), ...commonOf(form) }),
  },
  reset: {
    title: b => `Undo changes of ${b.name}`,
    effect: b => `Every change made at run time is undone. The file's settings apply again: ${b.file.activation}, weight ${b.file.weight}, distance ${b.file.distance}.`,
    method: 'POST', path: 'reset',
  },
  probe: {
    title: b => `Check ${b.name}`,
    effect: b => `The front checks the health of ${b.name} at once. The result counts like that of any check.`,
    method: 'POST', path: 'probe',
  },
};

function line(name, label, placeholder, hint, properties = {}) {
  const input = make('input', { name, placeholder, autocomplete: 'off', ...properties });
  return make('label', { className: 'wide' }, label, input, hint ? make('span', { className: 'hint', textContent: hint }) : null);
}
function choice(name, legend, options) {
  return make('fieldset', {}, make('legend', { textContent: legend }), ...options.map(([value, word], at) =>
    make('label', {}, make('input', { type: 'radio', name, value, checked: at === 0 }), word)));
}
function common(backend) {
  return [
    line('reason', 'Reason', 'a text for colleagues', '', { maxLength: 200, value: backend.override?.reason || '' }),
    line('until', 'Undo the change after', '1h', 'a time from now, or empty: it stays')];
}
function commonOf(form) {
  const body = {};
  if (form.reason.value.trim()) body.reason = form.reason.value.trim();
  if (form.until.value.trim()) body.until = form.until.value.trim();
  return body;
}

let changing = null;

function change(action, backend) {
  changing = { action, backend, version: backend.version };
  const what = CHANGES[action];
  setText($('change-title'), `${what.title(backend)} of ${backend.upstream}`);
  setText($('change-effect'), what.effect(backend));
  $('change-fields').replaceChildren(...(what.fields?.(backend) || []));
  changeError('');
  setText($('change-go'), what.title(backend));
  setClass($('change-go'), what.danger ? 'main danger' : 'main');
  $('change-go').disabled = false;
  $('change').showModal();
}

function changeError(text) {
  $('change-error').hidden = !text;
  setText($('change-error'), text);
}

async function go() {
  const { action, backend, version } = changing;
  const what = CHANGES[action];
  const form = $('change').querySelector('form').elements;
  $('change-go').disabled = true;
  try {
    if (what.isFit && !await what.isFit(backend)) return;
    const body = what.body ? what.body(form) : undefined;
    if (body && form.force?.checked) body.force = true;
    await ask(what.method || 'PATCH', pathOf(backend) + (what.path ? `/${what.path}` : ''), body, version);
    $('change').close();
    poll();
  } catch (error) {
    await recover(error, what);
  } finally {
    $('change-go').disabled = false;
  }
}

/** Checks a backend until it is fit to serve or need not be; `false` if the operator closes the dialog before. */
async function becomesFit(backend) {
  const mine = changing;
  const isOpen = () => $('change').open && changing === mine;
  while (isOpen()) {
    if ($('change').querySelector('[name=unchecked]').checked) return true;
    const unfit = await check(backend);
    if (!unfit) break;
    if (isOpen()) changeError(`Not activated yet: ${unfit}. The front checks it again each second.`);
    await pause(PERIOD_MS);
  }
  return isOpen();
}

/** Has a backend checked; why it is not fit to serve, or nothing. */
async function check(backend) {
  const begun = await ask('POST', `${pathOf(backend)}/probe`);
  let { probe } = begun;
  while (!(probe?.number >= begun.number)) {
    await pause(PERIOD_MS);
    probe = (await ask('GET', pathOf(backend))).last_probe;
  }
  if (!probe.answered) return `the check failed (${probe.kind}: ${probe.found})`;
  const now = await ask('GET', pathOf(backend));
  return now.condition === 'out' ? 'it answers, and stays out until as many checks in a row were answered as `up` says' : '';
}

const pause = time => new Promise(done => setTimeout(done, time));

/** Says why a change was refused, and makes ready to try again. */
async function recover(error, what) {
  if (!(error instanceof Refused)) return changeError('The front does not answer. Nothing is known of the change; look at the state before you try again.');
  if (error.token === 'stale') {
    try {
      const now = await ask('GET', pathOf(changing.backend));
      const said = now.override;
      changing.backend = now;
      changing.version = now.version;
      setText($('change-effect'), what.effect(now));
      changeError(`Somebody changed ${now.name} meanwhile${said ? ` (${said.by}${said.reason ? `: “${said.reason}”` : ''})` : ''}: it is ${now.settings.activation} now, with weight ${now.settings.weight}. Nothing was changed by you. Confirm again if you still mean it.`);
    } catch (again) { changeError(again.message); }
    return;
  }
  changeError(`Refused: ${error.message}.`);
  if (error.token === 'last-backend' && what.body && !$('change').querySelector('[name=force]'))
    $('change-fields').append(make('label', {}, make('input', { type: 'checkbox', name: 'force' }), 'do it all the same: new sessions will be answered 503'));
  if (lacksToken(error)) { $('change').close(); openToken(error.message); }
}

// ---- Token ----

let askedForToken = false;

function openToken(error) {
  $('token-error').hidden = !error;
  setText($('token-error'), error ? `Refused: ${error}.` : '');
  $('token-text').value = token;
  $('token').showModal();
}

function useToken(text) {
  token = text.trim();
  if (token) sessionStorage.setItem('token', token);
  else sessionStorage.removeItem('token');
  $('token').close();
  setText($('token-open'), token ? 'Token ✓' : 'Token');
  askedForToken = false;
  poll();
}

// ---- Explain ----

function explained(explanation) {
  const part = (title, ...children) => make('div', {}, make('h3', { textContent: title }), ...children);
  const text = (value, className = '') => make('div', { textContent: value, className });
  const pairs = rows => make('div', { className: 'pairs' }, ...rows.flatMap(([name, value]) => [
    make('span', { className: 'quiet', textContent: name }), make('span', { className: 'code', textContent: value })]));
  const route = r => [
    [r.listen?.length ? `on ${r.listen.join(', ')}` : '', r.scheme ? `${r.scheme}:` : '', r.hosts.join(' '), r.pattern || r.path + (r.exact ? ' (exact)' : '') + (r.suffix ? ` *${r.suffix}` : '')].filter(Boolean).join(' '),
    `→ ${r.target}`, r.place ? `(${r.place})` : ''].filter(Boolean).join(' ');
  const parts = [text(explanation.summary, 'summary')];
  if (explanation.answer) parts.push(part('Answer of the front', text(`${explanation.answer.status} ${explanation.answer.reason}: ${explanation.answer.text}${explanation.answer.location ? ` → ${explanation.answer.location}` : ''}`)));
  const left = [];
  const right = [];
  if (explanation.path) left.push(part('Path', pairs(['received', 'normal', 'compared', 'forwarded'].map(name => [name, explanation.path[name]]))));
  left.push(part('Route', text(explanation.route ? route(explanation.route) : 'none matches', 'code')));
  if (explanation.others?.length) left.push(part('Next best, and why not', make('ul', {}, ...explanation.others.map(other =>
    make('li', {}, make('span', { className: 'code', textContent: route(other) }), make('span', { className: 'quiet', textContent: ` ${other.why_not || ''}` }))))));
  if (explanation.rewrite) left.push(part('Rewrite', text(explanation.rewrite, 'code')));
  if (explanation.affinity) left.push(part(`Session: ${explanation.affinity.outcome}`, make('ol', {}, ...explanation.affinity.steps.map(step =>
    make('li', {}, make('span', { className: 'code', textContent: [step.source, step.value].filter(Boolean).join(' ') }), ` ${step.text || ''}`)))));
  if (explanation.members?.length) right.push(part(`Backends of ${explanation.upstream.name} (${explanation.upstream.policy})${explanation.by ? `: by ${explanation.by}` : ''}`,
    make('div', {}, ...explanation.members.map(member => {
      const bar = make('span');
      bar.style.width = `${member.share}%`;
      return make('div', {}, make('span', { className: 'meter' }, bar), `${member.share} % ${member.backend}`,
        make('span', { className: 'quiet', textContent: member.why_not ? ` – ${member.why_not}` : '' }));
    }))));
  if (explanation.sent) {
    right.push(part(`Sent to ${explanation.sent.backend} at ${explanation.sent.protocol}://${explanation.sent.address}`, text(explanation.sent.request, 'code'), pairs(explanation.sent.fields || [])));
    if (explanation.sent.attributes?.length) right.push(part('Attributes', pairs(explanation.sent.attributes)));
    if (explanation.sent.set_cookie) right.push(part('Cookie for the client', text(explanation.sent.set_cookie, 'code')));
    right.push(part('Limits', pairs([...(explanation.sent.timeouts || []), ['retries', String(explanation.sent.retries)]])));
  }
  parts.push(make('div', { className: 'halves' },
    make('div', {}, ...left), make('div', {}, ...right)));
  return parts;
}

async function explain(event) {
  event.preventDefault();
  const form = $('explain-form').elements;
  const query = new URLSearchParams({ url: form.url.value.trim() });
  for (const name of ['method', 'from']) if (form[name].value.trim()) query.set(name, form[name].value.trim());
  for (const field of form.header.value.split('\n')) if (field.trim()) query.append('header', field.trim());
  const into = $('explained');
  try {
    into.replaceChildren(...explained(await ask('GET', `explain?${query}`)));
  } catch (error) {
    const text = error instanceof Refused ? error.message : 'The front does not answer.';
    into.replaceChildren(make('p', { className: 'error', textContent: text }));
  }
}

// ---- Beginning ----

restoreHistories();
addEventListener('pagehide', saveHistories);
$('menu').addEventListener('keydown', moveInMenu);
$('menu').addEventListener('toggle', event => { if (event.newState === 'closed' && !$('change').open) menuOf?.focus(); });
$('open-all').addEventListener('click', () => keepAll(true));
$('close-all').addEventListener('click', () => keepAll(false));
$('filter').addEventListener('input', draw);
$('only-trouble').addEventListener('change', draw);
$('events-kind').addEventListener('change', drawEvents);
$('explain-form').addEventListener('submit', explain);
$('change').querySelector('form').addEventListener('submit', event => { event.preventDefault(); go(); });
$('change-cancel').addEventListener('click', () => $('change').close());
$('change').addEventListener('close', () => menuOf?.focus());
$('token').querySelector('form').addEventListener('submit', event => { event.preventDefault(); useToken($('token-text').value); });
$('token-cancel').addEventListener('click', () => $('token').close());
$('token-forget').addEventListener('click', () => useToken(''));
$('token-open').addEventListener('click', () => openToken(''));
document.addEventListener('visibilitychange', () => { if (!document.hidden) poll(); });
setText($('token-open'), token ? 'Token ✓' : 'Token');
poll();
